/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/failure.h"
#include "core/root.h"
#include "trace/trace.h"

/* ---- Life ---- */

struct work *syncedmem_work_alloc(size_t regions)
{
    const size_t capacity = regions + 1; /* the first cut takes no memory */
    struct work *work = malloc(sizeof *work + capacity * sizeof work->first[0]);
    if (!work)
        return NULL;
    *work = (struct work){.reads = NO_SLOT, .writes = NO_SLOT, .capacity = capacity};
    work->regions = work->first;
    atomic_init(&work->references, 1);
    return work;
}

void syncedmem_work_retain(struct work *work)
{
    atomic_fetch_add_explicit(&work->references, 1, memory_order_relaxed);
}

static bool is_in_reach(const struct work *work)
{
    return work->event && place_in_reach(work->place);
}

/* What is out of reach did not arrive on the host; what a device has got is its own affair. */
static syncedmem_status_t outcome_of(const struct work *work)
{
    syncedmem_status_t outcome = SYNCEDMEM_OK;
    if (is_in_reach(work))
        work->place->backend->event_done(work->event, &outcome);
    else if (work->writes == HOST_SLOT)
        outcome = place_require(work->place);
    return outcome;
}

/* How it ended is asked for the trace only, and no failure of the call's. */
static void trace_end(const struct work *work)
{
    if (!work->trace || !trace_is_on())
        return;
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    syncedmem_trace_end(work->is_fill ? TRACE_ZERO : TRACE_TRANSFER, work->trace,
                        outcome_of(work) != SYNCEDMEM_OK);
    syncedmem_error_put_back(&kept);
}

void syncedmem_work_release(struct work *work)
{
    if (!work || atomic_fetch_sub_explicit(&work->references, 1, memory_order_acq_rel) > 1)
        return;
    trace_end(work);
    if (is_in_reach(work))
        work->place->backend->event_release(work->event);
    if (work->regions != work->first)
        free(work->regions);
    free(work);
}

/* ---- The list ---- */

static void unlink_work(struct root *root, struct work *work)
{
    struct works *works = &root->body->works;
    if (work->previous)
        work->previous->next = work->next;
    else
        works->first = work->next;
    if (work->next)
        work->next->previous = work->previous;
    else
        works->last = work->previous;
    syncedmem_work_release(work);
    syncedmem_root_changed(root);
}

/* The end of a lease's work says all that the earlier one's would: it came after it, and whoever has
 * to come after that one has to come after this. Both touch one slot; while a lease writes, no other
 * work is listed in its range, and on one stream what is recorded later ends later. */
static bool stands_for(const struct work *later, const struct work *earlier)
{
    if (earlier->moves || earlier->from < later->from || later->to < earlier->to)
        return false;
    if (later->writes != NO_SLOT)
        return earlier->writes == later->writes || earlier->reads == later->writes;
    return earlier->reads == later->reads && earlier->stream == later->stream;
}

/* So that a list does not grow with the number of kernels in a queue. */
static void drop_stood_for(struct root *root, const struct work *later)
{
    struct work *next;
    for (struct work *work = root->body->works.first; work; work = next) {
        next = work->next;
        if (stands_for(later, work))
            unlink_work(root, work);
    }
}

void syncedmem_work_add(struct root *root, struct work *work)
{
    struct works *works = &root->body->works;
    work->serial = ++works->started;
    if (work->begun == 0)
        work->begun = work->serial;
    if (!work->moves)
        drop_stood_for(root, work);
    work->next = NULL;
    work->previous = works->last;
    if (works->last)
        works->last->next = work;
    else
        works->first = work;
    works->last = work;
    syncedmem_root_changed(root);
}

/* ---- Conflicts ---- */

static bool touches(const struct work *work, int slot)
{
    return work->writes == slot || work->reads == slot;
}

