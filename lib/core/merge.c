/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    double bytes = 0;
    for (place_set left = span.valid & ~kept; left; left &= left - 1)
        bytes += length_of(span); /* few; without the instruction for it, popcount is a call */
    return bytes;
}

/* Fresh bytes cost nothing anywhere; merged with others they will have to be sent. */
static double no_longer_fresh(struct span span)
{
    return span.valid ? 0 : length_of(span);
}

/* A reader's bytes stay current where it reads them, so that nothing has to be sent there again. */
static bool is_leased_at(const struct root *root, struct span span, place_set places)
{
    const struct lease *lease = root->body->leases.open;
    for (; lease; lease = lease->next)
        if (span.from < lease->to && lease->from < span.to && places & slot_bit(lease->slot))
            return true;
    return false;
}

static inline struct verdict judge_common(const struct root *root, struct span left,
                                          struct span right, place_set common)
{
    if (is_leased_at(root, left, left.valid & ~common) ||
        is_leased_at(root, right, right.valid & ~common))
        return (struct verdict){.cost = INFINITY, .common = common};
    return (struct verdict){.cost = lost(left, common) + lost(right, common) +
                                    no_longer_fresh(left) + no_longer_fresh(right),
                            .common = common};
}

/* The mover is brought to where the stayer is. Bytes in use stay where they are. */
static inline struct verdict judge_move(const struct root *root, struct span mover,
                                        struct span stayer)
{
    const place_set places = effective(root, stayer);
    if (!places || (places | mover.valid) & LOST)
        return (struct verdict){.cost = INFINITY};
    const unsigned target = (unsigned)__builtin_ctzll(places);
    const place_set kept = slot_bit(target);
    if (root->body->copies.slots[target].read_only ||
        syncedmem_lease_overlaps(root, mover.from, mover.to) ||
        is_leased_at(root, stayer, stayer.valid & ~kept))
        return (struct verdict){.cost = INFINITY};
    return (struct verdict){
        .cost = length_of(mover) + lost(mover, kept) + lost(stayer, kept) + no_longer_fresh(mover) +
                no_longer_fresh(stayer),
        .mover = mover,
        .target = target,
    };
}

/* Nothing in common: the shorter one is brought to where the longer one is, or if that cannot
 * be, the longer one to where the shorter one is. */
static inline struct verdict judge_apart(const struct root *root, struct span left,
                                         struct span right)
{
    const bool left_is_longer = length_of(left) > length_of(right);
    const struct span longer = left_is_longer ? left : right;
    const struct span shorter = left_is_longer ? right : left;
    const struct verdict verdict = judge_move(root, shorter, longer);
    return verdict.cost < INFINITY ? verdict : judge_move(root, longer, shorter);
}

