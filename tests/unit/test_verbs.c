/* SPDX-License-Identifier: BSD-2-Clause */
/* prefetch, mark_modified, fill, wait, valid_bytes; copy: test_copy.c, drop: test_drop.c. */
#include <stdlib.h>

#include "core/root.h"
#include "support.h"
#include "table.h"

static void setup(void)
{
    sim_setup_with("devices=2,memory=256m");
}

TestSuite(verbs, .init = setup, .timeout = 120);

enum { SIZE = 30000, LATER = 40 };

static bool is_exposed(const syncedmem_buffer *buffer, syncedmem_place *place)
{
    unsigned slot;
    return syncedmem_copy_find(buffer->root->body, place, &slot) &&
           buffer->root->body->copies.slots[slot].exposed;
}

static size_t valid_at(const syncedmem_buffer *buffer, syncedmem_place *place)
{
    size_t bytes = 1;
    assert_ok(syncedmem_valid_bytes(buffer, place, 0, syncedmem_size(buffer), &bytes));
    return bytes;
}

static uint64_t transfers(const syncedmem_buffer *buffer)
{
    return stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS);
}

/* Newest at one side by a lease, so that no pointer was given out. */
static syncedmem_buffer *written(size_t size, syncedmem_place *place, unsigned seed)
{
    syncedmem_buffer *buffer;
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_create(size, &buffer));
    assert_ok(
        syncedmem_begin(buffer, place, SYNCEDMEM_WRITE, 0, size, NULL, &pointer, NULL, &token));
    if (place == syncedmem_host()) {
        pattern_write(pointer, size, seed);
    } else {
        device_pattern_write(place == sim(1), pointer, size, seed);
    }
    assert_ok(syncedmem_end(buffer, token));
    assert_ok(syncedmem_wait(buffer));
    return buffer;
}

/* ---- prefetch ---- */

static void check_prefetch(syncedmem_place *from, syncedmem_place *to)
{
    syncedmem_buffer *buffer = written(SIZE, from, 3);
    assert_ok(syncedmem_prefetch(buffer, to, 1000, 500, NULL));
    cr_assert_eq(valid_at(buffer, to), 500);
    cr_assert_eq(transfers(buffer), 1);
    assert_ok(syncedmem_prefetch(buffer, to, 0, SIZE, NULL));
    cr_assert_eq(valid_at(buffer, to), SIZE);
    cr_assert_eq(transfers(buffer), 2);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE) +
                     stat_of(buffer, SYNCEDMEM_STAT_BYTES_TO_HOST),
                 SIZE);
    assert_ok(syncedmem_prefetch(buffer, to, 0, SIZE, NULL));
    cr_assert_eq(transfers(buffer), 2);
    cr_assert(!is_exposed(buffer, from) && !is_exposed(buffer, to));
    cr_assert_eq(valid_at(buffer, from), SIZE);
    struct subject subject = {.buffer = buffer, .size = SIZE, .seed = 3};
    cr_assert(subject_bytes_right(&subject));
    cr_assert_eq(transfers(buffer), 2);
    syncedmem_release(buffer);
}

Test(verbs, prefetch_in_both_directions)
{
    check_prefetch(syncedmem_host(), sim(0));
    check_prefetch(sim(0), syncedmem_host());
}

/* Returns while the stream is held up; who needs the bytes waits. */
static void check_asynchronous(syncedmem_place *from, syncedmem_place *to)
{
    struct gate gate;
    syncedmem_stream *stream;
    syncedmem_buffer *buffer = written(SIZE, from, 3);
    struct subject subject = {.buffer = buffer, .size = SIZE, .seed = 3};
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    assert_ok(syncedmem_prefetch(buffer, to, 0, SIZE, stream));
    cr_assert(!gate_is_open(&gate));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_SYNCED);
    cr_assert_eq(transfers(buffer), 1);
    gate_open_later(&gate, LATER);
    cr_assert(subject_bytes_right(&subject));
    cr_assert(gate_is_open(&gate));
    cr_assert_geq(stat_of(buffer, SYNCEDMEM_STAT_WAITS), 1);
    gate_join(&gate);
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}

