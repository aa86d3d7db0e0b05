/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/error.h"
#include "core/root.h"
#include "core/transfer.h"

/* ---- What is missing ---- */

/* The slot that a segment is to come from: the target itself for zeros, NO_SLOT when nothing is to be done. */
static int origin(const struct copy *target, unsigned slot, place_set valid)
{
    if (valid & slot_bit(slot))
        return NO_SLOT;
    if (valid)
        return __builtin_ctzll(valid); /* the host first: it is there for every device */
    return target->zeroed ? NO_SLOT : (int)slot;
}

/* Lists the parts of a range that are to come from one slot; how many there are. */
static size_t list_regions(const struct root *root, unsigned slot, int wanted, size_t from,
                           size_t to, struct region *regions)
{
    const struct map *map = &root->body->map;
    const struct copy *target = &root->body->copies.slots[slot];
    size_t count = 0;
    for (size_t i = syncedmem_map_find(map, from); i < map->count && map->segments[i].start < to;
         i++) {
        if (origin(target, slot, map->segments[i].valid) != wanted)
            continue;
        const size_t start = map->segments[i].start > from ? map->segments[i].start : from;
        const size_t map_end = syncedmem_map_end(map, i);
        const size_t end = map_end < to ? map_end : to;
        if (regions)
            regions[count] = (struct region){start, start, end - start};
        count++;
    }
    return count;
}

static uint64_t bytes_of(const struct region *regions, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += regions[i].length;
    return bytes;
}

/* ---- Copies ---- */

static syncedmem_status_t choose_stream(const syncedmem_place *place, struct stream_choice choice,
                                        struct backend_stream **out_stream)
{
    if (choice.place == place && choice.stream) {
        *out_stream = choice.stream;
        return SYNCEDMEM_OK;
    }
    return place->backend->stream_default(place->device, out_stream);
}

/* Kernels on the default stream may still use bytes whose pointer was given out, which work on
 * another stream is about to replace or to read. */
static syncedmem_status_t order_after_default(const struct copy *copy, struct backend_stream *stream)
{
    if (!copy->exposed)
        return SYNCEDMEM_OK;
    const struct backend *backend = copy->place->backend;
    struct backend_stream *default_stream;
    struct backend_event *event;
    syncedmem_status_t status = backend->stream_default(copy->place->device, &default_stream);
    if (status != SYNCEDMEM_OK || stream == default_stream)
        return status;
    status = backend->record(default_stream, &event);
    if (status != SYNCEDMEM_OK)
        return status;
    status = backend->stream_wait_event(stream, event);
    backend->event_release(event);
    return status;
}

syncedmem_status_t syncedmem_transfer_order(const struct root *root, unsigned slot,
                                            struct backend_stream *stream)
{
    return order_after_default(&root->body->copies.slots[slot], stream);
}

static void count_transfer(struct root *root, const struct work *work)
{
    struct counters *counters = &root->body->counters;
    const bool to_host = work->writes == HOST_SLOT;
    syncedmem_count(counters, SYNCEDMEM_STAT_TRANSFERS, 1);
    syncedmem_count(counters,
                    to_host ? SYNCEDMEM_STAT_TRANSFERS_TO_HOST : SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE,
                    1);
    syncedmem_count(counters, to_host ? SYNCEDMEM_STAT_BYTES_TO_HOST : SYNCEDMEM_STAT_BYTES_TO_DEVICE,
                    bytes_of(work->regions, work->count));
}

static syncedmem_status_t submit_copy(struct root *root, struct work *work,
                                      struct stream_choice choice)
{
    const struct copy *to = &root->body->copies.slots[work->writes];
    const struct copy *from = &root->body->copies.slots[work->reads];
    /* The device that does the work: the one that receives, else the one that gives. */
    const struct copy *working = work->writes == HOST_SLOT ? from : to;
    const struct transfer transfer = {
        .to = to->memory,
        .from = from->memory,
        .to_device = to->place->device,
        .from_device = from->place->device,
        .regions = work->regions,
        .count = work->count,
    };
    struct backend_stream *stream;
    work->backend = working->place->backend;
    syncedmem_status_t status = choose_stream(working->place, choice, &stream);
    if (status == SYNCEDMEM_OK)
        status = order_after_default(working, stream);
    if (status == SYNCEDMEM_OK)
        status = work->backend->copy(stream, &transfer, &work->event);
    return status;
}

