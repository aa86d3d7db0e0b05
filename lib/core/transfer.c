/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/error.h"
#include "core/root.h"
#include "core/transfer.h"
#include "trace/trace.h"

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

place_set syncedmem_transfer_sources(const struct root *root, unsigned slot, size_t from, size_t to)
{
    const struct map *map = &root->body->map;
    const struct copy *target = &root->body->copies.slots[slot];
    place_set sources = 0;
    for (size_t i = syncedmem_map_find(map, from); i < map->count && map->segments[i].start < to;
         i++) {
        const int source = origin(target, slot, map->segments[i].valid);
        if (source != NO_SLOT)
            sources |= slot_bit((unsigned)source);
    }
    return sources;
}

static uint64_t bytes_of(const struct region *regions, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += regions[i].length;
    return bytes;
}

/* ---- Streams ---- */

/* Kernels on the default stream may still use bytes whose pointer was given out, which work on
 * another stream is about to replace or to read. */
static syncedmem_status_t order_after_default(const struct copy *copy, struct stream_ref stream)
{
    if (!copy->exposed || place_is_host(copy->place))
        return SYNCEDMEM_OK;
    const struct backend *backend = copy->place->backend;
    struct stream_ref default_stream;
    struct backend_event *event;
    syncedmem_status_t status = syncedmem_place_default_stream(copy->place, &default_stream);
    if (status != SYNCEDMEM_OK || stream.number == default_stream.number)
        return status;
    status = backend->record(default_stream.stream, &event);
    if (status != SYNCEDMEM_OK)
        return status;
    status = backend->stream_wait_event(stream.stream, event);
    backend->event_release(event);
    return status;
}

syncedmem_status_t syncedmem_transfer_order(struct root *root, struct use use,
                                            struct stream_ref stream)
{
    const struct copy *copy = &root->body->copies.slots[use.slot];
    const syncedmem_status_t status = syncedmem_work_order(root, use, copy->place, stream);
    return status == SYNCEDMEM_OK ? order_after_default(copy, stream) : status;
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
    list->moves = true;
    list->is_fill = slot == source;
    return SYNCEDMEM_OK;
}

static void count_transfer(struct root *root, const struct work *list)
{
    struct counters *counters = &root->body->counters;
    const uint64_t bytes = bytes_of(list->regions, list->count);
    syncedmem_count(counters, SYNCEDMEM_STAT_TRANSFERS, 1);
    if (list->writes == HOST_SLOT) {
        syncedmem_count(counters, SYNCEDMEM_STAT_TRANSFERS_TO_HOST, 1);
        syncedmem_count(counters, SYNCEDMEM_STAT_BYTES_TO_HOST, bytes);
    } else if (list->reads == HOST_SLOT) {
        syncedmem_count(counters, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE, 1);
        syncedmem_count(counters, SYNCEDMEM_STAT_BYTES_TO_DEVICE, bytes);
    }
}

/* What a list says, for a backend; and the stream that does it. */
struct job {
    syncedmem_place *place; /* whose stream it is */
    struct stream_ref stream;
    struct transfer transfer;
    uint64_t start; /* for the trace */
};

/* On its own stream the library waits for nothing but the buffer's work; where kernels on the
 * default stream have to be waited for, that would be a wait for others. */
static syncedmem_status_t choose_stream(const struct root *root, const struct work *list,
                                        struct stream_choice choice, struct job *job)
{
    const struct copy *slots = root->body->copies.slots;
    if (choice.place == job->place) {
        job->stream = choice.ref;
        return place_require(job->place);
    }
    if (!choice.own || slots[list->writes].exposed || slots[list->reads].exposed)
        return syncedmem_place_default_stream(job->place, &job->stream);
    return syncedmem_place_own_stream(job->place, &job->stream);
}

/* The device that does the work: the one that receives, else the one that gives. */
static syncedmem_place *working_place(const struct copy *to, const struct copy *from)
{
    return place_is_host(to->place) ? from->place : to->place;
}