Test(verbs, prefetch_is_asynchronous)
{
    check_asynchronous(syncedmem_host(), sim(0));
    check_asynchronous(sim(0), syncedmem_host());
}

/* The failure comes with the next call, once, and that call has done nothing. */
static void check_late_failure(syncedmem_place *from, syncedmem_place *to)
{
    syncedmem_buffer *buffer = written(SIZE, from, 3);
    struct subject subject = {.buffer = buffer, .size = SIZE, .seed = 3};
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_prefetch(buffer, to, 100, 5000, NULL));
    assert_status(syncedmem_wait(buffer), SYNCEDMEM_DEVICE_ERROR);
    cr_assert_eq(valid_at(buffer, to), 0);
    cr_assert_eq(valid_at(buffer, from), SIZE);
    assert_ok(syncedmem_wait(buffer));
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_prefetch(buffer, to, 0, SIZE, NULL));
    assert_status(syncedmem_fill(buffer, 0, SIZE, 1), SYNCEDMEM_DEVICE_ERROR);
    cr_assert(subject_bytes_right(&subject));
    syncedmem_release(buffer);
}

Test(verbs, prefetch_fails_late)
{
    check_late_failure(syncedmem_host(), sim(0));
    check_late_failure(sim(0), syncedmem_host());
}

Test(verbs, prefetch_refused)
{
    syncedmem_stream *stream;
    syncedmem_buffer *buffer = written(SIZE, syncedmem_host(), 3);
    assert_ok(syncedmem_stream_create(sim(1), &stream));
    assert_status(syncedmem_prefetch(buffer, sim(0), 0, SIZE, stream), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_prefetch(buffer, sim(0), 1, SIZE, NULL), SYNCEDMEM_OUT_OF_RANGE);
    assert_status(syncedmem_prefetch(buffer, NULL, 0, 1, NULL), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_prefetch(NULL, sim(0), 0, 1, NULL), SYNCEDMEM_INVALID_ARGUMENT);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY, 1));
    assert_status(syncedmem_prefetch(buffer, sim(0), 0, SIZE, NULL), SYNCEDMEM_DEVICE_ERROR);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_prefetch(buffer, sim(0), 0, SIZE, NULL));
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}

/* Nothing to transfer: zeros are made at the place. */
Test(verbs, prefetch_of_a_fresh_buffer)
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_prefetch(buffer, sim(0), 0, SIZE, NULL));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_GPU);
    cr_assert_eq(transfers(buffer), 0);
    struct subject subject = {.buffer = buffer, .size = SIZE};
    cr_assert(subject_bytes_right(&subject));
    syncedmem_release(buffer);
}

/* ---- mark_modified ---- */

Test(verbs, mark_modified_makes_kept_pointers_count)
{
    struct subject subject;
    void *host, *device;
    unsigned char copy[SIZE];
    const void *reading;
    subject_make(&subject, SIZE, SYNCEDMEM_SYNCED, true);
    assert_ok(syncedmem_mutable_cpu_data(subject.buffer, &host));
    assert_ok(syncedmem_mutable_gpu_data(subject.buffer, &device));
    pattern_write((unsigned char *)host + 100, 50, 7);
    const uint64_t before = transfers(subject.buffer);
    assert_ok(syncedmem_mark_modified(subject.buffer, syncedmem_host(), 100, 50));
    cr_assert_eq(transfers(subject.buffer), before);
    cr_assert_eq(syncedmem_head(subject.buffer), SYNCEDMEM_HEAD_SPLIT);
    assert_ok(syncedmem_gpu_data(subject.buffer, &reading));
    device_read(0, reading, copy, SIZE);
    cr_assert(pattern_is(copy + 100, 50, 7));
    cr_assert_eq(copy[99], pattern_at(1, 99));
    cr_assert_eq(copy[150], pattern_at(1, 150));
    device_pattern_write(0, device, SIZE, 8);
    assert_ok(syncedmem_mark_modified(subject.buffer, sim(0), 0, SIZE));
    cr_assert_eq(syncedmem_head(subject.buffer), SYNCEDMEM_HEAD_AT_GPU);
    subject.seed = 8;
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}