/* The work owns its list of regions; it is listed at the root, or gone. */
static syncedmem_status_t start_work(struct root *root, struct work *work,
                                     struct stream_choice choice)
{
    const struct region *last = &work->regions[work->count - 1];
    work->from = work->regions[0].from;
    work->to = last->from + last->length;
    const syncedmem_status_t status = submit_copy(root, work, choice);
    if (status != SYNCEDMEM_OK) {
        syncedmem_work_discard(work);
        return status;
    }
    count_transfer(root, work);
    syncedmem_work_add(root, work);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t alloc_work(unsigned slot, unsigned source, size_t count,
                                     struct work **out_work)
{
    struct work *work = syncedmem_work_alloc(count);
    *out_work = work;
    if (!work)
        return syncedmem_error_no_host_memory("the list of a transfer",
                                              count * sizeof(struct region));
    work->reads = (int)source;
    work->writes = (int)slot;
    work->count = count;
    return SYNCEDMEM_OK;
}

/* All parts that come from one slot are one submission. */
static syncedmem_status_t start_from(struct root *root, unsigned slot, unsigned source, size_t from,
                                     size_t to, struct stream_choice choice)
{
    const size_t count = list_regions(root, slot, (int)source, from, to, NULL);
    if (count == 0)
        return SYNCEDMEM_OK;
    struct work *work;
    const syncedmem_status_t status = alloc_work(slot, source, count, &work);
    if (status != SYNCEDMEM_OK)
        return status;
    list_regions(root, slot, (int)source, from, to, work->regions);
    return start_work(root, work, choice);
}

/* ---- Fills ---- */

static void fill_host(char *memory, const struct region *regions, size_t count, uint8_t value)
{
    for (size_t i = 0; i < count; i++)
        memset(memory + regions[i].to, value, regions[i].length);
}

static syncedmem_status_t fill_device(const struct copy *copy, const struct region *regions,
                                      size_t count, uint8_t value)
{
    const struct backend *backend = copy->place->backend;
    struct backend_stream *stream;
    struct backend_event *event;
    syncedmem_status_t status = backend->stream_default(copy->place->device, &stream);
    if (status == SYNCEDMEM_OK)
        status = backend->fill(stream, copy->memory, regions, count, value, &event);
    if (status != SYNCEDMEM_OK)
        return status;
    status = backend->event_wait(event);
    backend->event_release(event);
    return status;
}

static syncedmem_status_t fill_regions(struct root *root, unsigned slot,
                                       const struct region *regions, size_t count, uint8_t value)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    if (slot != HOST_SLOT)
        return fill_device(copy, regions, count, value);
    fill_host(copy->memory, regions, count, value);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_transfer_fill(struct root *root, unsigned slot, size_t from, size_t to,
                                           uint8_t value)
{
    const struct region region = {from, from, to - from};
    return fill_regions(root, slot, &region, 1, value);
}

static syncedmem_status_t zero_regions(struct root *root, unsigned slot,
                                       const struct region *regions, size_t count)
{
    const syncedmem_status_t status = fill_regions(root, slot, regions, count, 0);
    if (status == SYNCEDMEM_OK)
        syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_BYTES_ZEROED,
                        bytes_of(regions, count));
    return status;
}

/* Waited for at once: what is fresh is nowhere else, so nothing could make up for a later failure. */
static syncedmem_status_t zero_fresh(struct root *root, unsigned slot, size_t from, size_t to)
{
    const size_t count = list_regions(root, slot, (int)slot, from, to, NULL);
    if (count == 0)
        return SYNCEDMEM_OK;
    struct work *list;
    syncedmem_status_t status = alloc_work(slot, slot, count, &list);
    if (status != SYNCEDMEM_OK)
        return status;
    list_regions(root, slot, (int)slot, from, to, list->regions);
    status = zero_regions(root, slot, list->regions, count);
    syncedmem_work_discard(list);
    return status;
}

