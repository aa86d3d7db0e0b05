/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The validity map alone, against one set of places a byte.
 *
 *   SYNCEDMEM_TEST_SEED    the first seed (a failure prints the one it had)
 */
#include <stdlib.h>

#include "core/map.h"
#include "support.h"

TestSuite(map, .timeout = 120);

enum { SPAN = 97, STEPS = 200, ROUNDS = 300 };

struct twin {
    struct map map;
    place_set bytes[SPAN];
    uint64_t random;
    unsigned seed;
};

static size_t dice(struct twin *twin, size_t limit)
{
    twin->random ^= twin->random << 13;
    twin->random ^= twin->random >> 7;
    twin->random ^= twin->random << 17;
    return (size_t)(twin->random >> 11) % limit;
}

/* ---- Comparing ---- */

static size_t runs_of(const struct twin *twin)
{
    size_t runs = 1;
    for (size_t i = 1; i < SPAN; i++) {
        runs += twin->bytes[i] != twin->bytes[i - 1];
    }
    return runs;
}

static void check_segments(const struct twin *twin)
{
    const struct map *map = &twin->map;
    cr_assert_eq(map->segments[0].start, 0);
    cr_assert_eq(map->count, runs_of(twin), "seed %u: neighbours differ", twin->seed);
    cr_assert_leq(map->count, map->capacity);
    for (size_t byte = 0; byte < SPAN; byte++) {
        const size_t index = syncedmem_map_find(map, byte);
        cr_assert_leq(map->segments[index].start, byte);
        cr_assert_lt(byte, syncedmem_map_end(map, index));
        cr_assert_eq(map->segments[index].valid, twin->bytes[byte], "seed %u: byte %zu", twin->seed,
                     byte);
    }
    cr_assert_eq(syncedmem_map_end(map, map->count - 1), SPAN);
}

static void check_summary(const struct twin *twin, size_t from, size_t to)
{
    const struct map_summary summary = syncedmem_map_summary(&twin->map, from, to);
    struct map_summary wanted = {.in_all = ~(place_set)0};
    for (size_t i = from; i < to; i++) {
        wanted.in_any |= twin->bytes[i];
        wanted.in_all &= twin->bytes[i] ? twin->bytes[i] : ~(place_set)0;
        wanted.has_fresh = wanted.has_fresh || !twin->bytes[i];
    }
    cr_assert_eq(summary.in_all, wanted.in_all, "seed %u [%zu, %zu)", twin->seed, from, to);
    cr_assert_eq(summary.in_any, wanted.in_any, "seed %u [%zu, %zu)", twin->seed, from, to);
    cr_assert_eq(summary.has_fresh, wanted.has_fresh, "seed %u [%zu, %zu)", twin->seed, from, to);
}

static void check_valid_bytes(const struct twin *twin, size_t from, size_t to, place_set places)
{
    size_t wanted = 0;
    for (size_t i = from; i < to; i++) {
        wanted += (twin->bytes[i] & places) == places;
    }
    cr_assert_eq(syncedmem_map_valid_bytes(&twin->map, from, to, places), wanted,
                 "seed %u [%zu, %zu)", twin->seed, from, to);
}

/* ---- Changing both ---- */

enum change { ASSIGN, ADD, REMOVE, CHANGES };

static void change_map(struct map *map, enum change change, size_t from, size_t to,
                       place_set places)
{
    if (change == ASSIGN) {
        syncedmem_map_assign(map, from, to, places);
    } else if (change == ADD) {
        syncedmem_map_add(map, from, to, places);
    } else {
        syncedmem_map_remove(map, from, to, places);
    }
}

static place_set changed(place_set before, enum change change, place_set places)
{
    if (change == ASSIGN) {
        return places;
    }
    if (change == ADD) {
        return before | places;
    }
    return (before & ~places) != 0 ? before & ~places : before;
}

static void change_both(struct twin *twin, enum change change, size_t from, size_t to,
                        place_set places)
{
    cr_assert(syncedmem_map_reserve(&twin->map, from, to));
    const struct segment *room = twin->map.segments;
    const size_t capacity = twin->map.capacity;
    change_map(&twin->map, change, from, to, places);
    cr_assert_eq(twin->map.segments, room);
    cr_assert_eq(twin->map.capacity, capacity);
    for (size_t i = from; i < to; i++) {
        twin->bytes[i] = changed(twin->bytes[i], change, places);
    }
}

static void random_step(struct twin *twin)
{
    const size_t from = dice(twin, SPAN);
    const size_t most = dice(twin, 2) ? 8 : SPAN;
    const size_t room = SPAN - from < most ? SPAN - from : most;
    const size_t to = from + 1 + dice(twin, room);
    const place_set places = (place_set)1 << (dice(twin, 4) ? dice(twin, 3) : 63);
    change_both(twin, (enum change)dice(twin, CHANGES), from, to,
                dice(twin, 5) ? places : places | 2U);
    check_segments(twin);
    check_summary(twin, from, to);
    check_summary(twin, dice(twin, from + 1), to);
    check_valid_bytes(twin, from, to, places);
    check_valid_bytes(twin, 0, SPAN, places | 1U);
}

Test(map, against_bytes)
{
    const char *given = getenv("SYNCEDMEM_TEST_SEED");
    const unsigned first = given ? (unsigned)strtoul(given, NULL, 10) : 1;
    for (unsigned seed = first; seed < first + ROUNDS; seed++) {
        struct twin twin = {.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1, .seed = seed};
        syncedmem_map_init(&twin.map, SPAN);
        check_segments(&twin);
        for (int step = 0; step < STEPS; step++) {
            random_step(&twin);
        }
        syncedmem_map_destroy(&twin.map);
    }
}

