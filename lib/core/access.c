/* SPDX-License-Identifier: BSD-2-Clause */
/* The one path for bytes: make memory, settle conflicts, move what is missing, mark the map. */
#include <stdlib.h>

#include "base/error.h"
#include "core/root.h"

static place_set bit(unsigned slot)
{
    return (place_set)1 << slot;
}

/* The first device touch that succeeds decides the home. */
static void fix_home(struct root *root, unsigned slot)
{
    if (slot != HOST_SLOT && !root->home)
        root->home = root->body->copies[slot].place;
}

static void expose(struct root *root, unsigned slot)
{
    root->body->copies[slot].exposed = true;
    fix_home(root, slot);
}

/* ---- Access ---- */

static bool is_current(const struct root *root, unsigned slot, size_t from, size_t to)
{
    const struct map_summary summary = syncedmem_map_summary(&root->body->map, from, to);
    return !summary.has_fresh && (summary.in_all & bit(slot)) != 0;
}

static bool is_alone(const struct root *root, unsigned slot, size_t from, size_t to)
{
    return is_current(root, slot, from, to) &&
           syncedmem_map_summary(&root->body->map, from, to).in_any == bit(slot);
}

/* Bytes that arrive overwrite the slot's, whose users have to be done; and their sources have to
 * be there. */
static syncedmem_status_t bring_in(struct root *root, unsigned slot, size_t from, size_t to)
{
    syncedmem_status_t status = syncedmem_work_settle(root, slot, from, to, true);
    for (unsigned other = 0; status == SYNCEDMEM_OK && other < root->body->copies_count; other++)
        if (other != slot)
            status = syncedmem_work_settle(root, other, from, to, false);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_transfer_in(root, slot, from, to);
    return status;
}

static void mark(struct root *root, unsigned slot, enum access_mode mode, size_t from, size_t to)
{
    const bool writing = mode != ACCESS_READ;
    if (writing ? is_alone(root, slot, from, to) : is_current(root, slot, from, to))
        return;
    if (writing)
        syncedmem_map_assign(&root->body->map, from, to, bit(slot));
    else
        syncedmem_map_add(&root->body->map, from, to, bit(slot));
    syncedmem_root_changed(root);
}

/* Everything that can fail before bytes move. */
static syncedmem_status_t prepare(struct root *root, syncedmem_place *place, size_t from, size_t to,
                                  unsigned *out_slot)
{
    syncedmem_status_t status = syncedmem_root_touch(root);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_reap(root);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_copy_slot(root, place, out_slot);
    if (status == SYNCEDMEM_OK && !syncedmem_map_reserve(&root->body->map, from, to))
        status = syncedmem_error_no_host_memory("the map of a buffer", root->size);
    return status;
}