static bool conflicts(const struct work *work, struct use use)
{
    if (use.slot == NO_SLOT)
        return true;
    if (use.to <= work->from || work->to <= use.from)
        return false;
    if (work->writes == use.slot)
        return true;
    return work->reads == use.slot && (use.writing || (use.leaving && work->count > 0));
}

/* Whether `later` came after `earlier`. */
static bool comes_after(const struct work *later, const struct work *earlier)
{
    if (earlier->serial >= later->begun || earlier->to <= later->from || later->to <= earlier->from)
        return false;
    if (earlier->writes != NO_SLOT && touches(later, earlier->writes))
        return true;
    return later->writes != NO_SLOT && earlier->reads == later->writes;
}

/* ---- The end of work ---- */

bool syncedmem_work_has_ended(const struct work *work)
{
    return !is_in_reach(work) || work->place->backend->event_done(work->event, NULL);
}

void syncedmem_work_wait(const struct work *work)
{
    if (is_in_reach(work))
        work->place->backend->event_wait(work->event);
}

static void keep_first(syncedmem_status_t *failure, syncedmem_status_t later)
{
    if (*failure == SYNCEDMEM_OK)
        *failure = later;
}

/* What a failed work says: its own failure, or what it cost. */
static syncedmem_status_t tell(syncedmem_status_t outcome, const struct lost_bytes *lost)
{
    if (lost->from == lost->to)
        return outcome;
    struct kept_error cause;
    syncedmem_error_keep(&cause);
    return syncedmem_error(SYNCEDMEM_DATA_LOST,
                           "bytes %zu to %zu are lost with their only place: %s", lost->from,
                           lost->to, cause.text);
}

/* The work has ended. False: without memory for what its failure changes it stays listed. */
static bool forget(struct root *root, struct work *work, syncedmem_status_t *failure)
{
    syncedmem_status_t outcome = outcome_of(work);
    if (outcome != SYNCEDMEM_OK) {
        struct lost_bytes lost = {0};
        if (!syncedmem_failure_take_back(root, work, &lost)) {
            keep_first(failure, syncedmem_error_no_host_memory("the map of a buffer", root->size));
            return false;
        }
        outcome = tell(outcome, &lost);
    }
    keep_first(failure, outcome);
    unlink_work(root, work);
    return true;
}

static struct work *first_it_came_after(const struct root *root, const struct work *work)
{
    for (struct work *earlier = root->body->works.first; earlier != work; earlier = earlier->next)
        if (comes_after(work, earlier))
            return earlier;
    return NULL;
}

/* What it came after has ended as well; and its failure comes first. */
static bool finish(struct root *root, struct work *work, syncedmem_status_t *failure)
{
    struct work *earlier;
    while ((earlier = first_it_came_after(root, work)) != NULL)
        if (!finish(root, earlier, failure))
            return false;
    return forget(root, work, failure);
}

syncedmem_status_t syncedmem_work_reap(struct root *root)
{
    syncedmem_status_t failure = SYNCEDMEM_OK;
    struct work *next;
    for (struct work *work = root->body->works.first; work; work = next) {
        next = work->next; /* finish() takes away this one and earlier ones */
        if (syncedmem_work_has_ended(work) && !finish(root, work, &failure))
            break;
    }
    return failure;
}

/* ---- Waiting ---- */

/* Whether it had to wait. */
static void wait_counted(struct root *root, const struct work *work)
{
    if (syncedmem_work_has_ended(work))
        return;
    const uint64_t start = trace_start();
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_WAITS, 1);
    syncedmem_work_wait(work);
    if (trace_is_on())
        syncedmem_trace(&(struct trace_event){.kind = TRACE_WAIT,
                                              .start = start,
                                              .buffer = root->body->number,
                                              .bytes = work->to - work->from,
                                              .regions = 1,
                                              .place = work->place->name,
                                              .stream = work->stream});
}

