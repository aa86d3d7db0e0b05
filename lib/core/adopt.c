/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/error.h"
#include "core/access.h"
#include "core/adopt.h"
#include "core/root.h"

/* ---- Checks ---- */

/* What can be said of a block without asking a driver. */
static syncedmem_status_t check_block(const struct root *root, const void *memory, size_t length)
{
    if (length < root->size)
        return syncedmem_error(SYNCEDMEM_OUT_OF_RANGE,
                               "a block of %zu bytes is too short for a buffer of %zu", length,
                               root->size);
    if (!memory && root->size > 0)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT,
                               "the block is NULL, and the buffer has %zu bytes", root->size);
    if ((uintptr_t)memory > UINTPTR_MAX - length)
        return syncedmem_error(SYNCEDMEM_OUT_OF_RANGE,
                               "a block of %zu bytes at %p ends past the last address", length,
                               memory);
    if (syncedmem_copy_overlaps_own(root, memory, length))
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT,
                               "%p lies in memory that the library allocated for this buffer",
                               memory);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t check_host_memory(const void *memory)
{
    struct memory_facts facts;
    syncedmem_classify(memory, &facts);
    if (facts.kind == MEMORY_DEVICE)
        return syncedmem_error(SYNCEDMEM_WRONG_MEMORY, "%p is device memory", memory);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t check_device_memory(const struct root *root, const syncedmem_place *place,
                                              const void *memory)
{
    struct memory_facts facts;
    syncedmem_classify(memory, &facts);
    if (facts.kind != MEMORY_DEVICE || facts.device != place->device)
        return syncedmem_error(SYNCEDMEM_WRONG_MEMORY, "%p is not memory of %s", memory,
                               place->name);
    if (facts.available == 0)
        return syncedmem_error(SYNCEDMEM_WRONG_MEMORY, "%p lies in no live block of %s", memory,
                               place->name);
    if (facts.available < root->size)
        return syncedmem_error(SYNCEDMEM_OUT_OF_RANGE,
                               "%zu bytes of the block at %p are too few for a buffer of %zu",
                               facts.available, memory, root->size);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t check(const struct root *root, const struct adopt *adopt)
{
    const syncedmem_status_t status = check_block(root, adopt->memory, adopt->length);
    if (status != SYNCEDMEM_OK || root->size == 0)
        return status;
    return place_is_host(adopt->place) ? check_host_memory(adopt->memory)
                                       : check_device_memory(root, adopt->place, adopt->memory);
}

/* ---- Records, made before anything changes ---- */

struct records {
    struct adoption *adoption; /* NULL without a release function */
    struct work *work;         /* NULL without a stream */
};

static void discard(struct records *records)
{
    free(records->adoption);
    syncedmem_work_release(records->work);
}

static syncedmem_status_t make_adoption(const struct adopt *adopt, struct records *records)
{
    if (!adopt->release)
        return SYNCEDMEM_OK;
    records->adoption = malloc(sizeof *records->adoption);
    if (!records->adoption)
        return syncedmem_error_no_host_memory("the record of an adoption",
                                              sizeof *records->adoption);
    *records->adoption = (struct adoption){.release = adopt->release, .user = adopt->user};
    return SYNCEDMEM_OK;
}

/* What is on the stream writes the memory: whoever needs the bytes has to wait for it. */
static syncedmem_status_t make_work(const struct root *root, const struct adopt *adopt,
                                    unsigned slot, struct records *records)
{
    if (!adopt->stream.stream || root->size == 0)
        return SYNCEDMEM_OK;
    records->work = syncedmem_work_alloc(0);
    if (!records->work)
        return syncedmem_error_no_host_memory("the record of an adoption", sizeof(struct work));
    records->work->place = adopt->place;
    records->work->stream = adopt->stream.number;
    records->work->writes = (int)slot;
    records->work->to = root->size;
    return adopt->place->backend->record(adopt->stream.stream, &records->work->event);
}

static syncedmem_status_t make_records(const struct root *root, const struct adopt *adopt,
                                       unsigned slot, struct records *records)
{
    syncedmem_status_t status = make_adoption(adopt, records);
    if (status == SYNCEDMEM_OK)
        status = make_work(root, adopt, slot, records);
    if (status != SYNCEDMEM_OK)
        discard(records);
    return status;
}

/* ---- Adoption ---- */

/* Memory of the caller's that is there already is in use no more when this returns. */
static void await_before(struct root *root, const syncedmem_place *place)
{
    unsigned slot;
    while (root->body && syncedmem_copy_find(root->body, place, &slot) &&
           root->body->copies.slots[slot].memory && !root->body->copies.slots[slot].owned)
        if (!syncedmem_work_await(root, use_of(slot, 0, SIZE_MAX, true)))
            return;
}

static syncedmem_status_t prepare(struct root *root, const struct adopt *adopt, unsigned *out_slot)
{
    const size_t span = syncedmem_root_span(root);
    await_before(root, adopt->place);
    syncedmem_status_t status = place_require(adopt->place);
    if (status == SYNCEDMEM_OK)
        status = check(root, adopt);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_prepare(root, adopt->place, 0, span, out_slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_lease_check(root, 0, span, true);
    return status;
}

syncedmem_status_t syncedmem_adopt_memory(struct root *root, const struct adopt *adopt)
{
    unsigned slot;
    struct records records = {0};
    syncedmem_status_t status = prepare(root, adopt, &slot);
    if (status == SYNCEDMEM_OK)
        status = make_records(root, adopt, slot, &records);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_copy_adopt(root, slot, adopt->memory, adopt->read_only, records.adoption);
    if (records.work)
        syncedmem_work_add(root, records.work);
    const struct access written = {.place = adopt->place,
                                   .mode = ACCESS_WRITE,
                                   .to = syncedmem_root_span(root),
                                   .expose = adopt->expose};
    syncedmem_access_mark(root, &written, slot);
    syncedmem_root_changed(root);
    return SYNCEDMEM_OK;
}
