/* SPDX-License-Identifier: BSD-2-Clause */
/* copy: within one buffer and between two, at every place, overlapping, and failing. */
#include <stdlib.h>

#include "support.h"
#include "table.h"

TestSuite(copy, .init = sim_setup, .timeout = 120);

enum { SIZE = 9000 };

static bool holds(syncedmem_buffer *buffer, const unsigned char *wanted, size_t size)
{
    static unsigned char copy[SIZE];
    const void *reading;
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    device_read(0, reading, copy, size);
    if (memcmp(copy, wanted, size) != 0) {
        return false;
    }
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    return memcmp(reading, wanted, size) == 0;
}

static uint64_t transfers(const syncedmem_buffer *buffer)
{
    return stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS);
}

/* ---- Within one buffer ---- */

static const struct {
    size_t to, from, length;
} moves[] = {
    {10, 0, 5000},    {0, 10, 5000},   {1, 0, SIZE - 1}, {0, 1, SIZE - 1}, {4000, 100, 3},
    {100, 4000, 300}, {500, 500, 700}, {4500, 0, 4500},  {0, 4500, 4500},
};

static void check_within(syncedmem_head_t state, size_t which)
{
    struct subject subject;
    unsigned char wanted[SIZE];
    subject_make(&subject, SIZE, state, false);
    pattern_write(wanted, SIZE, subject.seed);
    memmove(wanted + moves[which].to, wanted + moves[which].from, moves[which].length);
    const uint64_t before = transfers(subject.buffer);
    assert_ok(syncedmem_copy(subject.buffer, moves[which].to, subject.buffer, moves[which].from,
                             moves[which].length));
    cr_assert_eq(transfers(subject.buffer), before, "state %d, move %zu", (int)state, which);
    cr_assert(holds(subject.buffer, wanted, SIZE), "state %d, move %zu", (int)state, which);
    subject_end(&subject);
}

Test(copy, within_one_buffer)
{
    for (syncedmem_head_t state = 0; state < STATES; state++) {
        for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
            check_within(state, i);
        }
    }
}

/* The source is newest in parts: host, device, host by turns. */
Test(copy, within_a_split_buffer)
{
    struct subject subject;
    unsigned char wanted[SIZE];
    void *pointer;
    syncedmem_token_t token;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_GPU, true);
        pattern_write(wanted, SIZE, 1);
        for (size_t at = 0; at < SIZE; at += 1000) {
            assert_ok(syncedmem_begin(subject.buffer, syncedmem_host(), SYNCEDMEM_WRITE, at, 400,
                                      NULL, &pointer, NULL, &token));
            memset(pointer, (int)(at / 1000), 400);
            memset(wanted + at, (int)(at / 1000), 400);
            assert_ok(syncedmem_end(subject.buffer, token));
        }
        memmove(wanted + moves[i].to, wanted + moves[i].from, moves[i].length);
        assert_ok(syncedmem_copy(subject.buffer, moves[i].to, subject.buffer, moves[i].from,
                                 moves[i].length));
        cr_assert(holds(subject.buffer, wanted, SIZE), "move %zu", i);
        subject_end(&subject);
    }
}

/* ---- Between two ---- */

static void check_between(syncedmem_head_t from_state, syncedmem_head_t to_state)
{
    struct subject from, to;
    unsigned char wanted[SIZE];
    subject_make(&from, SIZE, from_state, false);
    subject_make(&to, SIZE, to_state, false);
    pattern_write(wanted, SIZE, to.seed);
    for (size_t i = 0; i < 700; i++) {
        wanted[100 + i] = pattern_at(from.seed, 300 + i);
    }
    const struct figures before = figures_of(from.buffer);
    const uint64_t moved = transfers(to.buffer);
    assert_ok(syncedmem_copy(to.buffer, 100, from.buffer, 300, 700));
    /* Done where the source's bytes are. */
    cr_assert_eq(transfers(to.buffer), moved, "%d to %d", (int)from_state, (int)to_state);
    cr_assert_eq(transfers(from.buffer), before.stat[SYNCEDMEM_STAT_TRANSFERS]);
    cr_assert(from_state == SYNCEDMEM_UNINITIALIZED || syncedmem_head(from.buffer) == before.head);
    cr_assert(holds(to.buffer, wanted, SIZE), "%d to %d", (int)from_state, (int)to_state);
    cr_assert(subject_bytes_right(&from));
    subject_end(&from);
    subject_end(&to);
}