syncedmem_status_t syncedmem_work_settle(struct root *root, struct use use)
{
    syncedmem_status_t failure = SYNCEDMEM_OK;
    struct work *next;
    for (struct work *work = root->body->works.first; work; work = next) {
        next = work->next;
        if (!conflicts(work, use))
            continue;
        wait_counted(root, work);
        if (!finish(root, work, &failure))
            break;
    }
    return failure;
}

syncedmem_status_t syncedmem_work_settle_slot(struct root *root, unsigned slot)
{
    return syncedmem_work_settle(root, use_of(slot, 0, SIZE_MAX, true));
}

syncedmem_status_t syncedmem_work_settle_all(struct root *root)
{
    return syncedmem_work_settle(root, (struct use){.slot = NO_SLOT});
}

void syncedmem_work_await_slot(struct root *root, unsigned slot)
{
    const struct use use = use_of(slot, 0, SIZE_MAX, true);
    for (const struct work *work = root->body->works.first; work; work = work->next)
        if (conflicts(work, use))
            wait_counted(root, work);
}

/* The reference keeps the work while its root is someone else's. */
static void wait_unlocked(struct root *root, struct work *work)
{
    const uint64_t start = trace_start(), number = root->body->number;
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_WAITS, 1);
    syncedmem_work_retain(work);
    syncedmem_unlock(&root->lock);
    syncedmem_work_wait(work);
    if (trace_is_on())
        syncedmem_trace(&(struct trace_event){.kind = TRACE_WAIT,
                                              .start = start,
                                              .buffer = number,
                                              .bytes = work->to - work->from,
                                              .regions = 1,
                                              .place = work->place->name,
                                              .stream = work->stream});
    syncedmem_work_release(work);
    syncedmem_relock(&root->lock);
}

static struct work *find_unfinished(const struct root *root, struct use use, uint64_t serial)
{
    for (struct work *work = root->body->works.first; work; work = work->next)
        if (work->serial <= serial && conflicts(work, use) && !syncedmem_work_has_ended(work))
            return work;
    return NULL;
}

bool syncedmem_work_await(struct root *root, struct use use)
{
    struct work *work = find_unfinished(root, use, UINT64_MAX);
    if (work)
        wait_unlocked(root, work);
    return work != NULL;
}

void syncedmem_work_await_all(struct root *root)
{
    const struct use any = {.slot = NO_SLOT};
    const uint64_t last = root->body->works.started;
    struct work *work;
    while ((work = find_unfinished(root, any, last)) != NULL)
        wait_unlocked(root, work);
}

/* ---- Order ---- */

static syncedmem_status_t order_after(struct root *root, const struct work *work,
                                      const syncedmem_place *place, struct stream_ref stream)
{
    const uint64_t start = trace_start();
    const syncedmem_status_t status = place->backend->stream_wait_event(stream.stream, work->event);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_STREAM_WAITS, 1);
    if (trace_is_on())
        syncedmem_trace(&(struct trace_event){.kind = TRACE_ORDER,
                                              .start = start,
                                              .buffer = root->body->number,
                                              .bytes = work->to - work->from,
                                              .regions = 1,
                                              .place = place->name,
                                              .stream = stream.number});
    return SYNCEDMEM_OK;
}

/* A stream can wait for events of its own kind of driver only; others are waited for here. */
syncedmem_status_t syncedmem_work_order(struct root *root, struct use use,
                                        const syncedmem_place *place, struct stream_ref stream)
{
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (struct work *work = root->body->works.first; status == SYNCEDMEM_OK && work;
         work = work->next) {
        if (!conflicts(work, use) || work->stream == stream.number ||
            syncedmem_work_has_ended(work))
            continue;
        if (work->place->backend == place->backend)
            status = order_after(root, work, place, stream);
        else
            wait_counted(root, work);
    }
    return status;
}

/* ---- New bytes ---- */

