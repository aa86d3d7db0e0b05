/* SPDX-License-Identifier: BSD-2-Clause */
/* What merging leaves alone: leased bytes, memory that may not be written, the bytes' values. */
#include <sys/mman.h>

#include "crowd.h"

TestSuite(merge_limits, .init = sim_setup, .timeout = 120);

/* ---- What may not be moved or written ---- */

/* Looking after a lease is a change as well: the last one that is not merged for. */
enum { HELD = PIECES - 1 };

struct held {
    syncedmem_token_t tokens[HELD];
    void *pointers[HELD];
};

static void hold_pieces(struct crowd *crowd, struct held *held, size_t length, size_t gap)
{
    for (size_t i = 0; i < HELD; i++) {
        assert_ok(syncedmem_begin(crowd->buffer, syncedmem_host(), SYNCEDMEM_READ,
                                  piece_start(i, length, gap), length, NULL, &held->pointers[i],
                                  NULL, &held->tokens[i]));
    }
}

static void let_go(struct crowd *crowd, struct held *held)
{
    for (size_t i = 0; i < HELD; i++) {
        assert_ok(syncedmem_end(crowd->buffer, held->tokens[i]));
    }
}

/* The shorter ones are leased: nothing can be merged, and the map grows on. */
Test(merge_limits, leased_ranges_are_not_moved)
{
    static struct held held;
    struct crowd crowd;
    crowd_make(&crowd, size_for(PIECES, 16, 48));
    fill_all(&crowd, 0, 7);
    put_pieces(&crowd, -1, HELD, 16, 48);
    hold_pieces(&crowd, &held, 16, 48);
    for (size_t i = 0; i < 20; i++) {
        assert_ok(put(&crowd, -1, 100 + i * 64, 32, (unsigned char)i));
    }
    for (size_t i = 0; i < HELD; i++) {
        size_t there;
        assert_ok(syncedmem_valid_bytes(crowd.buffer, sim(0), piece_start(i, 16, 48), 16, &there));
        cr_assert_eq(there, 0, "piece %zu", i);
        cr_assert_eq(((unsigned char *)held.pointers[i])[15], (unsigned char)(i | 1));
    }
    let_go(&crowd, &held);
    assert_ok(put(&crowd, -1, 1, 1, 1));
    cr_assert_gt(merges(&crowd), 0);
    crowd_check(&crowd, 0);
    crowd_end(&crowd);
}

/* All bytes are leased where they are newest: nothing can be merged, and calls work on. */
Test(merge_limits, all_is_leased)
{
    static syncedmem_token_t tokens[2 * PIECES + 1];
    struct crowd crowd;
    void *pointer;
    const size_t cells = 2 * PIECES;
    crowd_make(&crowd, cells * 16 + 1);
    fill_all(&crowd, 0, 7);
    for (size_t i = 0; i < cells; i += 2) {
        assert_ok(put(&crowd, -1, i * 16, 16, (unsigned char)i));
    }
    for (size_t i = 0; i < cells; i++) {
        assert_ok(syncedmem_begin(crowd.buffer, i % 2 ? sim(0) : syncedmem_host(), SYNCEDMEM_READ,
                                  i * 16, 16, NULL, &pointer, NULL, &tokens[i]));
    }
    assert_ok(syncedmem_begin(crowd.buffer, syncedmem_host(), SYNCEDMEM_READ_WRITE, cells * 16, 1,
                              NULL, &pointer, NULL, &tokens[cells]));
    for (size_t i = 0; i < cells; i += 2) {
        syncedmem_token_t second;
        assert_ok(syncedmem_begin(crowd.buffer, syncedmem_host(), SYNCEDMEM_READ, i * 16, 16, NULL,
                                  &pointer, NULL, &second));
        assert_ok(syncedmem_end(crowd.buffer, second));
    }
    cr_assert_eq(merges(&crowd), 0);
    cr_assert_leq(stat_of(crowd.buffer, SYNCEDMEM_STAT_TRANSFERS), 1);
    for (size_t i = 0; i <= cells; i++) {
        assert_ok(syncedmem_end(crowd.buffer, tokens[i]));
    }
    crowd_check(&crowd, 0);
    cr_assert_gt(merges(&crowd), 0);
    crowd_end(&crowd);
}

/* The first and the last bytes are those that are cheapest to move. */
Test(merge_limits, at_the_ends)
{
    for (int end = 0; end < 2; end++) {
        struct crowd crowd;
        const size_t cells = 2 * PIECES - 1, shift = end ? 0 : 4;
        crowd_make(&crowd, cells * 16 + 4);
        fill_all(&crowd, 0, 7);
        for (size_t i = 0; i < cells; i += 2) {
            assert_ok(put(&crowd, -1, i * 16 + shift, 16, (unsigned char)i));
        }
        assert_ok(put(&crowd, -1, 20, 4, 1));
        assert_ok(put(&crowd, -1, 30, 2, 1));
        assert_ok(put(&crowd, -1, 16 + shift + 2, 2, 2));
        cr_assert_gt(merges(&crowd), 0, "end %d", end);
        crowd_check(&crowd, 0);
        crowd_check(&crowd, 1);
        crowd_end(&crowd);
    }
}