Test(copy, between_two_buffers)
{
    for (syncedmem_head_t from = 0; from < STATES; from++) {
        for (syncedmem_head_t to = 0; to < STATES; to++) {
            check_between(from, to);
        }
    }
}

/* The source is at a device that is not the target's: the bytes go by the host. */
Test(copy, across_devices)
{
    struct subject to;
    syncedmem_buffer *from;
    void *pointer;
    unsigned char wanted[SIZE];
    assert_ok(syncedmem_create(SIZE, &from));
    assert_ok(syncedmem_set_home(from, sim(1)));
    assert_ok(syncedmem_mutable_gpu_data(from, &pointer));
    device_pattern_write(1, pointer, SIZE, 8);
    subject_make(&to, SIZE, SYNCEDMEM_HEAD_AT_GPU, false);
    pattern_write(wanted, SIZE, 1);
    for (size_t i = 0; i < 1000; i++) {
        wanted[i + 7] = pattern_at(8, i + 5000);
    }
    assert_ok(syncedmem_copy(to.buffer, 7, from, 5000, 1000));
    cr_assert(home_is_fixed_at(to.buffer, 0));
    cr_assert(holds(to.buffer, wanted, SIZE));
    cr_assert_eq(stat_of(from, SYNCEDMEM_STAT_BYTES_TO_HOST), 1000);
    syncedmem_release(from);
    subject_end(&to);
}

/* Views copy their ranges; the target may be a view of the source's buffer. */
Test(copy, through_views)
{
    struct subject subject;
    syncedmem_buffer *one, *two;
    unsigned char wanted[SIZE];
    subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_GPU, false);
    assert_ok(syncedmem_view(subject.buffer, 101, 2000, &one));
    assert_ok(syncedmem_view(subject.buffer, 1001, 2000, &two));
    pattern_write(wanted, SIZE, 1);
    memmove(wanted + 1001 + 3, wanted + 101 + 5, 1900);
    assert_ok(syncedmem_copy(two, 3, one, 5, 1900));
    cr_assert(holds(subject.buffer, wanted, SIZE));
    assert_status(syncedmem_copy(two, 101, one, 0, 1900), SYNCEDMEM_OUT_OF_RANGE);
    assert_status(syncedmem_copy(two, 0, one, 101, 1900), SYNCEDMEM_OUT_OF_RANGE);
    assert_status(syncedmem_copy(NULL, 0, one, 0, 1), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_copy(one, 0, NULL, 0, 1), SYNCEDMEM_INVALID_ARGUMENT);
    assert_ok(syncedmem_copy(two, 2000, one, 2000, 0));
    cr_assert(holds(subject.buffer, wanted, SIZE));
    syncedmem_release(one);
    syncedmem_release(two);
    subject_end(&subject);
}

/* ---- Failing ---- */

/* Each byte of the target's range is the old one or the new one, all others are the old ones. */
static void check_old_or_new(syncedmem_buffer *to, size_t at, size_t length, unsigned new_seed,
                             size_t new_from)
{
    const void *reading;
    assert_ok(syncedmem_cpu_data(to, &reading));
    const unsigned char *bytes = reading;
    for (size_t i = 0; i < SIZE; i++) {
        const bool inside = i >= at && i < at + length;
        const bool is_new = inside && bytes[i] == pattern_at(new_seed, new_from + i - at);
        cr_assert(is_new || bytes[i] == pattern_at(1, i), "byte %zu", i);
    }
}

/* What is half written is not valid beside the old bytes: both places tell the same. */
static void check_agreement(syncedmem_buffer *buffer)
{
    static unsigned char copy[SIZE];
    const void *reading;
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    device_read(0, reading, copy, SIZE);
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert(memcmp(reading, copy, SIZE) == 0);
}

