/* SPDX-License-Identifier: BSD-2-Clause */
/* A map with too many segments: what is merged, what it costs, and that no byte is lost by it. */
#include "crowd.h"

TestSuite(merge, .init = sim_setup, .timeout = 120);

/* PIECES pieces with gaps between make the largest map that is not merged: 2 * PIECES + 1. */
enum { DIRTY = 8 };

/* ---- Exact ---- */

Test(merge, exact_to_512_segments)
{
    struct crowd crowd;
    const size_t pieces = MAP_EXACT / 2 - 1;
    crowd_make(&crowd, size_for(pieces, 3, 5));
    fill_all(&crowd, -1, 7);
    crowd_check(&crowd, 0);
    put_pieces(&crowd, -1, pieces, 3, 5);
    cr_assert_eq(valid_at(&crowd, sim(0)), crowd.size - 3 * pieces);
    cr_assert_eq(merges(&crowd), 0);
    const uint64_t before = stat_of(crowd.buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE);
    crowd_check(&crowd, 0);
    cr_assert_eq(stat_of(crowd.buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE) - before, 3 * pieces);
    crowd_end(&crowd);
}

/* ---- Cheap neighbours ---- */

/* Gaps of distinct sizes in no order: 521 is a prime, so all multiples of 100 differ. */
static size_t odd_gap(size_t index)
{
    return 16 + index * 100 % 521 * 4;
}

static size_t odd_start(size_t index)
{
    size_t start = EDGE;
    for (size_t i = 0; i < index; i++) {
        start += DIRTY + odd_gap(i);
    }
    return start;
}

static int by_size(const void *one, const void *other)
{
    const size_t a = *(const size_t *)one, b = *(const size_t *)other;
    return (a > b) - (a < b);
}

/* The best that any choice of neighbours can do. */
static size_t least_cost(size_t gaps, size_t closed)
{
    size_t sizes[PIECES], cost = 0;
    for (size_t i = 0; i < gaps; i++) {
        sizes[i] = odd_gap(i);
    }
    qsort(sizes, gaps, sizeof sizes[0], by_size);
    for (size_t i = 0; i < closed; i++) {
        cost += sizes[i];
    }
    return cost;
}

/* SYNCED, then dirty on the host: each gap closed is so many bytes sent again. */
Test(merge, takes_the_cheapest_gaps)
{
    struct crowd crowd;
    crowd_make(&crowd, odd_start(PIECES) + EDGE);
    fill_all(&crowd, -1, 7);
    crowd_check(&crowd, 0);
    for (size_t i = 0; i < PIECES; i++) {
        assert_ok(put(&crowd, -1, odd_start(i), DIRTY, (unsigned char)i));
    }
    cr_assert_eq(merges(&crowd), 0);
    assert_ok(put(&crowd, -1, odd_start(0), DIRTY, 9));
    cr_assert_gt(merges(&crowd), 0);
    const size_t best = least_cost(PIECES - 1, CLOSED);
    const size_t lost = crowd.size - PIECES * DIRTY - valid_at(&crowd, sim(0));
    cr_assert_geq(lost, least_cost(PIECES - 1, CLOSED - 1));
    cr_assert_leq(lost, best, "%zu bytes are sent again, %zu would do", lost, best);
    cr_assert_eq(valid_at(&crowd, syncedmem_host()), crowd.size);
    const uint64_t before = stat_of(crowd.buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE);
    crowd_check(&crowd, 0);
    cr_assert_eq(stat_of(crowd.buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE) - before,
                 PIECES * DIRTY + lost);
    crowd_end(&crowd);
}

/* A merge moves nothing where neighbours have a place in common: it keeps that place. */
Test(merge, keeps_the_intersection)
{
    struct crowd crowd;
    crowd_make(&crowd, size_for(PIECES, 16, 4));
    fill_all(&crowd, 0, 7);
    crowd_check(&crowd, 0);
    put_pieces(&crowd, 0, PIECES, 16, 4);
    const uint64_t before = stat_of(crowd.buffer, SYNCEDMEM_STAT_TRANSFERS);
    const size_t host_before = valid_at(&crowd, syncedmem_host());
    assert_ok(nudge(&crowd, 0, 16, 4));
    cr_assert_eq(stat_of(crowd.buffer, SYNCEDMEM_STAT_TRANSFERS), before);
    cr_assert_eq(valid_at(&crowd, sim(0)), crowd.size);
    const size_t lost = host_before - valid_at(&crowd, syncedmem_host());
    cr_assert_geq(lost, (CLOSED - 1) * 4);
    cr_assert_leq(lost, CLOSED * 4);
    crowd_check(&crowd, 0);
    crowd_end(&crowd);
}