syncedmem_status_t syncedmem_access(struct root *root, syncedmem_place *place,
                                    enum access_mode mode, size_t from, size_t to,
                                    unsigned *out_slot)
{
    syncedmem_status_t status = prepare(root, place, from, to, out_slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_copy_ensure(root, *out_slot);
    if (status == SYNCEDMEM_OK && !is_current(root, *out_slot, from, to))
        status = bring_in(root, *out_slot, from, to);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_settle(root, *out_slot, from, to, mode != ACCESS_READ);
    if (status != SYNCEDMEM_OK)
        return status;
    mark(root, *out_slot, mode, from, to);
    expose(root, *out_slot);
    return SYNCEDMEM_OK;
}

/* ---- Adoption ---- */

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

static syncedmem_status_t check_device_memory(const struct root *root,
                                              const syncedmem_place *place, const void *memory)
{
    struct memory_facts facts;
    syncedmem_classify(memory, &facts);
    if (facts.kind != MEMORY_DEVICE || facts.device != place->device)
        return syncedmem_error(SYNCEDMEM_WRONG_MEMORY, "%p is not memory of %s", memory,
                               place->name);
    if (facts.available < root->size)
        return syncedmem_error(SYNCEDMEM_OUT_OF_RANGE,
                               "%zu bytes of the block at %p are too few for a buffer of %zu",
                               facts.available, memory, root->size);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t check_adopted(const struct root *root, const syncedmem_place *place,
                                        const void *memory, size_t length)
{
    const syncedmem_status_t status = check_block(root, memory, length);
    if (status != SYNCEDMEM_OK || root->size == 0)
        return status;
    return place_is_host(place) ? check_host_memory(memory)
                                : check_device_memory(root, place, memory);
}

syncedmem_status_t syncedmem_adopt(struct root *root, syncedmem_place *place, void *memory,
                                   size_t length)
{
    const size_t span = syncedmem_root_span(root);
    unsigned slot;
    syncedmem_status_t status = check_adopted(root, place, memory, length);
    if (status == SYNCEDMEM_OK)
        status = prepare(root, place, 0, span, &slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_settle(root, slot, 0, span, true);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_copy_adopt(root, slot, memory);
    syncedmem_map_assign(&root->body->map, 0, span, bit(slot));
    syncedmem_root_changed(root);
    expose(root, slot);
    return SYNCEDMEM_OK;
}

/* ---- Push ---- */

/* Kernels on the default stream may still use the bytes that a push on another stream replaces. */
static syncedmem_status_t order_after_default(const struct copy *copy, struct backend_stream *stream)
{
    const struct backend *backend = copy->place->backend;
    struct backend_stream *default_stream;
    struct backend_event *event;
    syncedmem_status_t status = backend->stream_default(copy->place->device, &default_stream);
    if (status != SYNCEDMEM_OK || !copy->exposed || stream == default_stream)
        return status;
    status = backend->record(default_stream, &event);
    if (status != SYNCEDMEM_OK)
        return status;
    status = backend->stream_wait_event(stream, event);
    backend->event_release(event);
    return status;
}

static syncedmem_status_t start_push(struct root *root, unsigned slot, size_t from, size_t to,
                                     struct backend_stream *stream)
{
    struct work *work = malloc(sizeof *work);
    if (!work)
        return syncedmem_error_no_host_memory("the record of a transfer", sizeof *work);
    syncedmem_status_t status = order_after_default(&root->body->copies[slot], stream);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_transfer_start(root, slot, HOST_SLOT, from, to, stream, work);
    if (status != SYNCEDMEM_OK) {
        free(work);
        return status;
    }
    work->next = root->body->works;
    root->body->works = work;
    return SYNCEDMEM_OK;
}

static const char *head_name(syncedmem_head_t head)
{
    static const char *const names[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED",
                                        "HEAD_SPLIT"};
    return names[head];
}

static syncedmem_status_t check_push(const struct root *root, size_t from, size_t to)
{
    const syncedmem_head_t head = syncedmem_root_head(root, from, to);
    if (head == SYNCEDMEM_HEAD_AT_CPU)
        return SYNCEDMEM_OK;
    return syncedmem_error(SYNCEDMEM_WRONG_STATE,
                           "a push starts from HEAD_AT_CPU, and the head is %s", head_name(head));
}

syncedmem_status_t syncedmem_push(struct root *root, syncedmem_place *place,
                                  struct backend_stream *stream, size_t from, size_t to)
{
    unsigned slot;
    syncedmem_status_t status = prepare(root, place, from, to, &slot);
    if (status == SYNCEDMEM_OK)
        status = check_push(root, from, to);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_copy_ensure(root, slot);
    if (status == SYNCEDMEM_OK && !stream)
        status = place->backend->stream_default(place->device, &stream);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_settle(root, slot, from, to, true);
    if (status == SYNCEDMEM_OK && root->size > 0)
        status = start_push(root, slot, from, to, stream);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_map_add(&root->body->map, from, to, bit(slot));
    syncedmem_root_changed(root);
    fix_home(root, slot);
    return SYNCEDMEM_OK;
}
