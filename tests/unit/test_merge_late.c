/* SPDX-License-Identifier: BSD-2-Clause */
/* Crowded maps after bad luck: with lost bytes, with bytes that are fresh again, in a forked child. */
#include "crowd.h"
#include "processes.h"

TestSuite(merge_late, .init = sim_setup, .timeout = 120);

enum { LENGTH = 8, GAP = 8, JUNK = 0x77 };

static struct crowd crowd;

static syncedmem_status_t read_host(size_t from, size_t length)
{
    void *pointer;
    syncedmem_token_t token;
    const syncedmem_status_t status = syncedmem_begin(
        crowd.buffer, syncedmem_host(), SYNCEDMEM_READ, from, length, NULL, &pointer, NULL, &token);
    if (status != SYNCEDMEM_OK) {
        return status;
    }
    cr_assert(memcmp(pointer, crowd.bytes + from, length) == 0, "from %zu on", from);
    return syncedmem_end(crowd.buffer, token);
}

/* ---- Lost bytes ---- */

/* Every other piece was at a device that is lost: no merge makes up bytes for it. */
Test(merge_late, with_lost_bytes)
{
    crowd_make(&crowd, size_for(PIECES, LENGTH, GAP));
    fill_all(&crowd, -1, 7);
    for (size_t i = 0; i < PIECES; i++) {
        assert_ok(put(&crowd, (int)(i % 2), piece_start(i, LENGTH, GAP), LENGTH, 9));
    }
    assert_ok(syncedmem_sim_lose(sim(0)));
    cr_assert_eq(merges(&crowd), 0);
    assert_ok(nudge(&crowd, 1, LENGTH, GAP));
    cr_assert_gt(merges(&crowd), 0);
    for (size_t i = 0; i < PIECES; i++) {
        const size_t start = piece_start(i, LENGTH, GAP);
        if (i % 2 == 0) {
            assert_status(read_host(start, LENGTH), SYNCEDMEM_DATA_LOST);
            assert_status(read_host(start + LENGTH - 1, 1), SYNCEDMEM_DATA_LOST);
            assert_ok(read_host(start + LENGTH, GAP + LENGTH + GAP));
        }
    }
    assert_ok(read_host(0, EDGE));
    for (size_t i = 0; i < PIECES; i += 2) {
        assert_ok(put(&crowd, -1, piece_start(i, LENGTH, GAP), LENGTH, 5));
    }
    crowd_check(&crowd, 1);
    assert_ok(syncedmem_sim_restore(sim(0)));
    crowd_end(&crowd);
}

/* ---- Fresh again ---- */

/* So that memory that the next buffer gets is not zero. */
static void spoil_free_memory(size_t size)
{
    for (int i = 0; i < 2; i++) {
        syncedmem_buffer *buffer;
        assert_ok(syncedmem_create(size, &buffer));
        assert_ok(syncedmem_fill(buffer, 0, size, JUNK));
        syncedmem_release(buffer);
    }
}

/* The host's block was made when the device had the zeros, which then failed to get there. */
Test(merge_late, with_gaps_that_are_fresh_again)
{
    struct gate gate;
    syncedmem_stream *stream;
    syncedmem_token_t token;
    void *pointer;
    const size_t size = size_for(PIECES, LENGTH, GAP);
    spoil_free_memory(size);
    crowd_make(&crowd, size);
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_begin(crowd.buffer, sim(0), SYNCEDMEM_READ, 0, size, stream, &pointer, NULL,
                              &token));
    assert_ok(syncedmem_end(crowd.buffer, token));
    put_pieces(&crowd, -1, PIECES, LENGTH, GAP);
    gate_open(&gate);
    assert_status(syncedmem_wait(crowd.buffer), SYNCEDMEM_DEVICE_ERROR);
    cr_assert_eq(valid_at(&crowd, syncedmem_host()), PIECES * LENGTH);
    cr_assert_eq(merges(&crowd), 0);
    assert_ok(nudge(&crowd, -1, LENGTH, GAP));
    cr_assert_gt(merges(&crowd), 0);
    cr_assert_gt(valid_at(&crowd, syncedmem_host()), PIECES * LENGTH);
    crowd_check(&crowd, 0);
    syncedmem_stream_release(stream);
    crowd_end(&crowd);
}

/* ---- In a forked child ---- */

/* What is at the device cannot be asked for: nothing is merged, and the host's bytes change as ever. */
static void child_writes_on(void)
{
    const void *pointer;
    CHILD_OK(nudge(&crowd, -1, LENGTH, GAP));
    for (size_t i = 0; i < 100; i++) {
        CHILD_OK(put(&crowd, -1, 100 + 100 * i, LENGTH, 9));
    }
    CHILD_CHECK(merges(&crowd) == 0);
    CHILD_OK(syncedmem_cpu_data(crowd.buffer, &pointer));
    CHILD_CHECK(memcmp(pointer, crowd.bytes, crowd.size) == 0);
    syncedmem_release(crowd.buffer);
}

Test(merge_late, in_a_forked_child)
{
    crowd_make(&crowd, size_for(PIECES, LENGTH, GAP));
    fill_all(&crowd, -1, 7);
    crowd_check(&crowd, 0);
    put_pieces(&crowd, -1, PIECES, LENGTH, GAP);
    assert_forked(child_writes_on);
    assert_ok(nudge(&crowd, -1, LENGTH, GAP));
    cr_assert_gt(merges(&crowd), 0);
    crowd_check(&crowd, 0);
    crowd_end(&crowd);
}

/* A block that is made there is registered with no device of the parent's. */
static syncedmem_buffer *pinned;

static void child_makes_a_host_block(void)
{
    void *pointer;
    const void *reading;
    syncedmem_token_t token;
    const size_t size = syncedmem_size(pinned);
    CHILD_OK(syncedmem_begin(pinned, syncedmem_host(), SYNCEDMEM_WRITE, 0, size, NULL, &pointer,
                             NULL, &token));
    pattern_write(pointer, size, 5);
    CHILD_OK(syncedmem_end(pinned, token));
    CHILD_OK(syncedmem_cpu_data(pinned, &reading));
    CHILD_CHECK(pattern_is(reading, size, 5));
    CHILD_CHECK(stat_of(pinned, SYNCEDMEM_STAT_PIN_FALLBACKS) == 0);
    syncedmem_release(pinned);
}

Test(merge_late, pinned_block_of_a_forked_child)
{
    enum { SIZE = 5000 };
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_create(SIZE, &pinned));
    assert_ok(syncedmem_set_host_policy(pinned, SYNCEDMEM_PINNED));
    assert_ok(
        syncedmem_begin(pinned, sim(0), SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer, NULL, &token));
    device_pattern_write(0, pointer, SIZE, 3);
    assert_ok(syncedmem_end(pinned, token));
    assert_forked(child_makes_a_host_block);
    const void *reading;
    assert_ok(syncedmem_cpu_data(pinned, &reading));
    cr_assert(pattern_is(reading, SIZE, 3));
    syncedmem_release(pinned);
}