/* ---- Nothing in common: the shorter is copied first ---- */

static void check_shorter_is_copied(size_t length, size_t gap)
{
    struct crowd crowd;
    crowd_make(&crowd, size_for(PIECES, length, gap));
    fill_all(&crowd, 0, 7);
    put_pieces(&crowd, -1, PIECES, length, gap);
    cr_assert_eq(stat_of(crowd.buffer, SYNCEDMEM_STAT_TRANSFERS), 0);
    assert_ok(nudge(&crowd, -1, length, gap));
    const bool to_host = gap < length;
    const uint64_t bytes = stat_of(crowd.buffer, to_host ? SYNCEDMEM_STAT_BYTES_TO_HOST
                                                         : SYNCEDMEM_STAT_BYTES_TO_DEVICE);
    const size_t shorter = to_host ? gap : length;
    /* One submission where only one kind is shorter. */
    cr_assert_leq(stat_of(crowd.buffer, SYNCEDMEM_STAT_TRANSFERS), length == gap ? 4 : 1);
    cr_assert_leq(bytes, (2 * CLOSED + 2) * shorter, "%llu bytes", (unsigned long long)bytes);
    cr_assert(length == gap || bytes >= (CLOSED - 1) * shorter);
    cr_assert_gt(merges(&crowd), 0);
    crowd_check(&crowd, 0);
    crowd_check(&crowd, 1);
    crowd_end(&crowd);
}

Test(merge, nothing_in_common)
{
    check_shorter_is_copied(48, 16);
    check_shorter_is_copied(16, 48);
    check_shorter_is_copied(1024, 1024);
}

/* Host and device by turns, a KiB each, over bytes that are newest at the device. */
Test(merge, alternating_host_and_device)
{
    struct crowd crowd;
    enum { KIB = 1024, CELLS = 1600 };
    crowd_make(&crowd, (size_t)CELLS * KIB);
    fill_all(&crowd, 0, 7);
    for (size_t i = 0; i < CELLS; i++) {
        assert_ok(put(&crowd, i % 2 == 0 ? -1 : 0, i * KIB, KIB, (unsigned char)i));
    }
    cr_assert_gt(merges(&crowd), 0);
    const uint64_t moved = stat_of(crowd.buffer, SYNCEDMEM_STAT_BYTES_TO_HOST) +
                           stat_of(crowd.buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE);
    cr_assert_leq(moved, crowd.size);
    crowd_check(&crowd, 0);
    crowd_check(&crowd, 1);
    crowd_end(&crowd);
}

/* Places that hold the bytes, one letter a piece, so that any change shows. */
static void list_places(const struct crowd *crowd, char *list)
{
    for (size_t i = 0; i < 2 * PIECES; i++) {
        size_t host, device;
        assert_ok(syncedmem_valid_bytes(crowd->buffer, syncedmem_host(), EDGE + i * 16, 16, &host));
        assert_ok(syncedmem_valid_bytes(crowd->buffer, sim(0), EDGE + i * 16, 16, &device));
        list[i] = (char)('a' + host / 16 + device / 16 * 2);
    }
    list[2 * PIECES] = '\0';
}

Test(merge, that_fails_changes_nothing)
{
    static char before[2 * PIECES + 1], after[2 * PIECES + 1];
    struct crowd crowd;
    void *out = &out;
    size_t offset = 9;
    syncedmem_token_t token = 9;
    crowd_make(&crowd, size_for(PIECES, 16, 16));
    fill_all(&crowd, 0, 7);
    put_pieces(&crowd, -1, PIECES, 16, 16);
    list_places(&crowd, before);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY, 1));
    assert_status(syncedmem_begin(crowd.buffer, syncedmem_host(), SYNCEDMEM_WRITE, 5, 20, NULL,
                                  &out, &offset, &token),
                  SYNCEDMEM_DEVICE_ERROR);
    cr_assert_null(out);
    cr_assert_eq(token, 0);
    cr_assert_eq(merges(&crowd), 0);
    cr_assert_eq(stat_of(crowd.buffer, SYNCEDMEM_STAT_LEASES), 0);
    list_places(&crowd, after);
    cr_assert_str_eq(before, after);
    assert_ok(put(&crowd, -1, 5, 20, 3));
    cr_assert_gt(merges(&crowd), 0);
    crowd_check(&crowd, 0);
    crowd_end(&crowd);
}
