/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory that each place has of a root. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "core/retire.h"
#include "core/root.h"
#include "core/transfer.h"
#include "memory/host_block.h"
#include "trace/trace.h"

_Atomic(int32_t) syncedmem_default_policy = SYNCEDMEM_PAGEABLE;

/* The host pointer of buffers of size 0. */
static _Alignas(HOST_BLOCK_ALIGNMENT) char empty_block[HOST_BLOCK_ALIGNMENT];

/* ---- Policy ---- */

static syncedmem_host_policy_t policy_of(const struct root *root)
{
    if (root->policy != 0)
        return root->policy;
    return atomic_load_explicit(&syncedmem_default_policy, memory_order_relaxed);
}

void syncedmem_copies_capture_policy(struct root *root)
{
    root->policy = (uint8_t)policy_of(root);
    root->touched = true;
}

/* ---- Slots ---- */

void syncedmem_copies_init(struct copies *copies)
{
    *copies = (struct copies){.slots = copies->first, .count = 1, .capacity = FIRST_COPIES};
    copies->slots[HOST_SLOT].place = syncedmem_host();
}

void syncedmem_copies_destroy(struct root *root)
{
    struct copies *copies = &root->body->copies;
    for (unsigned slot = 0; slot < copies->count; slot++)
        syncedmem_copy_free(root, slot);
    if (copies->slots != copies->first)
        free(copies->slots);
}

bool syncedmem_copy_find(const struct body *body, const syncedmem_place *place, unsigned *out_slot)
{
    for (unsigned slot = 0; slot < body->copies.count; slot++) {
        if (body->copies.slots[slot].place == place) {
            *out_slot = slot;
            return true;
        }
    }
    return false;
}

static bool grow(struct copies *copies)
{
    const size_t capacity = copies->capacity * 2;
    struct copy *slots = malloc(capacity * sizeof *slots);
    if (!slots)
        return false;
    memcpy(slots, copies->slots, copies->count * sizeof *slots);
    if (copies->slots != copies->first)
        free(copies->slots);
    copies->slots = slots;
    copies->capacity = capacity;
    return true;
}

bool syncedmem_copies_in_reach(const struct root *root)
{
    const struct copies *copies = &root->body->copies;
    for (size_t slot = 0; slot < copies->count; slot++)
        if (!place_in_reach(copies->slots[slot].place))
            return false;
    return true;
}

syncedmem_status_t syncedmem_copy_slot(struct root *root, syncedmem_place *place,
                                       unsigned *out_slot)
{
    struct copies *copies = &root->body->copies;
    if (syncedmem_copy_find(root->body, place, out_slot))
        return SYNCEDMEM_OK;
    if (copies->count == PLACE_SET_MAX)
        return syncedmem_error(SYNCEDMEM_UNSUPPORTED, "one buffer can be used at %d places",
                               PLACE_SET_MAX);
    if (copies->count == copies->capacity && !grow(copies))
        return syncedmem_error_no_host_memory("the records of a buffer",
                                              2 * copies->capacity * sizeof(struct copy));
    *out_slot = (unsigned)copies->count++;
    copies->slots[*out_slot] = (struct copy){.place = place};
    return SYNCEDMEM_OK;
}

/* ---- Pinning: a host block of ours is registered with the first device that is used ---- */

/* Refusal is no failure: the buffer works on with pageable memory, and count and log show it. */
static void pin_with(struct root *root, syncedmem_place *device)
{
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    struct copy *host = &root->body->copies.slots[HOST_SLOT];
    if (device->backend->pin(device->device, host->memory, root->size) == SYNCEDMEM_OK) {
        host->pin = PIN_DONE;
        host->pinned_with = device;
        host->pinned_losses = place_losses(device);
    } else {
        host->pin = PIN_REFUSED;
        syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_PIN_FALLBACKS, 1);
        syncedmem_log(SYNCEDMEM_LOG_WARNING, "a host block of %zu bytes stays pageable: %s",
                      root->size, syncedmem_error_text());
        syncedmem_error_put_back(&kept);
    }
}

static void pin_if_due(struct root *root)
{
    const struct copies *copies = &root->body->copies;
    const struct copy *host = &copies->slots[HOST_SLOT];
    if (policy_of(root) != SYNCEDMEM_PINNED || !host->present || !host->owned ||
        host->pin != PIN_NOT_TRIED)
        return;
    for (size_t slot = HOST_SLOT + 1; slot < copies->count; slot++) {
        if (copies->slots[slot].present && place_in_reach(copies->slots[slot].place)) {
            pin_with(root, copies->slots[slot].place);
            return;
        }
    }
}

/* ---- Memory ---- */