Test(verbs, mark_modified_needs_memory)
{
    syncedmem_buffer *buffer, *one_sided = written(SIZE, syncedmem_host(), 1);
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_status(syncedmem_mark_modified(buffer, syncedmem_host(), 0, 1), SYNCEDMEM_WRONG_STATE);
    assert_status(syncedmem_mark_modified(buffer, sim(0), 0, 1), SYNCEDMEM_WRONG_STATE);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_UNINITIALIZED);
    assert_status(syncedmem_mark_modified(one_sided, sim(0), 0, 1), SYNCEDMEM_WRONG_STATE);
    assert_status(syncedmem_mark_modified(one_sided, syncedmem_host(), 1, SIZE),
                  SYNCEDMEM_OUT_OF_RANGE);
    assert_status(syncedmem_mark_modified(NULL, sim(0), 0, 1), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_mark_modified(one_sided, NULL, 0, 1), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert(home_is_open(buffer));
    cr_assert_eq(syncedmem_head(one_sided), SYNCEDMEM_HEAD_AT_CPU);
    syncedmem_release(buffer);
    syncedmem_release(one_sided);
}

/* ---- fill ---- */

static bool all_are(const unsigned char *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

static void check_fill(syncedmem_head_t state, size_t from, size_t length)
{
    struct subject subject;
    const void *reading;
    static unsigned char copy[SIZE];
    subject_make(&subject, SIZE, state, false);
    const uint64_t before = transfers(subject.buffer);
    assert_ok(syncedmem_fill(subject.buffer, from, length, 0xC3));
    cr_assert_eq(transfers(subject.buffer), before);
    size_t at_device;
    assert_ok(syncedmem_valid_bytes(subject.buffer, sim(0), from, length, &at_device));
    cr_assert_eq(at_device, state == SYNCEDMEM_HEAD_AT_GPU ? length : 0, "state %d", (int)state);
    for (int side = 0; side < 2; side++) {
        assert_ok(side ? syncedmem_cpu_data(subject.buffer, &reading)
                       : syncedmem_gpu_data(subject.buffer, &reading));
        side ? (void)memcpy(copy, reading, SIZE) : device_read(0, reading, copy, SIZE);
        cr_assert(all_are(copy + from, length, 0xC3), "state %d", (int)state);
        cr_assert(pattern_is(copy, from, subject.seed));
        for (size_t i = from + length; i < SIZE; i++) {
            cr_assert_eq(copy[i], pattern_at(subject.seed, i));
        }
    }
    subject_end(&subject);
}

Test(verbs, fill)
{
    for (syncedmem_head_t state = 0; state < STATES; state++) {
        check_fill(state, 0, SIZE);
        check_fill(state, 1001, 77);
        check_fill(state, SIZE - 1, 1);
    }
}

Test(verbs, fill_fails_late)
{
    for (syncedmem_head_t state = SYNCEDMEM_HEAD_AT_GPU; state < STATES; state++) {
        struct subject subject;
        const void *reading;
        subject_make(&subject, SIZE, state, false);
        assert_ok(syncedmem_mark_modified(subject.buffer, sim(0), 2000, 1));
        assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
        const syncedmem_status_t status = syncedmem_fill(subject.buffer, 2000, 1000, 0xC3);
        assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 0));
        cr_assert(status == SYNCEDMEM_DEVICE_ERROR || state == SYNCEDMEM_SYNCED);
        assert_ok(syncedmem_cpu_data(subject.buffer, &reading));
        const unsigned char *bytes = reading;
        for (size_t i = 0; i < SIZE; i++) {
            const bool inside = i >= 2000 && i < 3000;
            cr_assert(bytes[i] == pattern_at(1, i) || (inside && bytes[i] == 0xC3), "byte %zu", i);
        }
        assert_ok(syncedmem_fill(subject.buffer, 2000, 1000, 0xC4));
        assert_ok(syncedmem_cpu_data(subject.buffer, &reading));
        cr_assert(all_are((const unsigned char *)reading + 2000, 1000, 0xC4));
        subject_end(&subject);
    }
}

