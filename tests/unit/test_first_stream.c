/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first use of a device's default stream is inside a call, and there is no memory for it. Each
 * trial is a process of its own.
 */
/* link: wrap-alloc */
#include <stdlib.h>

#include "support.h"
#include "wrap_alloc.h"

TestSuite(first_stream, .timeout = 60);

enum { NOT_REACHED = 10, ROUNDS_MOST = 100, SIZE = 5000 };

static syncedmem_buffer *buffer, *other;
static syncedmem_stream *stream;
static syncedmem_status_t (*taken)(void);
static unsigned long nth;

/* Device memory without any work: adopted, and zero as a fresh mapping is. */
static syncedmem_buffer *at_device(void)
{
    syncedmem_buffer *made;
    void *memory;
    CHILD_OK(syncedmem_sim_alloc(sim(0), SIZE, &memory));
    CHILD_OK(syncedmem_create(SIZE, &made));
    CHILD_OK(syncedmem_set_gpu_data(made, memory, SIZE));
    return made;
}

static void trial(void)
{
    CHILD_OK(syncedmem_sim_configure("memory=8m"));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_stream_create(sim(0), &stream));
    buffer = at_device();
    other = at_device();
    const syncedmem_head_t head = syncedmem_head(buffer);
    wrap_fail_nth(nth);
    const syncedmem_status_t status = taken();
    const bool fired = wrap_fired();
    wrap_fail_nth(0);
    if (status != SYNCEDMEM_OK) {
        CHILD_CHECK(fired);
        CHILD_CHECK(status == SYNCEDMEM_OUT_OF_HOST_MEMORY);
        CHILD_CHECK(is_one_line(syncedmem_last_error()));
        CHILD_CHECK(syncedmem_head(buffer) == head);
        CHILD_CHECK(stat_of(NULL, SYNCEDMEM_STAT_LEASES) == 0);
        CHILD_OK(taken());
    }
    CHILD_OK(syncedmem_wait(buffer));
    syncedmem_release(buffer);
    syncedmem_release(other);
    CHILD_CHECK(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES) == 0);
    leave_child(fired ? 0 : NOT_REACHED);
}

static void try_first(syncedmem_status_t (*take)(void))
{
    int outcome = 0;
    taken = take;
    for (nth = 1; nth < ROUNDS_MOST && outcome == 0; nth++) {
        outcome = run_in_child(trial);
    }
    cr_assert_eq(outcome, NOT_REACHED, "n = %lu: exit status %d", nth - 1, outcome);
    cr_assert_gt(nth, 2);
}

static syncedmem_status_t take_cpu_data(void)
{
    const void *pointer;
    return syncedmem_cpu_data(buffer, &pointer);
}

static syncedmem_status_t take_prefetch(void)
{
    return syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, NULL);
}

static syncedmem_status_t take_prefetch_on_stream(void)
{
    return syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, stream);
}

static syncedmem_status_t take_fill(void)
{
    return syncedmem_fill(buffer, 0, SIZE, 1);
}

static syncedmem_status_t take_copy(void)
{
    return syncedmem_copy(buffer, 0, other, 0, SIZE);
}

static syncedmem_status_t begin_on(syncedmem_stream *used)
{
    void *pointer;
    syncedmem_token_t token;
    const syncedmem_status_t status =
        syncedmem_begin(buffer, sim(0), SYNCEDMEM_READ, 0, SIZE, used, &pointer, NULL, &token);
    if (status != SYNCEDMEM_OK) {
        return status;
    }
    const syncedmem_status_t ended = syncedmem_end(buffer, token);
    if (ended != SYNCEDMEM_OK) {
        CHILD_OK(syncedmem_end(buffer, token));
    }
    return ended;
}

static syncedmem_status_t take_begin(void)
{
    return begin_on(NULL);
}

static syncedmem_status_t take_begin_on_stream(void)
{
    return begin_on(stream);
}

/* Cannot fail: what the stream would have been waited for is not there. */
static syncedmem_status_t take_release(void)
{
    syncedmem_release(other);
    other = NULL;
    return SYNCEDMEM_OK;
}

Test(first_stream, cpu_data)
{
    try_first(take_cpu_data);
}

Test(first_stream, prefetch)
{
    try_first(take_prefetch);
    try_first(take_prefetch_on_stream);
}

Test(first_stream, fill)
{
    try_first(take_fill);
}

Test(first_stream, copy)
{
    try_first(take_copy);
}

Test(first_stream, begin)
{
    try_first(take_begin);
    try_first(take_begin_on_stream);
}

Test(first_stream, release)
{
    try_first(take_release);
}

/* ---- Unfinished transfers are taken back without memory, too ---- */

static syncedmem_status_t take_wait(void)
{
    return syncedmem_wait(buffer);
}

/* Seven pieces make the map so large that taking the last one back asks for room; without it, the
 * failure is told by the next call. */
static void take_back_trial(void)
{
    const void *reading;
    CHILD_OK(syncedmem_sim_configure("memory=8m"));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_fill(buffer, 0, SIZE, 0x55));
    for (size_t i = 1; i <= 7; i++) {
        if (i == 7) {
            CHILD_OK(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
        }
        CHILD_OK(syncedmem_prefetch(buffer, sim(0), i * 100, 50, NULL));
        CHILD_CHECK(i == 7 || take_wait() == SYNCEDMEM_OK);
    }
    wrap_fail_nth(1);
    const syncedmem_status_t status = take_wait();
    CHILD_CHECK(wrap_fired());
    wrap_fail_nth(0);
    CHILD_CHECK(status == SYNCEDMEM_OUT_OF_HOST_MEMORY);
    CHILD_CHECK(take_wait() == SYNCEDMEM_DEVICE_ERROR);
    size_t there;
    CHILD_OK(syncedmem_valid_bytes(buffer, sim(0), 700, 50, &there));
    CHILD_CHECK(there == 0);
    CHILD_OK(syncedmem_gpu_data(buffer, &reading));
    unsigned char *copy = malloc(SIZE);
    device_read(0, reading, copy, SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        CHILD_CHECK(copy[i] == 0x55);
    }
    free(copy);
    syncedmem_release(buffer);
    leave_child(0);
}

Test(first_stream, take_back_without_memory)
{
    cr_assert_eq(run_in_child(take_back_trial), 0);
}