/* Whether bytes outside of a range are fresh, so that a new block has to show zeros. */
static bool has_fresh_outside(const struct root *root, size_t from, size_t to)
{
    const struct map *map = &root->body->map;
    return syncedmem_map_summary(map, 0, from).has_fresh ||
           syncedmem_map_summary(map, to, map->span).has_fresh;
}

static syncedmem_key_t stat_of_bytes(const syncedmem_place *place)
{
    return place_is_host(place) ? SYNCEDMEM_STAT_HOST_BYTES : SYNCEDMEM_STAT_DEVICE_BYTES;
}

static void trace_block(const struct root *root, enum trace_kind kind, const syncedmem_place *place,
                        uint64_t start)
{
    if (trace_is_on())
        syncedmem_trace(&(struct trace_event){.kind = kind,
                                              .start = start,
                                              .buffer = root->body->number,
                                              .bytes = root->size,
                                              .regions = 1,
                                              .place = place->name});
}

static syncedmem_status_t alloc_host(struct root *root, struct copy *copy, bool zeroed)
{
    const uint64_t start = trace_start();
    const unsigned flags = (zeroed ? HOST_BLOCK_ZEROED : 0U) |
                           (policy_of(root) == SYNCEDMEM_PINNED ? HOST_BLOCK_PAGES : 0U);
    copy->memory = syncedmem_host_block_alloc(root->size, flags);
    if (!copy->memory)
        return syncedmem_error_no_host_memory("the host copy of a buffer", root->size);
    copy->zeroed = zeroed;
    trace_block(root, TRACE_ALLOCATION, copy->place, start);
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_HOST_ALLOCATIONS, 1);
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_HOST_BYTES, root->size);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t alloc_device(struct root *root, struct copy *copy)
{
    const syncedmem_place *place = copy->place;
    const uint64_t start = trace_start();
    copy->losses = place_losses(place);
    syncedmem_retired_visit();
    syncedmem_status_t status = place->backend->alloc(place->device, root->size, &copy->memory);
    /* Blocks that are still in use may be all that is in the way. */
    if (status == SYNCEDMEM_OUT_OF_DEVICE_MEMORY && syncedmem_retired_wait(place))
        status = place->backend->alloc(place->device, root->size, &copy->memory);
    if (status != SYNCEDMEM_OK)
        return status;
    trace_block(root, TRACE_ALLOCATION, place, start);
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS, 1);
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_DEVICE_BYTES, root->size);
    return SYNCEDMEM_OK;
}

static __attribute__((cold)) syncedmem_status_t make_copy(struct root *root, unsigned slot,
                                                          size_t from, size_t to)
{
    struct copy *copy = &root->body->copies.slots[slot];
    copy->losses = place_losses(copy->place);
    if (root->size == 0) {
        copy->present = true;
        return SYNCEDMEM_OK;
    }
    const syncedmem_status_t status =
        slot == HOST_SLOT ? alloc_host(root, copy, has_fresh_outside(root, from, to))
                          : alloc_device(root, copy);
    if (status != SYNCEDMEM_OK)
        return status;
    copy->owned = true;
    copy->present = true;
    pin_if_due(root);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_copy_ensure(struct root *root, unsigned slot, size_t from, size_t to)
{
    return root->body->copies.slots[slot].present ? SYNCEDMEM_OK : make_copy(root, slot, from, to);
}

void *syncedmem_copy_address(const struct root *root, unsigned slot, size_t offset, size_t length)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    if (length > 0)
        return (char *)copy->memory + offset;
    return slot == HOST_SLOT ? empty_block : NULL;
}

/* ---- The end of memory ---- */

/* Its release function is called when the lock has been given back. In a forked child that of device
 * memory is not: it would call a driver. */
static void finish_adoption(struct root *root, const struct copy *copy)
{
    if (!place_in_reach(copy->place)) {
        free(copy->adoption);
        return;
    }
    struct adoption **last = &root->body->finished;
    while (*last)
        last = &(*last)->next;
    *last = copy->adoption;
}

/* Kernels on the default stream may use a pointer that was given out. */
static void wait_for_default_stream(const struct copy *copy)
{
    struct stream_ref ref;
    if (copy->exposed && !place_is_host(copy->place) &&
        syncedmem_place_default_stream(copy->place, &ref) == SYNCEDMEM_OK)
        copy->place->backend->stream_wait(ref.stream);
}

/* Ends the use of memory that has been replaced, or is about to be. */
static void end_memory(struct root *root, unsigned slot)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    if (copy->owned) {
        syncedmem_uncount_root(&root->body->counters, stat_of_bytes(copy->place), root->size);
        if (syncedmem_retire(root, slot))
            return;
    }
    if (copy->memory) {
        syncedmem_work_await_slot(root, slot);
        wait_for_default_stream(copy);
    }
    if (copy->owned)
        syncedmem_retired_free(copy, root->size, root->body->number);
    if (copy->adoption)
        finish_adoption(root, copy);
}