static inline struct verdict judge(const struct root *root, struct span left, struct span right)
{
    const place_set common = effective(root, left) & effective(root, right);
    return common ? judge_common(root, left, right, common) : judge_apart(root, left, right);
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

/* The verdict on a segment and the next one. */
struct pair {
    double cost;
    unsigned target;
    bool has_common;
    bool moves_left; /* the mover is the left one */
};

/* Fills in all pairs. `values` is room for as many. */
static double price_limit(const struct root *root, struct pair *pairs, double *values)
{
    const struct map *map = &root->body->map;
    struct span left = span_at(map, 0);
    for (size_t i = 0; i + 1 < map->count; i++) {
        const struct span right = span_at(map, i + 1);
        const struct verdict verdict = judge(root, left, right);
        values[i] = verdict.cost;
        pairs[i] = (struct pair){verdict.cost, verdict.target, verdict.common != 0,
                                 verdict.mover.from == left.from};
        left = right;
    }
    return select_kth(values, map->count - 1, map->count - MAP_EXACT);
}

/* ---- Bringing movers ---- */

enum role { ROLE_NONE, ROLE_MOVER, ROLE_STAYER };

struct move {
    size_t index; /* of the segment */
    unsigned target;
    unsigned source; /* the target itself for zeros */
};

struct moves {
    unsigned char *roles; /* enum role of each segment */
    struct move *list;
    struct region *group; /* room for as many */
    size_t count;
    size_t saved; /* segments that will go at least */
};

/* A neighbour that is where the mover goes will be merged with it, and so stays. */
static void keep_neighbour(const struct root *root, size_t index, unsigned target,
                           struct moves *moves)
{
    const struct map *map = &root->body->map;
    if (index >= map->count || moves->roles[index] == ROLE_MOVER ||
        !(effective(root, span_at(map, index)) & slot_bit(target)))
        return;
    moves->roles[index] = ROLE_STAYER;
    moves->saved++;
}

static void add_move(const struct root *root, size_t mover, unsigned target, struct moves *moves)
{
    const place_set valid = root->body->map.segments[mover].valid;
    const unsigned source = valid ? (unsigned)__builtin_ctzll(valid) : target;
    moves->roles[mover] = ROLE_MOVER;
    moves->list[moves->count++] = (struct move){mover, target, source};
    if (mover > 0)
        keep_neighbour(root, mover - 1, target, moves);
    keep_neighbour(root, mover + 1, target, moves);
}

/* The pair of segment i and the next: below the limit, or at it. */
static void consider(const struct root *root, size_t i, const struct pair *pair, double limit,
                     bool at_limit, struct moves *moves)
{
    if (pair->cost == INFINITY || !(at_limit ? pair->cost == limit : pair->cost < limit))
        return;
    if (pair->has_common) {
        moves->saved++; /* goes without a move */
        return;
    }
    const size_t mover = pair->moves_left ? i : i + 1;
    const size_t stayer = pair->moves_left ? i + 1 : i;
    if (moves->roles[mover] == ROLE_NONE && moves->roles[stayer] != ROLE_MOVER)
        add_move(root, mover, pair->target, moves);
}

/* No more than are needed: first those below the limit, then those at it. */
static void list_moves(const struct root *root, const struct pair *pairs, double limit,
                       struct moves *moves)
{
    const size_t count = root->body->map.count - 1;
    const size_t enough = root->body->map.count - MAP_EXACT;
    memset(moves->roles, ROLE_NONE, count + 1);
    moves->count = 0;
    moves->saved = 0;
    for (size_t i = 0; i < count && moves->saved < enough; i++)
        consider(root, i, &pairs[i], limit, false, moves);
    for (size_t i = 0; i < count && moves->saved < enough; i++)
        consider(root, i, &pairs[i], limit, true, moves);
}

static bool is_of_group(const struct move *move, unsigned target, unsigned source)
{
    return move->target == target && move->source == source;
}

/* All movers between one pair of slots are one submission. Leaves neighbours that are equal. */
static syncedmem_status_t bring_group(struct root *root, const struct moves *moves, unsigned target,
                                      unsigned source)
{
    struct map *map = &root->body->map;
    size_t count = 0;
    for (size_t i = 0; i < moves->count; i++) {
        if (!is_of_group(&moves->list[i], target, source))
            continue;
        const struct span mover = span_at(map, moves->list[i].index);
        moves->group[count++] = (struct region){mover.from, mover.from, mover.to - mover.from};
    }
    if (count == 0)
        return SYNCEDMEM_OK;
    const syncedmem_status_t status =
        syncedmem_transfer_regions(root, target, source, moves->group, count);
    for (size_t i = 0; status == SYNCEDMEM_OK && i < moves->count; i++)
        if (is_of_group(&moves->list[i], target, source))
            map->segments[moves->list[i].index].valid |= slot_bit(target);
    return status;
}

static syncedmem_status_t bring_moves(struct root *root, const struct moves *moves)
{
    const unsigned slots = (unsigned)root->body->copies.count;
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (unsigned target = 0; status == SYNCEDMEM_OK && target < slots; target++)
        for (unsigned source = 0; status == SYNCEDMEM_OK && source < slots; source++)
            status = bring_group(root, moves, target, source);
    syncedmem_map_join_all(&root->body->map);
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
        const place_set common = effective(root, last) & effective(root, next);
        const double cost = common ? judge_common(root, last, next, common).cost : INFINITY;
        if (merged < enough && cost < INFINITY && cost <= limit) {
            last = (struct span){last.from, next.to, common};
            map->segments[kept].valid = common;
            merged++;
        } else {
            map->segments[++kept] = (struct segment){next.from, next.valid};
            last = next;
        }
    }
    map->count = kept + 1;
    syncedmem_map_join_all(map);
}

/* Room for all segments each. */
struct search {
    struct pair *pairs;
    double *values;
    struct moves moves;
};

static syncedmem_status_t merge_pass(struct root *root, struct search *search)
{
    const struct map *map = &root->body->map;
    const size_t before = map->count;
    const double limit = price_limit(root, search->pairs, search->values);
    list_moves(root, search->pairs, limit, &search->moves);
    const syncedmem_status_t status = bring_moves(root, &search->moves);
    if (status == SYNCEDMEM_OK && map->count > MAP_EXACT)
        merge_neighbours(root, limit);
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_MERGES, before - map->count);
    syncedmem_root_changed(root);
    return status;
}

static syncedmem_status_t merge_passes(struct root *root, struct search *search)
{
    const struct map *map = &root->body->map;
    size_t before;
    do {
        before = map->count;
        const syncedmem_status_t status = merge_pass(root, search);
        if (status != SYNCEDMEM_OK)
            return status;
    } while (map->count > MAP_EXACT && map->count < before);
    return SYNCEDMEM_OK;
}

/* Without memory for the search, or while leases hold everything, the map just grows on. */
static syncedmem_status_t merge(struct root *root)
{
    const size_t count = root->body->map.count;
    struct search search = {
        .pairs = malloc(count * sizeof *search.pairs),
        .values = malloc(count * sizeof *search.values),
        .moves.roles = malloc(count),
        .moves.list = malloc(count * sizeof *search.moves.list),
        .moves.group = malloc(count * sizeof *search.moves.group),
    };
    const struct moves *moves = &search.moves;
    syncedmem_status_t status = SYNCEDMEM_OK;
    if (search.pairs && search.values && moves->roles && moves->list && moves->group)
        status = merge_passes(root, &search);
    free(search.pairs);
    free(search.values);
    free(search.moves.roles);
    free(search.moves.list);
    free(search.moves.group);
    return status;
}

/* What cannot be reached is not moved: the map grows on. */
static __attribute__((noinline)) syncedmem_status_t settle_and_merge(struct root *root)
{
    if (!syncedmem_copies_in_reach(root))
        return SYNCEDMEM_OK;
    const syncedmem_status_t status = syncedmem_work_settle_all(root);
    return status == SYNCEDMEM_OK ? merge(root) : status;
}

syncedmem_status_t syncedmem_merge_if_due(struct root *root)
{
    return root->body->map.count + 2 <= MAP_LIMIT ? SYNCEDMEM_OK : settle_and_merge(root);
}
