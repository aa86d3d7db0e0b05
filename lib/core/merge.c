/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>

#include "core/merge.h"
#include "core/root.h"
#include "core/transfer.h"

/* ---- What a merge of two neighbours takes ---- */

struct span {
    size_t from;
    size_t to;
    place_set valid;
};

struct verdict {
    double cost;      /* bytes that will be sent again; INFINITY: not possible now */
    place_set common; /* what the merged segment has; empty: the mover has to be brought first */
    struct span mover;
    unsigned target;
};

static double length_of(struct span span)
{
    return (double)(span.to - span.from);
}

/* Fresh bytes are zero in a block that was allocated zeroed, as if they were valid there. */
static place_set effective(const struct root *root, struct span span)
{
    if (span.valid)
        return span.valid;
    return root->body->copies.slots[HOST_SLOT].zeroed ? slot_bit(HOST_SLOT) : 0;
}

static double lost(struct span span, place_set kept)
{
    return length_of(span) * __builtin_popcountll(span.valid & ~kept);
}

static struct verdict judge_common(struct span left, struct span right, place_set common)
{
    const double fresh = !left.valid ? length_of(left) : !right.valid ? length_of(right) : 0;
    return (struct verdict){.cost = lost(left, common) + lost(right, common) + fresh,
                            .common = common};
}

/* Nothing in common: the shorter one is brought to where the longer one is, unless the longer
 * one is nowhere yet. Bytes in use stay where they are. */
static struct verdict judge_apart(const struct root *root, struct span left, struct span right)
{
    const bool left_is_longer = length_of(left) > length_of(right);
    struct span stayer = left_is_longer ? left : right;
    struct span mover = left_is_longer ? right : left;
    if (!effective(root, stayer)) {
        const struct span swapped = stayer;
        stayer = mover;
        mover = swapped;
    }
    const unsigned target = (unsigned)__builtin_ctzll(effective(root, stayer));
    const place_set kept = slot_bit(target);
    if (root->body->copies.slots[target].read_only ||
        syncedmem_lease_overlaps(root, mover.from, mover.to, false))
        return (struct verdict){.cost = INFINITY};
    return (struct verdict){
        .cost = length_of(mover) + lost(mover, kept) + lost(stayer, kept),
        .mover = mover,
        .target = target,
    };
}

static struct verdict judge(const struct root *root, struct span left, struct span right)
{
    const place_set common = effective(root, left) & effective(root, right);
    return common ? judge_common(left, right, common) : judge_apart(root, left, right);
}

static struct span span_at(const struct map *map, size_t index)
{
    return (struct span){map->segments[index].start, syncedmem_map_end(map, index),
                         map->segments[index].valid};
}

/* ---- The price up to which merges are made ---- */

/* The k-th smallest, from 1; reorders the values (Hoare's selection). */
static double select_kth(double *values, size_t count, size_t k)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        const double pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i > j)
                break;
            const double swapped = values[i];
            values[i++] = values[j];
            values[j] = swapped;
            if (j == 0)
                break;
            j--;
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            break;
    }
    return values[k - 1];
}

static double price_limit(const struct root *root, double *costs)
{
    const struct map *map = &root->body->map;
    for (size_t i = 0; i + 1 < map->count; i++)
        costs[i] = judge(root, span_at(map, i), span_at(map, i + 1)).cost;
    return select_kth(costs, map->count - 1, map->count - MAP_EXACT);
}

/* ---- Bringing movers ---- */

struct moves {
    struct region *regions; /* all movers, by position */
    unsigned *targets;
    place_set *valid;
    size_t count;
};

static void add_move(struct moves *moves, const struct verdict *verdict)
{
    const struct span mover = verdict->mover;
    /* A segment can be the mover for both of its neighbours. */
    if (moves->count > 0 && moves->regions[moves->count - 1].from == mover.from)
        return;
    moves->regions[moves->count] = (struct region){mover.from, mover.from, mover.to - mover.from};
    moves->targets[moves->count] = verdict->target;
    moves->valid[moves->count] = mover.valid;
    moves->count++;
}

static void list_moves(const struct root *root, double limit, struct moves *moves)
{
    const struct map *map = &root->body->map;
    for (size_t i = 0; i + 1 < map->count; i++) {
        const struct verdict verdict = judge(root, span_at(map, i), span_at(map, i + 1));
        if (!verdict.common && verdict.cost <= limit && verdict.cost < INFINITY)
            add_move(moves, &verdict);
    }
}

