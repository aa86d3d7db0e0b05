/* SPDX-License-Identifier: BSD-2-Clause */
/* Moving bytes between places: what is missing, from where, in how few submissions. */
#include <string.h>

#include "base/error.h"
#include "core/root.h"

/* Regions of one submission; more of them go in the next one. */
enum { BATCH_REGIONS = 64 };

struct batch {
    struct root *root;
    unsigned to;
    unsigned from; /* slots; the same: a fill with zero */
    size_t count;
    size_t bytes;
    struct region regions[BATCH_REGIONS];
};

/* ---- Carrying a batch out ---- */

static void count_transfer(struct root *root, unsigned to_slot, uint64_t bytes)
{
    struct counters *counters = &root->body->counters;
    const bool to_host = to_slot == HOST_SLOT;
    syncedmem_count(counters, SYNCEDMEM_STAT_TRANSFERS, 1);
    syncedmem_count(counters, to_host ? SYNCEDMEM_STAT_TRANSFERS_TO_HOST
                                      : SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE, 1);
    syncedmem_count(counters, to_host ? SYNCEDMEM_STAT_BYTES_TO_HOST
                                      : SYNCEDMEM_STAT_BYTES_TO_DEVICE, bytes);
}

static struct transfer describe(const struct root *root, unsigned to_slot, unsigned from_slot,
                                const struct region *regions, size_t count)
{
    const struct copy *to = &root->body->copies[to_slot];
    const struct copy *from = &root->body->copies[from_slot];
    return (struct transfer){
        .to = to->memory,
        .from = from->memory,
        .to_device = to->place->device,
        .from_device = from->place->device,
        .regions = regions,
        .count = count,
    };
}

/* The device that does the work: the one that receives, else the one that gives. */
static syncedmem_place *working_place(const struct root *root, unsigned to_slot, unsigned from_slot)
{
    return root->body->copies[to_slot == HOST_SLOT ? from_slot : to_slot].place;
}

static syncedmem_status_t wait_and_release(const struct backend *backend,
                                           struct backend_event *event)
{
    const syncedmem_status_t status = backend->event_wait(event);
    backend->event_release(event);
    return status;
}

static syncedmem_status_t copy_batch(const struct batch *batch)
{
    struct root *root = batch->root;
    const syncedmem_place *place = working_place(root, batch->to, batch->from);
    const struct transfer transfer =
        describe(root, batch->to, batch->from, batch->regions, batch->count);
    struct backend_stream *stream;
    struct backend_event *event;
    syncedmem_status_t status = place->backend->stream_default(place->device, &stream);
    if (status == SYNCEDMEM_OK)
        status = place->backend->copy(stream, &transfer, &event);
    if (status == SYNCEDMEM_OK)
        status = wait_and_release(place->backend, event);
    if (status == SYNCEDMEM_OK)
        count_transfer(root, batch->to, batch->bytes);
    return status;
}

static void zero_host(const struct batch *batch, char *memory)
{
    for (size_t i = 0; i < batch->count; i++)
        memset(memory + batch->regions[i].to, 0, batch->regions[i].length);
}

static syncedmem_status_t zero_device(const struct batch *batch, const struct copy *copy)
{
    const struct backend *backend = copy->place->backend;
    struct backend_stream *stream;
    struct backend_event *event;
    syncedmem_status_t status = backend->stream_default(copy->place->device, &stream);
    if (status == SYNCEDMEM_OK)
        status = backend->fill(stream, copy->memory, batch->regions, batch->count, 0, &event);
    return status == SYNCEDMEM_OK ? wait_and_release(backend, event) : status;
}

static syncedmem_status_t zero_batch(const struct batch *batch)
{
    const struct copy *copy = &batch->root->body->copies[batch->to];
    syncedmem_status_t status = SYNCEDMEM_OK;
    if (batch->to == HOST_SLOT)
        zero_host(batch, copy->memory);
    else
        status = zero_device(batch, copy);
    if (status == SYNCEDMEM_OK)
        syncedmem_count(&batch->root->body->counters, SYNCEDMEM_STAT_BYTES_ZEROED, batch->bytes);
    return status;
}

static syncedmem_status_t flush(struct batch *batch)
{
    if (batch->count == 0)
        return SYNCEDMEM_OK;
    const syncedmem_status_t status =
        batch->to == batch->from ? zero_batch(batch) : copy_batch(batch);
    batch->count = 0;
    batch->bytes = 0;
    return status;
}

static syncedmem_status_t add_region(struct batch *batch, size_t from, size_t to)
{
    batch->regions[batch->count++] = (struct region){from, from, to - from};
    batch->bytes += to - from;
    return batch->count == BATCH_REGIONS ? flush(batch) : SYNCEDMEM_OK;
}

/* ---- What is missing ---- */

/* The host first: it is there for every device. */
static unsigned source_of(place_set valid)
{
    return (unsigned)__builtin_ctzll(valid);
}

/* The slot that a segment is to come from: the target itself for zeros, none when it is current. */
enum { NOTHING_TO_DO = PLACE_SET_MAX };

static unsigned origin(const struct copy *target, unsigned slot, place_set valid)
{
    if (valid & (place_set)1 << slot)
        return NOTHING_TO_DO;
    if (valid)
        return source_of(valid);
    return target->zeroed ? NOTHING_TO_DO : slot;
}

/* Every segment of the range that is to come from one slot. */
static syncedmem_status_t bring_from(struct root *root, unsigned slot, unsigned from_slot,
                                     size_t from, size_t to)
{
    const struct body *body = root->body;
    struct batch batch = {.root = root, .to = slot, .from = from_slot};
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (size_t i = syncedmem_map_find(&body->map, from);
         status == SYNCEDMEM_OK && i < body->map.count && body->map.segments[i].start < to; i++) {
        if (origin(&body->copies[slot], slot, body->map.segments[i].valid) != from_slot)
            continue;
        const size_t start = body->map.segments[i].start;
        const size_t end = syncedmem_map_end(&body->map, i);
        status = add_region(&batch, start > from ? start : from, end < to ? end : to);
    }
    return status == SYNCEDMEM_OK ? flush(&batch) : status;
}

syncedmem_status_t syncedmem_transfer_in(struct root *root, unsigned slot, size_t from, size_t to)
{
    if (root->size == 0)
        return SYNCEDMEM_OK;
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (unsigned i = 0; status == SYNCEDMEM_OK && i < root->body->copies_count; i++)
        status = bring_from(root, slot, i, from, to);
    return status;
}

syncedmem_status_t syncedmem_transfer_start(struct root *root, unsigned to_slot, unsigned from_slot,
                                            size_t from, size_t to,
                                            struct backend_stream *stream, struct work *work)
{
    const struct region region = {from, from, to - from};
    const struct transfer transfer = describe(root, to_slot, from_slot, &region, 1);
    const struct backend *backend = working_place(root, to_slot, from_slot)->backend;
    *work = (struct work){
        .backend = backend, .reads = from_slot, .writes = to_slot, .from = from, .to = to};
    const syncedmem_status_t status = backend->copy(stream, &transfer, &work->event);
    if (status == SYNCEDMEM_OK)
        count_transfer(root, to_slot, region.length);
    return status;
}
