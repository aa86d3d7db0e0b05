/* SPDX-License-Identifier: BSD-2-Clause */
/* Transfers that fail while a call waits for them, or several at once: each is returned once. */
#include <stdlib.h>

#include "crowd.h"

TestSuite(late_failures, .init = sim_setup, .timeout = 120);

enum { SIZE = 10000, LATER = 30 };

struct late {
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    struct gate gate;
};

/* Newest at a place, with a failing prefetch of [100, 300) to another one held up by a gate. */
static void late_make(struct late *late, syncedmem_place *from, syncedmem_place *to)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_create(SIZE, &late->buffer));
    assert_ok(syncedmem_set_home(late->buffer, sim(0)));
    assert_ok(syncedmem_begin(late->buffer, from, SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer, NULL,
                              &token));
    if (from == syncedmem_host()) {
        pattern_write(pointer, SIZE, 3);
    } else {
        device_pattern_write(0, pointer, SIZE, 3);
    }
    assert_ok(syncedmem_end(late->buffer, token));
    assert_ok(syncedmem_wait(late->buffer));
    assert_ok(syncedmem_stream_create(sim(0), &late->stream));
    gate_put(&late->gate, late->stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_prefetch(late->buffer, to, 100, 200, late->stream));
    gate_open_later(&late->gate, LATER);
}

static void late_end(struct late *late)
{
    const void *reading;
    assert_ok(syncedmem_gpu_data(late->buffer, &reading));
    cr_assert(device_pattern_is(0, reading, SIZE, 3));
    assert_ok(syncedmem_cpu_data(late->buffer, &reading));
    cr_assert(pattern_is(reading, SIZE, 3));
    gate_join(&late->gate);
    syncedmem_stream_release(late->stream);
    syncedmem_release(late->buffer);
}

/* A transfer to the same place waits for the one before it. */
Test(late_failures, of_the_place_that_is_asked_for)
{
    struct late late;
    const void *reading = &late;
    late_make(&late, syncedmem_host(), sim(0));
    assert_status(syncedmem_gpu_data(late.buffer, &reading), SYNCEDMEM_DEVICE_ERROR);
    cr_assert_null(reading);
    cr_assert_eq(syncedmem_head(late.buffer), SYNCEDMEM_HEAD_AT_CPU);
    late_end(&late);
}

/* A transfer from a place comes after what is still arriving there, and fails with it. */
Test(late_failures, of_the_place_that_gives)
{
    struct late late;
    void *pointer = &late;
    syncedmem_token_t token;
    late_make(&late, sim(0), syncedmem_host());
    assert_ok(syncedmem_begin(late.buffer, sim(1), SYNCEDMEM_READ, 0, SIZE, NULL, &pointer, NULL,
                              &token));
    assert_status(syncedmem_wait(late.buffer), SYNCEDMEM_DEVICE_ERROR);
    assert_ok(syncedmem_end(late.buffer, token));
    size_t there;
    assert_ok(syncedmem_valid_bytes(late.buffer, sim(1), 100, 200, &there));
    cr_assert_eq(there, 0);
    cr_assert_eq(syncedmem_head(late.buffer), SYNCEDMEM_HEAD_AT_GPU);
    late_end(&late);
}

Test(late_failures, of_a_range_that_is_written)
{
    for (int which = 0; which < 3; which++) {
        struct late late;
        late_make(&late, syncedmem_host(), sim(0));
        if (which == 0) {
            assert_status(syncedmem_fill(late.buffer, 0, SIZE, 1), SYNCEDMEM_DEVICE_ERROR);
        } else if (which == 1) {
            assert_status(syncedmem_mark_modified(late.buffer, sim(0), 0, SIZE),
                          SYNCEDMEM_DEVICE_ERROR);
        } else {
            assert_status(syncedmem_drop(late.buffer, sim(0)), SYNCEDMEM_DEVICE_ERROR);
        }
        cr_assert_eq(syncedmem_head(late.buffer), SYNCEDMEM_HEAD_AT_CPU);
        late_end(&late);
    }
}