static syncedmem_status_t make_job(const struct root *root, const struct work *list,
                                   struct stream_choice choice, struct job *job)
{
    const struct copy *to = &root->body->copies.slots[list->writes];
    const struct copy *from = &root->body->copies.slots[list->reads];
    *job = (struct job){.place = working_place(to, from), .start = trace_start()};
    job->transfer = (struct transfer){
        .to = to->memory,
        .from = from->memory,
        .to_device = to->place->device,
        .from_device = from->place->device,
        .regions = list->regions,
        .count = list->count,
    };
    syncedmem_status_t status = choose_stream(root, list, choice, job);
    if (status == SYNCEDMEM_OK)
        status = place_require(from->place);
    if (status == SYNCEDMEM_OK)
        status = order_after_default(to, job->stream);
    if (status == SYNCEDMEM_OK && from != to)
        status = order_after_default(from, job->stream);
    return status;
}

/* The range that holds all regions. */
static void set_hull(struct work *list)
{
    const struct region *last = &list->regions[list->count - 1];
    list->from = list->regions[0].to;
    list->to = last->to + last->length;
}

/* Bytes that arrive overwrite the slot's, whose users come first, and so does what brings them to the
 * source. */
static syncedmem_status_t order_job(struct root *root, const struct work *list,
                                    const struct job *job)
{
    const struct use arriving = use_of((unsigned)list->writes, list->from, list->to, true);
    const struct use leaving = use_of((unsigned)list->reads, list->from, list->to, false);
    const syncedmem_status_t status = syncedmem_work_order(root, arriving, job->place, job->stream);
    return status == SYNCEDMEM_OK ? syncedmem_work_order(root, leaving, job->place, job->stream)
                                  : status;
}

static void trace_list(const struct root *root, const struct work *list, const struct job *job)
{
    if (!trace_is_on())
        return;
    const struct copy *slots = root->body->copies.slots;
    syncedmem_trace(&(struct trace_event){
        .kind = list->is_fill ? TRACE_ZERO : TRACE_TRANSFER,
        .start = job->start,
        .buffer = root->body->number,
        .bytes = bytes_of(list->regions, list->count),
        .regions = list->count,
        .place = slots[list->writes].place->name,
        .from = list->is_fill ? NULL : slots[list->reads].place->name,
        .stream = job->stream.number,
        .is_started = list->trace != 0,
        .id = list->trace,
    });
}

static void count_list(struct root *root, const struct work *list)
{
    if (list->is_fill)
        syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_BYTES_ZEROED,
                        bytes_of(list->regions, list->count));
    else
        count_transfer(root, list);
}

/* ---- Copies and fills on devices: started, or waited for. Each takes the list over ---- */

static bool is_lost(const struct copy *copy)
{
    return !place_is_host(copy->place) && copy->losses != place_losses(copy->place);
}

/* A device that went and came back while this call was under way does not know the addresses. */
static syncedmem_status_t explain(const struct root *root, const struct work *list,
                                  syncedmem_status_t status)
{
    const struct copy *slots = root->body->copies.slots;
    if (status == SYNCEDMEM_OK || status == SYNCEDMEM_DEVICE_LOST ||
        !(is_lost(&slots[list->writes]) || is_lost(&slots[list->reads])))
        return status;
    return syncedmem_error(SYNCEDMEM_DEVICE_LOST, "the device was lost during the call");
}

static syncedmem_status_t submit(const struct root *root, struct work *list, const struct job *job)
{
    const struct backend *backend = job->place->backend;
    if (list->is_fill)
        return backend->fill(job->stream.stream, root->body->copies.slots[list->writes].memory,
                             list->regions, list->count, 0, &list->event);
    return backend->copy(job->stream.stream, &job->transfer, &list->event);
}

