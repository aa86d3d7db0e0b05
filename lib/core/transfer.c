/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/error.h"
#include "core/root.h"
#include "core/transfer.h"

/* ---- What is missing ---- */

/* The slot that a segment is to come from: the target itself for zeros, NO_SLOT when nothing is
 * to be done. */
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

/* ---- Streams ---- */

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
static syncedmem_status_t order_after_default(const struct copy *copy,
                                              struct backend_stream *stream)
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

/* ---- Lists of regions: a work that may become a transfer under way ---- */

static syncedmem_status_t alloc_list(unsigned slot, unsigned source, size_t count,
                                     struct work **out_list)
{
    struct work *list = syncedmem_work_alloc(count);
    *out_list = list;
    if (!list)
        return syncedmem_error_no_host_memory("the list of a transfer",
                                              count * sizeof(struct region));
    list->reads = (int)source;
    list->writes = (int)slot;
    list->count = count;
    return SYNCEDMEM_OK;
}

static void count_transfer(struct root *root, const struct work *list)
{
    struct counters *counters = &root->body->counters;
    const uint64_t bytes = bytes_of(list->regions, list->count);
    const bool to_host = list->writes == HOST_SLOT;
    syncedmem_count(counters, SYNCEDMEM_STAT_TRANSFERS, 1);
    syncedmem_count(counters,
                    to_host ? SYNCEDMEM_STAT_TRANSFERS_TO_HOST : SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE,
                    1);
    syncedmem_count(counters,
                    to_host ? SYNCEDMEM_STAT_BYTES_TO_HOST : SYNCEDMEM_STAT_BYTES_TO_DEVICE, bytes);
}

/* What a list says, for a backend; and the stream that does it. */
struct job {
    const struct backend *backend;
    struct backend_stream *stream;
    struct transfer transfer;
};

static syncedmem_status_t make_job(const struct root *root, const struct work *list,
                                   struct stream_choice choice, struct job *job)
{
    const struct copy *to = &root->body->copies.slots[list->writes];
    const struct copy *from = &root->body->copies.slots[list->reads];
    /* The device that does the work: the one that receives, else the one that gives. */
    const struct copy *working = list->writes == HOST_SLOT ? from : to;
    job->backend = working->place->backend;
    job->transfer = (struct transfer){
        .to = to->memory,
        .from = from->memory,
        .to_device = to->place->device,
        .from_device = from->place->device,
        .regions = list->regions,
        .count = list->count,
    };
    syncedmem_status_t status = choose_stream(working->place, choice, &job->stream);
    if (status == SYNCEDMEM_OK)
        status = order_after_default(working, job->stream);
    if (status == SYNCEDMEM_OK && working != from && list->reads != HOST_SLOT)
        status = order_after_default(from, job->stream);
    return status;
}

/* ---- Copies. Each takes the list over ---- */

static syncedmem_status_t copy_and_wait(struct root *root, struct work *list,
                                        struct stream_choice choice)
{
    struct job job;
    syncedmem_status_t status = make_job(root, list, choice, &job);
    if (status == SYNCEDMEM_OK)
        status = job.backend->copy_wait(job.stream, &job.transfer);
    if (status == SYNCEDMEM_OK)
        count_transfer(root, list);
    syncedmem_work_discard(list);
    return status;
}

static syncedmem_status_t copy_and_go_on(struct root *root, struct work *list,
                                         struct stream_choice choice)
{
    struct job job;
    syncedmem_status_t status = make_job(root, list, choice, &job);
    if (status == SYNCEDMEM_OK)
        status = job.backend->copy(job.stream, &job.transfer, &list->event);
    if (status != SYNCEDMEM_OK) {
        syncedmem_work_discard(list);
        return status;
    }
    const struct region *last = &list->regions[list->count - 1];
    list->backend = job.backend;
    list->from = list->regions[0].to;
    list->to = last->to + last->length;
    count_transfer(root, list);
    syncedmem_work_add(root, list);
    return SYNCEDMEM_OK;
}

/* ---- Fills ---- */

static void fill_host(char *memory, const struct region *regions, size_t count, uint8_t value)
{
    for (size_t i = 0; i < count; i++)
        memset(memory + regions[i].to, value, regions[i].length);
}