static void check_failing(int32_t what, syncedmem_head_t to_state, uint64_t nth)
{
    struct subject from, to;
    subject_make(&from, SIZE, SYNCEDMEM_HEAD_AT_GPU, false);
    subject_make(&to, SIZE, to_state, true);
    subject_device_write(&from, 6);
    assert_ok(syncedmem_sim_fail(sim(0), what, nth));
    assert_status(syncedmem_copy(to.buffer, 1000, from.buffer, 2000, 3000), SYNCEDMEM_DEVICE_ERROR);
    assert_ok(syncedmem_sim_fail(sim(0), what, 0));
    check_agreement(to.buffer);
    check_old_or_new(to.buffer, 1000, 3000, 6, 2000);
    cr_assert(subject_bytes_right(&from));
    assert_ok(syncedmem_copy(to.buffer, 1000, from.buffer, 2000, 3000));
    const void *reading;
    unsigned char wanted[3000];
    for (size_t i = 0; i < 3000; i++) {
        wanted[i] = pattern_at(6, 2000 + i);
    }
    assert_ok(syncedmem_cpu_data(to.buffer, &reading));
    cr_assert(memcmp((const char *)reading + 1000, wanted, 3000) == 0);
    subject_end(&from);
    subject_end(&to);
}

Test(copy, failing_leaves_old_or_new_bytes)
{
    for (syncedmem_head_t state = SYNCEDMEM_HEAD_AT_CPU; state < STATES; state++) {
        check_failing(SYNCEDMEM_SIM_FAIL_COPY, state, 1);
        check_failing(SYNCEDMEM_SIM_FAIL_COPY_LATE, state, 1);
    }
}

/* The target moves to memory of its own for it, with the bytes that may be left as they are. */
Test(copy, failing_into_read_only_memory)
{
    struct subject from;
    syncedmem_buffer *to;
    void *memory;
    subject_make(&from, SIZE, SYNCEDMEM_HEAD_AT_GPU, false);
    subject_device_write(&from, 6);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &memory));
    device_pattern_write(0, memory, SIZE, 1);
    assert_ok(syncedmem_create(SIZE, &to));
    assert_ok(
        syncedmem_adopt(to, sim(0), memory, SIZE, SYNCEDMEM_ADOPT_READ_ONLY, NULL, NULL, NULL));
    /* The first copy is the move's own. */
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 2));
    assert_status(syncedmem_copy(to, 0, from.buffer, 0, SIZE), SYNCEDMEM_DEVICE_ERROR);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 0));
    check_old_or_new(to, 0, SIZE, 6, 0);
    check_agreement(to);
    cr_assert(device_pattern_is(0, memory, SIZE, 1));
    syncedmem_release(to);
    assert_ok(syncedmem_sim_free(sim(0), memory));
    subject_end(&from);
}

/* Within one buffer the target may be part of the source, whose other bytes stay. */
static void check_failing_within(syncedmem_head_t state)
{
    struct subject subject;
    const void *reading;
    subject_make(&subject, SIZE, state, true);
    assert_ok(syncedmem_mark_modified(subject.buffer, sim(0), 0, SIZE));
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_status(syncedmem_copy(subject.buffer, 0, subject.buffer, 100, 4000),
                  SYNCEDMEM_DEVICE_ERROR);
    check_old_or_new(subject.buffer, 0, 4000, 1, 100);
    assert_ok(syncedmem_gpu_data(subject.buffer, &reading));
    subject_end(&subject);
}

Test(copy, failing_within_one_buffer)
{
    check_failing_within(SYNCEDMEM_HEAD_AT_GPU);
    check_failing_within(SYNCEDMEM_SYNCED);
}

/* Two threads copy between the same two buffers in opposite directions. */
struct opposite {
    syncedmem_buffer *to, *from;
    int faults;
};

static void *copy_often(void *argument)
{
    struct opposite *opposite = argument;
    for (int i = 0; i < 2000; i++) {
        opposite->faults +=
            syncedmem_copy(opposite->to, 0, opposite->from, 4500, 100) != SYNCEDMEM_OK;
    }
    return NULL;
}

Test(copy, in_opposite_directions_does_not_deadlock)
{
    struct subject one, two;
    pthread_t thread;
    subject_make(&one, SIZE, SYNCEDMEM_HEAD_AT_CPU, false);
    subject_make(&two, SIZE, SYNCEDMEM_HEAD_AT_CPU, false);
    struct opposite there = {one.buffer, two.buffer, 0}, back = {two.buffer, one.buffer, 0};
    cr_assert_eq(pthread_create(&thread, NULL, copy_often, &there), 0);
    copy_often(&back);
    pthread_join(thread, NULL);
    cr_assert_eq(there.faults + back.faults, 0);
    subject_end(&one);
    subject_end(&two);
}