/* The slot that a mover comes from: the target itself for zeros. */
static unsigned source_of(const struct moves *moves, size_t index)
{
    return moves->valid[index] ? (unsigned)__builtin_ctzll(moves->valid[index])
                               : moves->targets[index];
}

/* All movers between one pair of slots are one submission. `group` is room for them. */
static syncedmem_status_t bring_group(struct root *root, struct moves *moves, unsigned target,
                                      unsigned source, struct region *group)
{
    size_t count = 0;
    for (size_t i = 0; i < moves->count; i++)
        if (moves->targets[i] == target && source_of(moves, i) == source)
            group[count++] = moves->regions[i];
    if (count == 0)
        return SYNCEDMEM_OK;
    const syncedmem_status_t status =
        syncedmem_transfer_regions(root, target, source, group, count);
    for (size_t i = 0; status == SYNCEDMEM_OK && i < count; i++)
        syncedmem_map_add(&root->body->map, group[i].from, group[i].from + group[i].length,
                          slot_bit(target));
    return status;
}

static syncedmem_status_t bring_moves(struct root *root, struct moves *moves, struct region *group)
{
    const unsigned slots = (unsigned)root->body->copies.count;
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (unsigned target = 0; status == SYNCEDMEM_OK && target < slots; target++)
        for (unsigned source = 0; status == SYNCEDMEM_OK && source < slots; source++)
            status = bring_group(root, moves, target, source, group);
    return status;
}

/* ---- Merging ---- */

/* From left to right, so that each neighbour is judged against what has been merged before it. */
static void merge_neighbours(struct root *root, double limit)
{
    struct map *map = &root->body->map;
    size_t kept = 0, merged = 0;
    const size_t enough = map->count - MAP_EXACT;
    struct span last = span_at(map, 0);
    for (size_t i = 1; i < map->count; i++) {
        const struct span next = span_at(map, i);
        const struct verdict verdict = judge(root, last, next);
        if (merged < enough && verdict.common && verdict.cost <= limit) {
            last = (struct span){last.from, next.to, verdict.common};
            map->segments[kept].valid = verdict.common;
            merged++;
        } else {
            map->segments[++kept] = (struct segment){next.from, next.valid};
            last = next;
        }
    }
    map->count = kept + 1;
    syncedmem_map_join_all(map);
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_MERGES, merged);
}

static syncedmem_status_t merge_pass(struct root *root, struct moves *moves, double *costs,
                                     struct region *group)
{
    const double limit = price_limit(root, costs);
    moves->count = 0;
    list_moves(root, limit, moves);
    const syncedmem_status_t status = bring_moves(root, moves, group);
    if (status == SYNCEDMEM_OK && root->body->map.count > MAP_EXACT)
        merge_neighbours(root, limit);
    return status;
}

static syncedmem_status_t merge_passes(struct root *root, struct moves *moves, double *costs,
                                       struct region *group)
{
    const struct map *map = &root->body->map;
    size_t before;
    do {
        before = map->count;
        const syncedmem_status_t status = merge_pass(root, moves, costs, group);
        syncedmem_root_changed(root);
        if (status != SYNCEDMEM_OK)
            return status;
    } while (map->count > MAP_EXACT && map->count < before);
    return SYNCEDMEM_OK;
}

/* Without memory for the search, or while leases hold everything, the map just grows on. */
static syncedmem_status_t merge(struct root *root)
{
    const size_t count = root->body->map.count;
    double *costs = malloc(count * sizeof *costs);
    struct region *regions = malloc(2 * count * sizeof *regions);
    unsigned *targets = malloc(count * sizeof *targets);
    place_set *valid = malloc(count * sizeof *valid);
    struct moves moves = {.regions = regions, .targets = targets, .valid = valid};
    syncedmem_status_t status = SYNCEDMEM_OK;
    if (costs && regions && targets && valid)
        status = merge_passes(root, &moves, costs, regions + count);
    free(costs);
    free(regions);
    free(targets);
    free(valid);
    return status;
}

syncedmem_status_t syncedmem_merge_if_due(struct root *root)
{
    if (root->body->map.count + 2 <= MAP_LIMIT)
        return SYNCEDMEM_OK;
    const syncedmem_status_t status = syncedmem_work_settle_all(root);
    return status == SYNCEDMEM_OK ? merge(root) : status;
}
