/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/failure.h"
#include "core/root.h"

struct spoiling {
    struct root *root;
    size_t from;
    size_t to;
    place_set instead; /* where the bytes are if they are nowhere else */
};

static bool overlaps(const struct region *region, size_t from, size_t to)
{
    return region->to < to && from < region->to + region->length;
}

/* ---- The source ---- */

static bool is_written_later(const struct work *work, int slot, size_t from, size_t to)
{
    for (const struct work *later = work->next; later; later = later->next)
        if (later->writes == slot && later->from < to && from < later->to)
            return true;
    return false;
}

/* A failed fill leaves bytes as fresh as they were. */
static place_set origin_of(const struct work *work, size_t from, size_t to)
{
    if (work->is_fill)
        return 0;
    if (work->reads == NO_SLOT || is_written_later(work, work->reads, from, to))
        return LOST;
    return slot_bit((unsigned)work->reads);
}

/* ---- The targets ---- */

/* A block that bytes were copied to which are not known any more holds no zeros to rely on: that of the
 * slot, and the host's, for what came from there and was overwritten since is no region of any work. */
static void withdraw(const struct spoiling *spoiling, unsigned slot)
{
    struct root *root = spoiling->root;
    root->body->copies.slots[slot].zeroed = false;
    root->body->copies.slots[HOST_SLOT].zeroed = false;
    syncedmem_map_withdraw(&root->body->map, spoiling->from, spoiling->to, slot_bit(slot),
                           spoiling->instead);
    syncedmem_root_changed(root);
}

static bool spoil(const struct spoiling *spoiling, const struct work *work);

static const struct region *find_overlap(const struct work *work, size_t from, size_t to)
{
    for (size_t i = 0; i < work->count; i++)
        if (overlaps(&work->regions[i], from, to))
            return &work->regions[i];
    return NULL;
}

/* What it brings of the range is spoiled, and no concern of its own any more: should it fail as well, the
 * bytes may have been brought anew by then. */
static bool spoil_all_of(const struct spoiling *spoiling, struct work *work)
{
    const struct region *region;
    while ((region = find_overlap(work, spoiling->from, spoiling->to)) != NULL) {
        struct spoiling part = *spoiling;
        if (part.from < region->to)
            part.from = region->to;
        if (part.to > region->to + region->length)
            part.to = region->to + region->length;
        if (syncedmem_work_reserve(part.root, part.from, part.to) != SYNCEDMEM_OK ||
            !spoil(&part, work))
            return false;
        syncedmem_work_cut(work, part.from, part.to);
    }
    return true;
}

/* What was copied on from there. */
static bool spoil_copies_of(const struct spoiling *spoiling, const struct work *work)
{
    for (struct work *later = work->next; later; later = later->next)
        if (later->reads == work->writes && later->writes != work->writes &&
            !spoil_all_of(spoiling, later))
            return false;
    return true;
}

static bool spoil(const struct spoiling *spoiling, const struct work *work)
{
    struct map *map = &spoiling->root->body->map;
    if (!spoil_copies_of(spoiling, work) ||
        !syncedmem_map_reserve(map, spoiling->from, spoiling->to))
        return false;
    withdraw(spoiling, (unsigned)work->writes);
    return true;
}

/* ---- All of it ---- */

/* Regions of a work are in the order of their offsets. */
static void note_lost(const struct map *map, size_t from, size_t to, struct lost_bytes *lost)
{
    if (!(syncedmem_map_summary(map, from, to).in_any & LOST))
        return;
    if (lost->from == lost->to)
        lost->from = from;
    lost->to = to;
}

bool syncedmem_failure_take_back(struct root *root, struct work *work, struct lost_bytes *lost)
{
    *lost = (struct lost_bytes){0};
    for (size_t i = 0; i < work->count; i++) {
        const struct region *region = &work->regions[i];
        struct spoiling spoiling = {root, region->to, region->to + region->length, 0};
        spoiling.instead = origin_of(work, spoiling.from, spoiling.to);
        if (!spoil(&spoiling, work))
            return false;
        note_lost(&root->body->map, spoiling.from, spoiling.to, lost);
    }
    return true;
}

bool syncedmem_failure_withdraw(struct root *root, struct work *work)
{
    for (size_t i = 0; i < work->count; i++) {
        const struct region *region = &work->regions[i];
        const struct spoiling spoiling = {root, region->to, region->to + region->length, LOST};
        if (!spoil(&spoiling, work))
            return false;
    }
    return true;
}