static syncedmem_status_t start_list(struct root *root, struct work *list,
                                     struct stream_choice choice)
{
    struct job job;
    set_hull(list);
    syncedmem_status_t status = make_job(root, list, choice, &job);
    if (status == SYNCEDMEM_OK)
        status = order_job(root, list, &job);
    if (status == SYNCEDMEM_OK)
        status = submit(root, list, &job);
    if (status != SYNCEDMEM_OK) {
        status = explain(root, list, status);
        syncedmem_work_release(list);
        return status;
    }
    list->place = job.place;
    list->stream = job.stream.number;
    list->trace = trace_is_on() ? syncedmem_trace_id() : 0;
    count_list(root, list);
    trace_list(root, list, &job);
    syncedmem_work_add(root, list);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t do_list(struct root *root, struct work *list, struct stream_choice choice)
{
    struct job job;
    syncedmem_status_t status = make_job(root, list, choice, &job);
    if (status == SYNCEDMEM_OK && list->is_fill)
        status = job.place->backend->fill_wait(job.stream.stream, job.transfer.to, list->regions,
                                               list->count, 0);
    else if (status == SYNCEDMEM_OK)
        status = job.place->backend->copy_wait(job.stream.stream, &job.transfer);
    status = explain(root, list, status);
    if (status == SYNCEDMEM_OK) {
        count_list(root, list);
        trace_list(root, list, &job);
    }
    syncedmem_work_release(list);
    return status;
}

/* ---- Fills ---- */

static void fill_host(char *memory, const struct region *regions, size_t count, uint8_t value)
{
    for (size_t i = 0; i < count; i++)
        memset(memory + regions[i].to, value, regions[i].length);
}

/* Fresh bytes on the host: there is no one to leave that to. */
static syncedmem_status_t zero_host(struct root *root, struct work *list)
{
    const struct job job = {.start = trace_start()};
    set_hull(list);
    const syncedmem_status_t status =
        syncedmem_work_settle(root, use_of(HOST_SLOT, list->from, list->to, true));
    if (status == SYNCEDMEM_OK) {
        fill_host(root->body->copies.slots[HOST_SLOT].memory, list->regions, list->count, 0);
        count_list(root, list);
        trace_list(root, list, &job);
    }
    syncedmem_work_release(list);
    return status;
}

syncedmem_status_t syncedmem_transfer_fill(struct root *root, unsigned slot, size_t from, size_t to,
                                           uint8_t value)
{
    const struct region region = {from, from, to - from};
    const struct copy *copy = &root->body->copies.slots[slot];
    if (slot == HOST_SLOT) {
        fill_host(copy->memory, &region, 1, value);
        return SYNCEDMEM_OK;
    }
    struct stream_ref stream;
    const syncedmem_status_t status = copy->exposed
                                          ? syncedmem_place_default_stream(copy->place, &stream)
                                          : syncedmem_place_own_stream(copy->place, &stream);
    if (status != SYNCEDMEM_OK)
        return status;
    return copy->place->backend->fill_wait(stream.stream, copy->memory, &region, 1, value);
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
    if (source == task->slot && source == HOST_SLOT)
        return zero_host(root, list);
    return task->wait ? do_list(root, list, task->choice) : start_list(root, list, task->choice);
}

/* Bytes that arrive overwrite the slot's, whose users have to be done; and their sources have to
 * be there. */
static syncedmem_status_t settle_before(struct root *root, const struct task *task)
{
    const place_set sources = syncedmem_transfer_sources(root, task->slot, task->from, task->to);
    syncedmem_status_t status =
        syncedmem_work_settle(root, use_of(task->slot, task->from, task->to, true));
    for (unsigned other = 0; status == SYNCEDMEM_OK && other < root->body->copies.count; other++)
        if (sources & slot_bit(other))
            status = syncedmem_work_settle(root, use_of(other, task->from, task->to, false));
    return status;
}

static syncedmem_status_t carry_out(struct root *root, const struct task *task)
{
    if (root->size == 0)
        return SYNCEDMEM_OK;
    syncedmem_status_t status = task->wait ? settle_before(root, task) : SYNCEDMEM_OK;
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
    const struct stream_choice choice = {.own = true};
    if (source == slot && slot == HOST_SLOT)
        return zero_host(root, list);
    return do_list(root, list, choice);
}

/* ---- Within a place ---- */

static syncedmem_status_t copy_on_device(syncedmem_place *place, const struct transfer *transfer,
                                         bool is_exposed)
{
    struct stream_ref stream;
    const syncedmem_status_t status = is_exposed ? syncedmem_place_default_stream(place, &stream)
                                                 : syncedmem_place_own_stream(place, &stream);
    return status == SYNCEDMEM_OK ? place->backend->copy_wait(stream.stream, transfer) : status;
}

syncedmem_status_t syncedmem_transfer_within(syncedmem_place *place, struct bytes_at to,
                                             struct bytes_at from, size_t length)
{
    if (place_is_host(place)) {
        memmove((char *)to.memory + to.offset, (const char *)from.memory + from.offset, length);
        return SYNCEDMEM_OK;
    }
    const struct region region = {to.offset, from.offset, length};
    const struct transfer transfer = {.to = to.memory,
                                      .from = from.memory,
                                      .to_device = place->device,
                                      .from_device = place->device,
                                      .regions = &region,
                                      .count = 1};
    return copy_on_device(place, &transfer, to.is_exposed || from.is_exposed);
}