/* ---- All of it ---- */

/* Bytes that arrive overwrite the slot's, whose users have to be done; and their sources have to
 * be there. */
static syncedmem_status_t settle_before(struct root *root, unsigned slot, size_t from, size_t to)
{
    syncedmem_status_t status = syncedmem_work_settle(root, slot, from, to, true);
    for (unsigned other = 0; status == SYNCEDMEM_OK && other < root->body->copies.count; other++)
        if (other != slot)
            status = syncedmem_work_settle(root, other, from, to, false);
    return status;
}

static syncedmem_status_t start_all(struct root *root, unsigned slot, size_t from, size_t to,
                                    struct stream_choice choice)
{
    if (root->size == 0)
        return SYNCEDMEM_OK;
    syncedmem_status_t status = zero_fresh(root, slot, from, to);
    for (unsigned source = 0; status == SYNCEDMEM_OK && source < root->body->copies.count; source++)
        if (source != slot)
            status = start_from(root, slot, source, from, to, choice);
    return status;
}

syncedmem_status_t syncedmem_transfer_start(struct root *root, unsigned slot, size_t from,
                                            size_t to, struct stream_choice choice)
{
    const syncedmem_status_t status = settle_before(root, slot, from, to);
    return status == SYNCEDMEM_OK ? start_all(root, slot, from, to, choice) : status;
}

/* What this call started is not a wait of its own in the statistics. */
static void mark_waited_for(struct root *root, const struct work *before)
{
    for (struct work *work = root->body->works; work != before; work = work->next)
        work->waited_for = true;
}

syncedmem_status_t syncedmem_transfer_in(struct root *root, unsigned slot, size_t from, size_t to,
                                         struct stream_choice choice)
{
    syncedmem_status_t status = settle_before(root, slot, from, to);
    if (status != SYNCEDMEM_OK)
        return status;
    const struct work *before = root->body->works;
    status = start_all(root, slot, from, to, choice);
    mark_waited_for(root, before);
    const syncedmem_status_t arrival = syncedmem_work_settle(root, slot, from, to, true);
    return status == SYNCEDMEM_OK ? arrival : status;
}

syncedmem_status_t syncedmem_transfer_regions(struct root *root, unsigned slot, unsigned source,
                                              const struct region *regions, size_t count)
{
    if (source == slot)
        return zero_regions(root, slot, regions, count);
    struct work *work;
    syncedmem_status_t status = alloc_work(slot, source, count, &work);
    if (status != SYNCEDMEM_OK)
        return status;
    memcpy(work->regions, regions, count * sizeof *regions);
    work->waited_for = true;
    status = start_work(root, work, (struct stream_choice){0});
    if (status != SYNCEDMEM_OK)
        return status;
    return syncedmem_work_settle(root, slot, regions[0].from,
                                 regions[count - 1].from + regions[count - 1].length, true);
}

/* ---- Within a place ---- */

static syncedmem_status_t copy_on_device(const syncedmem_place *place,
                                         const struct transfer *transfer)
{
    struct backend_stream *stream;
    struct backend_event *event;
    syncedmem_status_t status = place->backend->stream_default(place->device, &stream);
    if (status == SYNCEDMEM_OK)
        status = place->backend->copy(stream, transfer, &event);
    if (status != SYNCEDMEM_OK)
        return status;
    status = place->backend->event_wait(event);
    place->backend->event_release(event);
    return status;
}

syncedmem_status_t syncedmem_transfer_within(const syncedmem_place *place, void *to,
                                             size_t to_offset, void *from, size_t from_offset,
                                             size_t length)
{
    if (place_is_host(place)) {
        memmove((char *)to + to_offset, (const char *)from + from_offset, length);
        return SYNCEDMEM_OK;
    }
    const struct region region = {to_offset, from_offset, length};
    return copy_on_device(place, &(struct transfer){.to = to,
                                                    .from = from,
                                                    .to_device = place->device,
                                                    .from_device = place->device,
                                                    .regions = &region,
                                                    .count = 1});
}