/* A reader's bytes stay valid where it reads them: a second reader moves nothing under it. */
Test(merge_limits, leased_ranges_stay_valid)
{
    struct crowd crowd;
    void *pointer;
    size_t there;
    syncedmem_token_t token;
    const size_t gap = piece_start(100, 16, 8) + 16;
    crowd_make(&crowd, size_for(PIECES, 16, 8));
    fill_all(&crowd, -1, 7);
    crowd_check(&crowd, 0);
    put_pieces(&crowd, -1, PIECES, 16, 8);
    assert_ok(syncedmem_begin(crowd.buffer, sim(0), SYNCEDMEM_READ, gap + 2, 3, NULL, &pointer,
                              NULL, &token));
    for (size_t i = 0; i < MAP_LIMIT / 2 + 100; i++) {
        assert_ok(put(&crowd, -1, 8 + i * 32, 16, (unsigned char)i));
    }
    cr_assert_gt(merges(&crowd), 0);
    assert_ok(syncedmem_valid_bytes(crowd.buffer, sim(0), gap + 2, 3, &there));
    cr_assert_eq(there, 3);
    assert_ok(syncedmem_end(crowd.buffer, token));
    crowd_check(&crowd, 0);
    crowd_end(&crowd);
}

/* The same where bytes are moved to a second place, and a third one is where they are read. */
Test(merge_limits, leased_ranges_stay_valid_at_a_third_place)
{
    static syncedmem_token_t tokens[HELD];
    struct crowd crowd;
    void *pointer;
    size_t there;
    crowd_make(&crowd, size_for(HELD, 16, 48));
    fill_all(&crowd, 0, 7);
    assert_ok(syncedmem_prefetch(crowd.buffer, sim(1), 0, crowd.size, NULL));
    put_pieces(&crowd, -1, HELD, 16, 48);
    for (size_t i = 0; i < HELD; i++) {
        assert_ok(syncedmem_begin(crowd.buffer, sim(1), SYNCEDMEM_READ, piece_start(i, 16, 48) + 16,
                                  48, NULL, &pointer, NULL, &tokens[i]));
    }
    for (size_t i = 0; i < 30; i++) {
        assert_ok(put(&crowd, -1, 8 + i * 32, 16, (unsigned char)i));
    }
    for (size_t i = 0; i < HELD; i++) {
        assert_ok(
            syncedmem_valid_bytes(crowd.buffer, sim(1), piece_start(i, 16, 48) + 16, 48, &there));
        cr_assert_eq(there, 48, "gap %zu", i);
        assert_ok(syncedmem_end(crowd.buffer, tokens[i]));
    }
    crowd_check(&crowd, 0);
    crowd_check(&crowd, 1);
    crowd_end(&crowd);
}

/* Pages that fault when they are written. */
static unsigned char *read_only_pages(size_t size, unsigned char value)
{
    unsigned char *pages =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)pages, MAP_FAILED);
    memset(pages, value, size);
    cr_assert_eq(mprotect(pages, size, PROT_READ), 0);
    return pages;
}

static void count_call(void *user)
{
    ++*(int *)user;
}

static void check_read_only(size_t length, size_t gap, bool merges_at_all)
{
    struct crowd crowd;
    int calls = 0;
    crowd_make(&crowd, size_for(PIECES, length, gap));
    unsigned char *pages = read_only_pages(crowd.size, 7);
    memset(crowd.bytes, 7, crowd.size);
    assert_ok(syncedmem_adopt(crowd.buffer, syncedmem_host(), pages, crowd.size,
                              SYNCEDMEM_ADOPT_READ_ONLY, NULL, count_call, &calls));
    put_pieces(&crowd, 0, PIECES, length, gap);
    assert_ok(nudge(&crowd, 0, length, gap));
    assert_ok(nudge(&crowd, 0, length, gap));
    cr_assert_eq(merges(&crowd) > 0, merges_at_all, "%zu, %zu", length, gap);
    cr_assert_eq(calls, 0);
    crowd_check(&crowd, 0);
    cr_assert_eq(calls, 1);
    crowd_end(&crowd);
    munmap(pages, crowd.size);
}

Test(merge_limits, read_only_memory_is_not_written)
{
    check_read_only(16, 48, true);
    check_read_only(48, 16, true);
}

/* ---- Fresh bytes ---- */

/* Where memory shows zeros they cost nothing to merge with; where it does not they are written. */
static void check_fresh(int device)
{
    struct crowd crowd;
    crowd_make(&crowd, size_for(PIECES, 8, 24));
    put_pieces(&crowd, device, PIECES, 8, 24);
    assert_ok(nudge(&crowd, device, 8, 24));
    assert_ok(nudge(&crowd, device, 8, 24));
    cr_assert_gt(merges(&crowd), 0);
    cr_assert_eq(stat_of(crowd.buffer, SYNCEDMEM_STAT_TRANSFERS), 0);
    const uint64_t zeroed = stat_of(crowd.buffer, SYNCEDMEM_STAT_BYTES_ZEROED);
    cr_assert_eq(zeroed > 0, device >= 0);
    crowd_check(&crowd, 0);
    crowd_check(&crowd, 1);
    crowd_end(&crowd);
}

Test(merge_limits, with_fresh_bytes)
{
    check_fresh(-1);
    check_fresh(0);
}

/* ---- All together ---- */

static unsigned next_random(unsigned limit)
{
    static uint64_t state = 88172645463325252U;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 11) % limit);
}

Test(merge_limits, random_writes_at_three_places)
{
    struct crowd crowd;
    enum { SPREAD = 60000 };
    crowd_make(&crowd, SPREAD + 64);
    for (unsigned i = 0; i < 6000; i++) {
        const int device = (int)next_random(3) - 1;
        assert_ok(put(&crowd, device, next_random(SPREAD), 1 + next_random(40), (unsigned char)i));
        if (i % 1500 == 1499) {
            crowd_check(&crowd, 0);
        }
    }
    cr_assert_gt(merges(&crowd), 0);
    crowd_check(&crowd, 0);
    crowd_check(&crowd, 1);
    crowd_end(&crowd);
}