void syncedmem_copy_free(struct root *root, unsigned slot)
{
    struct copy *copy = &root->body->copies.slots[slot];
    struct kept_error kept; /* how a transfer ended matters to no one any more */
    syncedmem_error_keep(&kept);
    end_memory(root, slot);
    syncedmem_error_put_back(&kept);
    syncedmem_work_leave_slot(root, slot);
    *copy = (struct copy){.place = copy->place};
}

void syncedmem_copy_lose(struct root *root, unsigned slot)
{
    struct copy *copy = &root->body->copies.slots[slot];
    if (copy->owned) {
        trace_block(root, TRACE_FREE, copy->place, trace_start());
        syncedmem_uncount(&root->body->counters, SYNCEDMEM_STAT_DEVICE_BYTES, root->size);
    }
    if (copy->adoption)
        finish_adoption(root, copy);
    syncedmem_work_leave_slot(root, slot);
    /* A change that begins and ends where the root does cuts nothing. */
    syncedmem_map_withdraw(&root->body->map, 0, syncedmem_root_span(root), slot_bit(slot),
                           root->size > 0 ? LOST : 0);
    *copy = (struct copy){.place = copy->place, .lost = true};
}

syncedmem_status_t syncedmem_copies_check_lost(const struct root *root, size_t from, size_t to)
{
    const struct map *map = &root->body->map;
    if (!(syncedmem_map_summary(map, from, to).in_any & LOST))
        return SYNCEDMEM_OK;
    size_t i = syncedmem_map_find(map, from);
    while (!(map->segments[i].valid & LOST))
        i++;
    return syncedmem_error(SYNCEDMEM_DATA_LOST,
                           "bytes %zu to %zu are lost with their only place: write them anew",
                           map->segments[i].start, syncedmem_map_end(map, i));
}

/* ---- Adopted memory ---- */

void syncedmem_copy_adopt(struct root *root, unsigned slot, void *memory, bool read_only,
                          struct adoption *adoption)
{
    struct copy *copy = &root->body->copies.slots[slot];
    syncedmem_copy_free(root, slot);
    copy->adoption = adoption;
    copy->present = true;
    if (root->size == 0) /* keeps its fixed pointers, whatever is handed in */
        return;
    copy->memory = memory;
    copy->losses = place_losses(copy->place);
    copy->read_only = read_only;
    pin_if_due(root);
}

bool syncedmem_copy_overlaps_own(const struct root *root, const void *address, size_t length)
{
    if (!root->body)
        return false;
    const struct copies *copies = &root->body->copies;
    const uintptr_t start = (uintptr_t)address;
    for (size_t slot = 0; slot < copies->count; slot++) {
        const uintptr_t own = (uintptr_t)copies->slots[slot].memory;
        if (copies->slots[slot].owned && start < own + root->size && own < start + length)
            return true;
    }
    return false;
}

/* What the slot holds of the newest bytes, but for [from, to), goes to the new memory. */
static syncedmem_status_t copy_valid(const struct root *root, unsigned slot, void *memory,
                                     size_t from, size_t to)
{
    const struct map *map = &root->body->map;
    const struct copy *copy = &root->body->copies.slots[slot];
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (size_t i = 0; status == SYNCEDMEM_OK && i < map->count; i++) {
        const size_t start = map->segments[i].start, end = syncedmem_map_end(map, i);
        const bool overwritten = from <= start && end <= to;
        if (map->segments[i].valid & slot_bit(slot) && !overwritten)
            status = syncedmem_transfer_within(
                copy->place, (struct bytes_at){memory, start, false},
                (struct bytes_at){copy->memory, start, copy->exposed}, end - start);
    }
    return status;
}

syncedmem_status_t syncedmem_copy_make_writable(struct root *root, unsigned slot, size_t from,
                                                size_t to)
{
    struct copy *copy = &root->body->copies.slots[slot];
    syncedmem_status_t status = syncedmem_lease_check_slot(root, slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_settle_slot(root, slot);
    if (status != SYNCEDMEM_OK)
        return status;
    struct copy own = {.place = copy->place, .owned = true, .present = true};
    status = slot == HOST_SLOT ? alloc_host(root, &own, has_fresh_outside(root, from, to))
                               : alloc_device(root, &own);
    if (status != SYNCEDMEM_OK)
        return status;
    status = copy_valid(root, slot, own.memory, from, to);
    if (status != SYNCEDMEM_OK) {
        syncedmem_uncount_root(&root->body->counters, stat_of_bytes(own.place), root->size);
        syncedmem_retired_free(&own, root->size, root->body->number);
        return status;
    }
    end_memory(root, slot);
    *copy = own;
    pin_if_due(root);
    syncedmem_root_changed(root);
    return SYNCEDMEM_OK;
}
