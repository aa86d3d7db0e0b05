/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "core/root.h"

struct work *syncedmem_work_alloc(size_t regions)
{
    struct work *work = malloc(sizeof *work + regions * sizeof work->regions[0]);
    if (work)
        *work = (struct work){.reads = NO_SLOT, .writes = NO_SLOT};
    return work;
}

void syncedmem_work_discard(struct work *work)
{
    free(work);
}

void syncedmem_work_add(struct root *root, struct work *work)
{
    work->next = root->body->works;
    root->body->works = work;
}

/* ---- The end of work ---- */

/* Without memory for cuts, the place loses whole segments: all of them are valid elsewhere too,
 * where the transfer came from. */
static void take_back_region(struct map *map, size_t from, size_t to, place_set slot)
{
    if (!syncedmem_map_reserve(map, from, to)) {
        to = syncedmem_map_end(map, syncedmem_map_find(map, to - 1));
        from = map->segments[syncedmem_map_find(map, from)].start;
    }
    syncedmem_map_remove(map, from, to, slot);
}

/* Bytes that did not arrive are not the newest there; their source still has them. */
static void take_back(struct root *root, const struct work *work)
{
    for (size_t i = 0; i < work->count; i++) {
        const struct region *region = &work->regions[i];
        take_back_region(&root->body->map, region->to, region->to + region->length,
                         slot_bit((unsigned)work->writes));
    }
}

/* Unlinks work that has ended. */
static void forget(struct root *root, struct work **link, syncedmem_status_t outcome)
{
    struct work *work = *link;
    *link = work->next;
    if (outcome != SYNCEDMEM_OK)
        take_back(root, work);
    work->backend->event_release(work->event);
    free(work);
    syncedmem_root_changed(root);
}

static syncedmem_status_t first_failure(syncedmem_status_t earlier, syncedmem_status_t later)
{
    return earlier != SYNCEDMEM_OK ? earlier : later;
}

syncedmem_status_t syncedmem_work_reap(struct root *root)
{
    syncedmem_status_t failure = SYNCEDMEM_OK;
    struct work **link = &root->body->works;
    while (*link) {
        syncedmem_status_t outcome;
        if ((*link)->backend->event_done((*link)->event, &outcome)) {
            failure = first_failure(failure, outcome);
            forget(root, link, outcome);
        } else {
            link = &(*link)->next;
        }
    }
    return failure;
}

/* ---- Waiting ---- */

struct conflict {
    int slot; /* NO_SLOT: any */
    size_t from;
    size_t to;
    bool writing;
};

static bool conflicts(const struct work *work, const struct conflict *conflict)
{
    if (conflict->to <= work->from || work->to <= conflict->from)
        return false;
    if (conflict->slot == NO_SLOT || work->writes == conflict->slot)
        return true;
    return conflict->writing && work->reads == conflict->slot;
}

static syncedmem_status_t wait_for(struct root *root, const struct work *work)
{
    syncedmem_status_t outcome;
    if (work->backend->event_done(work->event, &outcome))
        return outcome;
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_WAITS, 1);
    return work->backend->event_wait(work->event);
}

static syncedmem_status_t settle(struct root *root, const struct conflict *conflict)
{
    syncedmem_status_t failure = SYNCEDMEM_OK;
    struct work **link = &root->body->works;
    while (*link) {
        if (conflicts(*link, conflict)) {
            const syncedmem_status_t outcome = wait_for(root, *link);
            failure = first_failure(failure, outcome);
            forget(root, link, outcome);
        } else {
            link = &(*link)->next;
        }
    }
    return failure;
}

syncedmem_status_t syncedmem_work_settle(struct root *root, unsigned slot, size_t from, size_t to,
                                         bool writing)
{
    return settle(root, &(struct conflict){(int)slot, from, to, writing});
}

syncedmem_status_t syncedmem_work_settle_slot(struct root *root, unsigned slot)
{
    return settle(root, &(struct conflict){(int)slot, 0, SIZE_MAX, true});
}

syncedmem_status_t syncedmem_work_settle_all(struct root *root)
{
    return settle(root, &(struct conflict){NO_SLOT, 0, SIZE_MAX, true});
}