static syncedmem_status_t fill_device(const struct copy *copy, const struct region *regions,
                                      size_t count, uint8_t value, struct stream_choice choice)
{
    struct backend_stream *stream;
    syncedmem_status_t status = choose_stream(copy->place, choice, &stream);
    if (status == SYNCEDMEM_OK)
        status = order_after_default(copy, stream);
    if (status != SYNCEDMEM_OK)
        return status;
    return copy->place->backend->fill_wait(stream, copy->memory, regions, count, value);
}

static syncedmem_status_t fill_regions(struct root *root, unsigned slot,
                                       const struct region *regions, size_t count, uint8_t value,
                                       struct stream_choice choice)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    if (slot != HOST_SLOT)
        return fill_device(copy, regions, count, value, choice);
    fill_host(copy->memory, regions, count, value);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_transfer_fill(struct root *root, unsigned slot, size_t from, size_t to,
                                           uint8_t value)
{
    const struct region region = {from, from, to - from};
    return fill_regions(root, slot, &region, 1, value, (struct stream_choice){0});
}

/* Waited for even where copies are not: what is fresh is nowhere else, so nothing could make up
 * for a later failure. */
static syncedmem_status_t zero_regions(struct root *root, struct work *list,
                                       struct stream_choice choice)
{
    const syncedmem_status_t status =
        fill_regions(root, (unsigned)list->writes, list->regions, list->count, 0, choice);
    if (status == SYNCEDMEM_OK)
        syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_BYTES_ZEROED,
                        bytes_of(list->regions, list->count));
    syncedmem_work_discard(list);
    return status;
}

/* ---- All of it ---- */

struct task {
    unsigned slot;
    size_t from;
    size_t to;
    struct stream_choice choice;
    bool wait;
};

/* All parts that come from one slot are one submission; the slot itself is the origin of zeros. */
static syncedmem_status_t bring_from(struct root *root, const struct task *task, unsigned source)
{
    const size_t count = list_regions(root, task->slot, (int)source, task->from, task->to, NULL);
    if (count == 0)
        return SYNCEDMEM_OK;
    struct work *list;
    const syncedmem_status_t status = alloc_list(task->slot, source, count, &list);
    if (status != SYNCEDMEM_OK)
        return status;
    list_regions(root, task->slot, (int)source, task->from, task->to, list->regions);
    if (source == task->slot)
        return zero_regions(root, list, task->choice);
    return task->wait ? copy_and_wait(root, list, task->choice)
                      : copy_and_go_on(root, list, task->choice);
}

/* Bytes that arrive overwrite the slot's, whose users have to be done; and their sources have to
 * be there. */
static syncedmem_status_t settle_before(struct root *root, const struct task *task)
{
    syncedmem_status_t status = syncedmem_work_settle(root, task->slot, task->from, task->to, true);
    for (unsigned other = 0; status == SYNCEDMEM_OK && other < root->body->copies.count; other++)
        if (other != task->slot)
            status = syncedmem_work_settle(root, other, task->from, task->to, false);
    return status;
}

static syncedmem_status_t carry_out(struct root *root, const struct task *task)
{
    syncedmem_status_t status = settle_before(root, task);
    if (root->size == 0)
        return status;
    for (unsigned source = 0; status == SYNCEDMEM_OK && source < root->body->copies.count; source++)
        status = bring_from(root, task, source);
    return status;
}

syncedmem_status_t syncedmem_transfer_start(struct root *root, unsigned slot, size_t from,
                                            size_t to, struct stream_choice choice)
{
    return carry_out(root, &(struct task){slot, from, to, choice, false});
}

syncedmem_status_t syncedmem_transfer_in(struct root *root, unsigned slot, size_t from, size_t to,
                                         struct stream_choice choice)
{
    return carry_out(root, &(struct task){slot, from, to, choice, true});
}

syncedmem_status_t syncedmem_transfer_regions(struct root *root, unsigned slot, unsigned source,
                                              const struct region *regions, size_t count)
{
    struct work *list;
    const syncedmem_status_t status = alloc_list(slot, source, count, &list);
    if (status != SYNCEDMEM_OK)
        return status;
    memcpy(list->regions, regions, count * sizeof *regions);
    const struct stream_choice choice = {0};
    return source == slot ? zero_regions(root, list, choice) : copy_and_wait(root, list, choice);
}

/* ---- Within a place ---- */

static syncedmem_status_t copy_on_device(const syncedmem_place *place,
                                         const struct transfer *transfer)
{
    struct backend_stream *stream;
    const syncedmem_status_t status = place->backend->stream_default(place->device, &stream);
    return status == SYNCEDMEM_OK ? place->backend->copy_wait(stream, transfer) : status;
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