Test(verbs, fill_refused)
{
    syncedmem_buffer *buffer = written(SIZE, syncedmem_host(), 1);
    assert_status(syncedmem_fill(buffer, 1, SIZE, 1), SYNCEDMEM_OUT_OF_RANGE);
    assert_status(syncedmem_fill(buffer, SIZE_MAX, 2, 1), SYNCEDMEM_OUT_OF_RANGE);
    assert_status(syncedmem_fill(NULL, 0, 0, 1), SYNCEDMEM_INVALID_ARGUMENT);
    assert_ok(syncedmem_fill(buffer, SIZE, 0, 1));
    struct subject subject = {.buffer = buffer, .size = SIZE, .seed = 1};
    cr_assert(subject_bytes_right(&subject));
    syncedmem_release(buffer);
}

/* ---- valid_bytes ---- */

Test(verbs, valid_bytes)
{
    syncedmem_buffer *buffer;
    size_t bytes = 9;
    assert_ok(syncedmem_create(SIZE, &buffer));
    cr_assert_eq(valid_at(buffer, syncedmem_host()), 0);
    assert_ok(syncedmem_fill(buffer, 10, 20, 1));
    cr_assert_eq(valid_at(buffer, syncedmem_host()), 20);
    cr_assert_eq(valid_at(buffer, sim(1)), 0);
    assert_ok(syncedmem_valid_bytes(buffer, syncedmem_host(), 15, 100, &bytes));
    cr_assert_eq(bytes, 15);
    assert_ok(syncedmem_valid_bytes(buffer, syncedmem_host(), SIZE, 0, &bytes));
    cr_assert_eq(bytes, 0);
    bytes = 9;
    assert_status(syncedmem_valid_bytes(buffer, syncedmem_host(), SIZE, 1, &bytes),
                  SYNCEDMEM_OUT_OF_RANGE);
    cr_assert_eq(bytes, 0);
    assert_status(syncedmem_valid_bytes(NULL, syncedmem_host(), 0, 0, &bytes),
                  SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_valid_bytes(buffer, NULL, 0, 0, &bytes), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_valid_bytes(buffer, sim(0), 0, 0, NULL), SYNCEDMEM_INVALID_ARGUMENT);
    syncedmem_release(buffer);
}

/* ---- Only what changed ---- */

Test(verbs, a_hundred_small_writes_are_one_transfer)
{
    enum { LARGE = 64 << 20, WRITES = 100, SMALL = 1024 };
    syncedmem_buffer *buffer;
    const void *reading;
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_create(LARGE, &buffer));
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    const struct figures before = figures_of(buffer);
    for (size_t i = 0; i < WRITES; i++) {
        assert_ok(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_WRITE, i * 600001 + 7, SMALL,
                                  NULL, &pointer, NULL, &token));
        pattern_write(pointer, SMALL, (unsigned)i + 1);
        assert_ok(syncedmem_end(buffer, token));
    }
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    const struct figures after = figures_of(buffer);
    cr_assert_eq(after.stat[SYNCEDMEM_STAT_TRANSFERS], before.stat[SYNCEDMEM_STAT_TRANSFERS] + 1);
    cr_assert_eq(after.stat[SYNCEDMEM_STAT_BYTES_TO_DEVICE],
                 before.stat[SYNCEDMEM_STAT_BYTES_TO_DEVICE] + (uint64_t)WRITES * SMALL);
    for (size_t i = 0; i < WRITES; i++) {
        cr_assert(
            device_pattern_is(0, (const char *)reading + i * 600001 + 7, SMALL, (unsigned)i + 1));
    }
    syncedmem_release(buffer);
}