syncedmem_status_t syncedmem_work_reserve(struct root *root, size_t from, size_t to)
{
    for (struct work *work = root->body->works.first; work; work = work->next) {
        if (work->count < work->capacity || to <= work->from || work->to <= from)
            continue;
        const size_t capacity = 2 * work->capacity;
        struct region *regions = malloc(capacity * sizeof *regions);
        if (!regions)
            return syncedmem_error_no_host_memory("the list of a transfer",
                                                  capacity * sizeof *regions);
        memcpy(regions, work->regions, work->count * sizeof *regions);
        if (work->regions != work->first)
            free(work->regions);
        work->regions = regions;
        work->capacity = capacity;
    }
    return SYNCEDMEM_OK;
}

/* What is left of a region on either side of a range. */
static size_t leave(struct region region, size_t from, size_t to, struct region left[2])
{
    const size_t end = region.to + region.length;
    size_t count = 0;
    if (region.to < from)
        left[count++] =
            (struct region){region.to, region.from, (end < from ? end : from) - region.to};
    if (to < end) {
        const size_t start = region.to > to ? region.to : to;
        left[count++] = (struct region){start, region.from + (start - region.to), end - start};
    }
    return count;
}

/* Only one of the regions, which do not overlap, can hold all of the range and become two; then none of
 * the others goes. */
void syncedmem_work_cut(struct work *work, size_t from, size_t to)
{
    struct region left[2];
    size_t count = 0;
    for (size_t i = 0; i < work->count; i++) {
        const size_t parts = leave(work->regions[i], from, to, left);
        if (parts > 0)
            work->regions[count++] = left[0];
        if (parts < 2)
            continue;
        memmove(&work->regions[count + 1], &work->regions[i + 1],
                (work->count - i - 1) * sizeof left[1]);
        work->regions[count++] = left[1];
        work->count++;
        i++;
    }
    work->count = count;
}

static bool overlaps(const struct work *work, size_t from, size_t to)
{
    return work->from < to && from < work->to;
}

/* From the last one back: what the bytes were made from came through the slots in `through`. */
void syncedmem_work_overwritten(struct root *root, size_t from, size_t to, int made_from)
{
    place_set through = made_from == NO_SLOT ? 0 : slot_bit((unsigned)made_from);
    for (struct work *work = root->body->works.last; work; work = work->previous) {
        if (work->count == 0 || !overlaps(work, from, to))
            continue;
        if (!(through & slot_bit((unsigned)work->writes)))
            syncedmem_work_cut(work, from, to);
        else if (work->reads != NO_SLOT)
            through |= slot_bit((unsigned)work->reads);
    }
}

/* ---- The end of memory, and of places ---- */

void syncedmem_work_leave_slot(struct root *root, unsigned slot)
{
    struct work *next;
    for (struct work *work = root->body->works.first; work; work = next) {
        next = work->next;
        if (work->reads == (int)slot)
            work->reads = NO_SLOT;
        if (work->writes == (int)slot) {
            work->writes = NO_SLOT;
            work->count = 0;
        }
        if (work->reads == NO_SLOT && work->writes == NO_SLOT && !work->moves)
            unlink_work(root, work);
    }
}

void syncedmem_work_leave_all(struct root *root)
{
    while (root->body->works.first)
        unlink_work(root, root->body->works.first);
}

bool syncedmem_work_abandon(struct root *root, const syncedmem_place *place)
{
    const bool in_reach = place_in_reach(place);
    struct work *next;
    for (struct work *work = root->body->works.first; work; work = next) {
        next = work->next;
        if (work->place != place)
            continue;
        /* What a device that is out of reach has got stays its own: it cannot be read anyway. */
        const bool matters = in_reach || work->writes == HOST_SLOT;
        if (matters && !syncedmem_failure_withdraw(root, work))
            return false;
        if (matters && work->moves)
            root->body->cut_off = place;
        if (!in_reach)
            work->trace = 0; /* no one here will know how it ended */
        unlink_work(root, work);
    }
    return true;
}
