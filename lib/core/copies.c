/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory that each place has of a root. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/root.h"
#include "memory/host_block.h"

_Atomic(int32_t) syncedmem_default_policy = SYNCEDMEM_PAGEABLE;

/* The host pointer of buffers of size 0. */
static _Alignas(HOST_BLOCK_ALIGNMENT) char empty_block[HOST_BLOCK_ALIGNMENT];

/* ---- Slots ---- */

bool syncedmem_copy_find(const struct body *body, const syncedmem_place *place,
                         unsigned *out_slot)
{
    for (unsigned slot = 0; slot < body->copies_count; slot++) {
        if (body->copies[slot].place == place) {
            *out_slot = slot;
            return true;
        }
    }
    return false;
}

static bool grow_copies(struct body *body)
{
    const size_t capacity = body->copies_capacity * 2;
    struct copy *copies = malloc(capacity * sizeof *copies);
    if (!copies)
        return false;
    memcpy(copies, body->copies, body->copies_count * sizeof *copies);
    if (body->copies != body->first_copies)
        free(body->copies);
    body->copies = copies;
    body->copies_capacity = capacity;
    return true;
}

syncedmem_status_t syncedmem_copy_slot(struct root *root, syncedmem_place *place,
                                       unsigned *out_slot)
{
    struct body *body = root->body;
    if (syncedmem_copy_find(body, place, out_slot))
        return SYNCEDMEM_OK;
    if (body->copies_count == PLACE_SET_MAX)
        return syncedmem_error(SYNCEDMEM_UNSUPPORTED, "one buffer can be used at %d places",
                               PLACE_SET_MAX);
    if (body->copies_count == body->copies_capacity && !grow_copies(body))
        return syncedmem_error_no_host_memory("the records of a buffer",
                                              body->copies_capacity * sizeof(struct copy));
    *out_slot = (unsigned)body->copies_count++;
    body->copies[*out_slot] = (struct copy){.place = place};
    return SYNCEDMEM_OK;
}

/* ---- Policy ---- */

static syncedmem_host_policy_t policy_of(const struct root *root)
{
    if (root->policy != 0)
        return root->policy;
    return atomic_load_explicit(&syncedmem_default_policy, memory_order_relaxed);
}

/* The first touch that succeeds decides the policy. */
static void mark_present(struct root *root, struct copy *copy)
{
    root->policy = (uint8_t)policy_of(root);
    copy->present = true;
}

/* ---- Pinning: a host block of ours is registered with the first device that is used ---- */

/* Refusal is no failure: the buffer works on with pageable memory, and the count shows it. */
static void pin_with(struct root *root, syncedmem_place *device)
{
    struct copy *host = &root->body->copies[HOST_SLOT];
    if (device->backend->pin(device->device, host->memory, root->size) == SYNCEDMEM_OK) {
        host->pin = PIN_DONE;
        host->pinned_with = device;
    } else {
        host->pin = PIN_REFUSED;
        syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_PIN_FALLBACKS, 1);
    }
}

static void pin_if_due(struct root *root)
{
    const struct body *body = root->body;
    const struct copy *host = &body->copies[HOST_SLOT];
    if (root->policy != SYNCEDMEM_PINNED || !host->present || !host->owned ||
        host->pin != PIN_NOT_TRIED)
        return;
    for (size_t slot = HOST_SLOT + 1; slot < body->copies_count; slot++) {
        if (body->copies[slot].present) {
            pin_with(root, body->copies[slot].place);
            return;
        }
    }
}

static void unpin(struct copy *host)
{
    if (host->pin == PIN_DONE)
        host->pinned_with->backend->unpin(host->pinned_with->device, host->memory);
}

/* ---- Memory ---- */

static syncedmem_status_t alloc_host(struct root *root, struct copy *copy)
{
    struct body *body = root->body;
    const bool fresh = syncedmem_map_summary(&body->map, 0, syncedmem_root_span(root)).has_fresh;
    const unsigned flags = (fresh ? HOST_BLOCK_ZEROED : 0U) |
                           (policy_of(root) == SYNCEDMEM_PINNED ? HOST_BLOCK_PAGES : 0U);
    copy->memory = syncedmem_host_block_alloc(root->size, flags);
    if (!copy->memory)
        return syncedmem_error_no_host_memory("the host copy of a buffer", root->size);
    copy->zeroed = fresh;
    syncedmem_count(&body->counters, SYNCEDMEM_STAT_HOST_ALLOCATIONS, 1);
    syncedmem_count(&body->counters, SYNCEDMEM_STAT_HOST_BYTES, root->size);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t alloc_device(struct root *root, struct copy *copy)
{
    const syncedmem_place *place = copy->place;
    const syncedmem_status_t status =
        place->backend->alloc(place->device, root->size, &copy->memory);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS, 1);
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_DEVICE_BYTES, root->size);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_copy_ensure(struct root *root, unsigned slot)
{
    struct copy *copy = &root->body->copies[slot];
    if (copy->present)
        return SYNCEDMEM_OK;
    if (root->size == 0) {
        copy->memory = slot == HOST_SLOT ? empty_block : NULL;
        mark_present(root, copy);
        return SYNCEDMEM_OK;
    }
    const syncedmem_status_t status =
        slot == HOST_SLOT ? alloc_host(root, copy) : alloc_device(root, copy);
    if (status != SYNCEDMEM_OK)
        return status;
    mark_present(root, copy);
    copy->owned = true;
    pin_if_due(root);
    return SYNCEDMEM_OK;
}

/* A plain pointer may still be in use by kernels on the default stream. */
static void wait_for_default_stream(const struct copy *copy)
{
    const struct backend *backend = copy->place->backend;
    struct backend_stream *stream;
    if (backend->stream_default(copy->place->device, &stream) == SYNCEDMEM_OK)
        backend->stream_wait(stream);
}

static void free_host(struct root *root, struct copy *copy)
{
    unpin(copy);
    syncedmem_host_block_free(copy->memory, root->size);
    syncedmem_uncount(&root->body->counters, SYNCEDMEM_STAT_HOST_BYTES, root->size);
}

static void free_device(struct root *root, const struct copy *copy)
{
    copy->place->backend->free(copy->place->device, copy->memory);
    syncedmem_uncount(&root->body->counters, SYNCEDMEM_STAT_DEVICE_BYTES, root->size);
}

void syncedmem_copy_free(struct root *root, unsigned slot)
{
    struct copy *copy = &root->body->copies[slot];
    if (copy->present && root->size > 0 && slot != HOST_SLOT && copy->exposed)
        wait_for_default_stream(copy);
    if (copy->owned && slot == HOST_SLOT)
        free_host(root, copy);
    else if (copy->owned)
        free_device(root, copy);
    *copy = (struct copy){.place = copy->place};
}

void syncedmem_copy_adopt(struct root *root, unsigned slot, void *memory)
{
    struct copy *copy = &root->body->copies[slot];
    if (root->size == 0) { /* keeps its fixed pointers, whatever is handed in */
        syncedmem_copy_ensure(root, slot);
        return;
    }
    syncedmem_copy_free(root, slot);
    copy->memory = memory;
    mark_present(root, copy);
    pin_if_due(root);
}

bool syncedmem_copy_overlaps_own(const struct root *root, const void *address, size_t length)
{
    const struct body *body = root->body;
    if (!body)
        return false;
    const uintptr_t start = (uintptr_t)address;
    for (size_t slot = 0; slot < body->copies_count; slot++) {
        const uintptr_t own = (uintptr_t)body->copies[slot].memory;
        if (body->copies[slot].owned && start < own + root->size && own < start + length)
            return true;
    }
    return false;
}