/* It has ended before the call. */
Test(late_failures, that_are_over)
{
    for (int which = 0; which < 3; which++) {
        struct late late;
        syncedmem_buffer *other;
        assert_ok(syncedmem_create(SIZE, &other));
        late_make(&late, syncedmem_host(), sim(0));
        syncedmem_stream_wait(late.stream);
        if (which == 0) {
            assert_status(syncedmem_drop(late.buffer, syncedmem_host()), SYNCEDMEM_DEVICE_ERROR);
        } else if (which == 1) {
            assert_status(syncedmem_copy(late.buffer, 0, other, 0, 9), SYNCEDMEM_DEVICE_ERROR);
            cr_assert_eq(syncedmem_head(other), SYNCEDMEM_UNINITIALIZED);
        } else {
            assert_status(syncedmem_copy(other, 0, late.buffer, 0, 9), SYNCEDMEM_DEVICE_ERROR);
            cr_assert_eq(syncedmem_head(other), SYNCEDMEM_UNINITIALIZED);
        }
        syncedmem_release(other);
        late_end(&late);
    }
}

/* Two that failed are one failure: the next call tells it, and the one after works. */
Test(late_failures, two_at_once)
{
    for (int waited = 0; waited < 2; waited++) {
        struct late late;
        late_make(&late, syncedmem_host(), sim(0));
        assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
        assert_ok(syncedmem_prefetch(late.buffer, sim(0), 1000, 10, late.stream));
        if (waited) {
            syncedmem_stream_wait(late.stream);
        }
        assert_status(waited ? syncedmem_fill(late.buffer, 0, 1, pattern_at(3, 0))
                             : syncedmem_wait(late.buffer),
                      SYNCEDMEM_DEVICE_ERROR);
        size_t there;
        assert_ok(syncedmem_valid_bytes(late.buffer, sim(0), 0, SIZE, &there));
        cr_assert_eq(there, 0);
        late_end(&late);
    }
}

/* No call waits for transfers of other bytes than its own. */
Test(late_failures, other_ranges_are_not_waited_for)
{
    struct late late;
    void *pointer;
    syncedmem_token_t token;
    static const size_t starts[] = {0, 300, 5000};
    assert_ok(syncedmem_create(SIZE, &late.buffer));
    assert_ok(syncedmem_stream_create(sim(0), &late.stream));
    assert_ok(syncedmem_fill(late.buffer, 0, SIZE, 6));
    gate_put(&late.gate, late.stream);
    assert_ok(syncedmem_prefetch(late.buffer, sim(0), 100, 200, late.stream));
    for (size_t i = 0; i < 3; i++) {
        assert_ok(syncedmem_fill(late.buffer, starts[i], 100, 7));
        assert_ok(syncedmem_begin(late.buffer, sim(0), SYNCEDMEM_READ, starts[i], 100, NULL,
                                  &pointer, NULL, &token));
        assert_ok(syncedmem_end(late.buffer, token));
    }
    cr_assert(!gate_is_open(&late.gate));
    cr_assert_eq(stat_of(late.buffer, SYNCEDMEM_STAT_WAITS), 0);
    gate_open(&late.gate);
    assert_ok(syncedmem_wait(late.buffer));
    syncedmem_stream_release(late.stream);
    syncedmem_release(late.buffer);
}

/* Merging waits for all transfers of the buffer, and tells their failure first. */
Test(late_failures, before_a_merge)
{
    struct crowd crowd;
    struct gate gate;
    syncedmem_stream *stream;
    crowd_make(&crowd, size_for(PIECES, 8, 8));
    fill_all(&crowd, 0, 7);
    put_pieces(&crowd, -1, PIECES - 1, 8, 8);
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_prefetch(crowd.buffer, syncedmem_host(), 10, 20, stream));
    gate_open_later(&gate, LATER);
    assert_status(put(&crowd, -1, 5000, 10, 1), SYNCEDMEM_DEVICE_ERROR);
    assert_ok(put(&crowd, -1, 5000, 10, 1));
    crowd_check(&crowd, 0);
    gate_join(&gate);
    syncedmem_stream_release(stream);
    crowd_end(&crowd);
}