/* ---- One rule at a time ---- */

static void twin_make(struct twin *twin)
{
    *twin = (struct twin){.seed = 0};
    syncedmem_map_init(&twin->map, SPAN);
}

Test(map, begins_fresh_and_whole)
{
    struct map map;
    syncedmem_map_init(&map, SPAN);
    const struct map_summary summary = syncedmem_map_summary(&map, 0, SPAN);
    cr_assert(summary.has_fresh);
    cr_assert_eq(summary.in_any, 0);
    cr_assert_eq(map.count, 1);
    cr_assert_eq(syncedmem_map_valid_bytes(&map, 0, SPAN, 1), 0);
    syncedmem_map_destroy(&map);
}

/* A change of the whole, or of what is one segment already, takes no memory. */
Test(map, whole_changes_need_no_room)
{
    struct map map;
    syncedmem_map_init(&map, SPAN);
    cr_assert(syncedmem_map_reserve(&map, 0, SPAN));
    cr_assert_eq(map.segments, &map.single);
    syncedmem_map_assign(&map, 0, SPAN, 1);
    cr_assert_eq(map.count, 1);
    cr_assert_eq(map.segments, &map.single);
    cr_assert(syncedmem_map_reserve(&map, 1, SPAN));
    cr_assert_neq(map.segments, &map.single);
    cr_assert_geq(map.capacity, 2);
    syncedmem_map_destroy(&map);
}

Test(map, cuts_at_both_ends_and_joins_again)
{
    struct twin twin;
    twin_make(&twin);
    change_both(&twin, ASSIGN, 10, 20, 1);
    cr_assert_eq(twin.map.count, 3);
    change_both(&twin, ASSIGN, 20, 30, 1);
    cr_assert_eq(twin.map.count, 3);
    change_both(&twin, ASSIGN, 15, 25, 2);
    cr_assert_eq(twin.map.count, 5);
    change_both(&twin, ADD, 10, 30, 3);
    cr_assert_eq(twin.map.count, 3);
    change_both(&twin, ASSIGN, 0, 10, 3);
    change_both(&twin, ASSIGN, 30, SPAN, 3);
    cr_assert_eq(twin.map.count, 1);
    check_segments(&twin);
    syncedmem_map_destroy(&twin.map);
}

Test(map, a_change_of_one_segment_joins_both_neighbours)
{
    struct twin twin;
    twin_make(&twin);
    change_both(&twin, ASSIGN, 0, 40, 1);
    change_both(&twin, ASSIGN, 40, 41, 2);
    change_both(&twin, ASSIGN, 41, SPAN, 1);
    cr_assert_eq(twin.map.count, 3);
    change_both(&twin, ASSIGN, 40, 41, 1);
    cr_assert_eq(twin.map.count, 1);
    check_segments(&twin);
    syncedmem_map_destroy(&twin.map);
}

Test(map, the_last_place_stays)
{
    struct twin twin;
    twin_make(&twin);
    change_both(&twin, ASSIGN, 0, 50, 3);
    change_both(&twin, ASSIGN, 50, 60, 2);
    change_both(&twin, REMOVE, 0, SPAN, 2);
    cr_assert_eq(twin.bytes[49], 1);
    cr_assert_eq(twin.bytes[50], 2);
    cr_assert_eq(twin.bytes[60], 0);
    check_segments(&twin);
    syncedmem_map_destroy(&twin.map);
}

Test(map, every_byte_a_segment)
{
    struct twin twin;
    twin_make(&twin);
    for (size_t i = 0; i < SPAN; i++) {
        change_both(&twin, ASSIGN, i, i + 1, (place_set)1 << (i % 3));
    }
    cr_assert_eq(twin.map.count, SPAN);
    check_segments(&twin);
    for (size_t i = 0; i < SPAN; i++) {
        check_summary(&twin, i, i + 1);
        check_summary(&twin, i, SPAN);
    }
    change_both(&twin, ASSIGN, 0, SPAN, 1);
    cr_assert_eq(twin.map.count, 1);
    syncedmem_map_destroy(&twin.map);
}

/* What merging leaves behind: equal neighbours, anywhere. */
Test(map, join_all)
{
    struct map map;
    syncedmem_map_init(&map, SPAN);
    for (size_t i = 0; i < 8; i++) {
        cr_assert(syncedmem_map_reserve(&map, i * 10, i * 10 + 10));
        syncedmem_map_assign(&map, i * 10, i * 10 + 10, i % 2 + 1);
    }
    map.segments[1].valid = map.segments[0].valid;
    map.segments[6].valid = map.segments[7].valid;
    const size_t before = map.count;
    syncedmem_map_join_all(&map);
    /* 0 and 1 join 2, which is as 0; 5 is as 7, so 6 joins both. */
    cr_assert_eq(map.count, before - 4);
    cr_assert_eq(map.segments[0].start, 0);
    cr_assert_eq(map.segments[1].start, 30);
    syncedmem_map_destroy(&map);
}

Test(map, an_empty_range_has_nothing)
{
    struct map map;
    syncedmem_map_init(&map, SPAN);
    for (size_t at = 0; at <= SPAN; at += SPAN) {
        const struct map_summary summary = syncedmem_map_summary(&map, at, at);
        cr_assert_eq(summary.in_any, 0);
        cr_assert(!summary.has_fresh);
    }
    syncedmem_map_destroy(&map);
}
