/* SPDX-License-Identifier: BSD-2-Clause */
/* drop: what a place gives up, and what is saved first. */
#include <stdlib.h>

#include "support.h"
#include "table.h"

TestSuite(drop, .init = sim_setup, .timeout = 120);

enum { SIZE = 8000, LATER = 40 };

static size_t valid_at(const syncedmem_buffer *buffer, syncedmem_place *place)
{
    size_t bytes = 1;
    assert_ok(syncedmem_valid_bytes(buffer, place, 0, syncedmem_size(buffer), &bytes));
    return bytes;
}

/* ---- Every state, at either place ---- */

static syncedmem_head_t head_after(syncedmem_head_t state, bool device)
{
    if (state == SYNCEDMEM_UNINITIALIZED) {
        return state;
    }
    return device ? SYNCEDMEM_HEAD_AT_CPU : SYNCEDMEM_HEAD_AT_GPU;
}

static void check_drop(syncedmem_head_t state, bool device, bool warm)
{
    struct subject subject;
    syncedmem_place *place = device ? sim(0) : syncedmem_host();
    const syncedmem_key_t bytes_key =
        device ? SYNCEDMEM_STAT_DEVICE_BYTES : SYNCEDMEM_STAT_HOST_BYTES;
    subject_make(&subject, SIZE, state, warm);
    const struct figures before = figures_of(subject.buffer);
    const bool alone = state == (device ? SYNCEDMEM_HEAD_AT_GPU : SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_drop(subject.buffer, place));
    const struct figures after = figures_of(subject.buffer);
    cr_assert_eq(after.head, head_after(state, device), "state %d, device %d", (int)state, device);
    cr_assert_eq(after.stat[bytes_key], 0);
    cr_assert_eq(valid_at(subject.buffer, place), 0);
    cr_assert_eq(after.stat[SYNCEDMEM_STAT_TRANSFERS],
                 before.stat[SYNCEDMEM_STAT_TRANSFERS] + alone);
    assert_ok(syncedmem_drop(subject.buffer, place));
    const struct figures again = figures_of(subject.buffer);
    cr_assert(figures_equal(&after, &again));
    cr_assert(subject_bytes_right(&subject), "state %d, device %d", (int)state, device);
    subject_end(&subject);
}

Test(drop, every_state_and_place)
{
    for (syncedmem_head_t state = 0; state < STATES; state++) {
        for (int warm = 0; warm < 2; warm++) {
            check_drop(state, false, warm);
            check_drop(state, true, warm);
        }
    }
}

/* Only what is nowhere else is saved, in one transfer. */
Test(drop, saves_what_is_nowhere_else)
{
    struct subject subject;
    void *pointer;
    syncedmem_token_t token;
    subject_make(&subject, SIZE, SYNCEDMEM_SYNCED, false);
    for (size_t at = 0; at < 5; at++) {
        assert_ok(syncedmem_begin(subject.buffer, sim(0), SYNCEDMEM_READ_WRITE, at * 1000 + 13, 100,
                                  NULL, &pointer, NULL, &token));
        assert_ok(syncedmem_end(subject.buffer, token));
    }
    const struct figures before = figures_of(subject.buffer);
    assert_ok(syncedmem_drop(subject.buffer, sim(0)));
    const struct figures after = figures_of(subject.buffer);
    cr_assert_eq(after.stat[SYNCEDMEM_STAT_TRANSFERS_TO_HOST],
                 before.stat[SYNCEDMEM_STAT_TRANSFERS_TO_HOST] + 1);
    cr_assert_eq(after.stat[SYNCEDMEM_STAT_BYTES_TO_HOST],
                 before.stat[SYNCEDMEM_STAT_BYTES_TO_HOST] + 500);
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}

Test(drop, fresh_bytes_stay_zero)
{
    for (int device = 0; device < 2; device++) {
        syncedmem_buffer *buffer;
        unsigned char copy[SIZE];
        const void *reading;
        assert_ok(syncedmem_create(SIZE, &buffer));
        assert_ok(syncedmem_fill(buffer, 100, 50, 0x77));
        assert_ok(syncedmem_prefetch(buffer, sim(0), 100, 50, NULL));
        assert_ok(syncedmem_drop(buffer, device ? sim(0) : syncedmem_host()));
        assert_ok(syncedmem_cpu_data(buffer, &reading));
        memcpy(copy, reading, SIZE);
        cr_assert(pattern_is(copy, 100, 0) && pattern_is(copy + 150, SIZE - 150, 0));
        cr_assert_eq(copy[100], 0x77);
        assert_ok(syncedmem_gpu_data(buffer, &reading));
        device_read(0, reading, copy, SIZE);
        cr_assert(pattern_is(copy, 100, 0) && pattern_is(copy + 150, SIZE - 150, 0));
        syncedmem_release(buffer);
    }
}

/* ---- Where the host's bytes go ---- */

/* To the home, which is fixed by it as by any first use of a device. */
Test(drop, the_host_goes_to_the_home)
{
    struct subject subject;
    subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_CPU, false);
    assert_ok(syncedmem_drop(subject.buffer, syncedmem_host()));
    cr_assert_eq(valid_at(subject.buffer, sim(0)), SIZE);
    cr_assert(home_is_fixed_at(subject.buffer, 0));
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
    subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_CPU, false);
    assert_ok(syncedmem_set_home(subject.buffer, sim(1)));
    assert_ok(syncedmem_drop(subject.buffer, syncedmem_host()));
    cr_assert_eq(valid_at(subject.buffer, sim(1)), SIZE);
    cr_assert_eq(valid_at(subject.buffer, sim(0)), 0);
    subject_end(&subject);
}

/* To a place that has memory already, before the home. */
Test(drop, the_host_goes_where_memory_is)
{
    struct subject subject;
    void *pointer;
    syncedmem_token_t token;
    subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_CPU, false);
    assert_ok(syncedmem_set_home(subject.buffer, sim(0)));
    assert_ok(syncedmem_begin(subject.buffer, sim(1), SYNCEDMEM_READ, 0, 1, NULL, &pointer, NULL,
                              &token));
    assert_ok(syncedmem_end(subject.buffer, token));
    assert_ok(syncedmem_drop(subject.buffer, syncedmem_host()));
    cr_assert_eq(valid_at(subject.buffer, sim(1)), SIZE);
    cr_assert_eq(valid_at(subject.buffer, sim(0)), 0);
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}

/* No device: the bytes stay where they are. */
Test(drop, without_a_device)
{
    syncedmem_buffer *buffer;
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_drop(buffer, syncedmem_host()));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, 5);
    assert_ok(syncedmem_device_set_current(NULL));
    assert_status(syncedmem_drop(buffer, syncedmem_host()), SYNCEDMEM_NO_DEVICE);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert(reading == pointer && pattern_is(reading, SIZE, 5));
    syncedmem_release(buffer);
}

/* ---- Leased, refused, failing ---- */

Test(drop, while_leased)
{
    for (syncedmem_mode_t mode = SYNCEDMEM_READ; mode <= SYNCEDMEM_READ_WRITE; mode++) {
        for (int device = 0; device < 2; device++) {
            struct subject subject;
            void *pointer;
            syncedmem_token_t token;
            syncedmem_place *const places[] = {syncedmem_host(), sim(0)};
            subject_make(&subject, SIZE, SYNCEDMEM_SYNCED, true);
            assert_ok(syncedmem_begin(subject.buffer, places[device], mode, 10, 20, NULL, &pointer,
                                      NULL, &token));
            const struct figures before = figures_of(subject.buffer);
            assert_status(syncedmem_drop(subject.buffer, places[device]), SYNCEDMEM_BUSY);
            const struct figures after = figures_of(subject.buffer);
            cr_assert(figures_equal(&before, &after));
            /* The other place is not leased, and has nothing alone in the leased range. */
            assert_ok(syncedmem_drop(subject.buffer, places[1 - device]));
            assert_ok(syncedmem_end(subject.buffer, token));
            cr_assert(subject_bytes_right(&subject));
            subject_end(&subject);
        }
    }
}

/* A lease of no bytes keeps none. */
Test(drop, under_an_empty_lease)
{
    struct subject subject;
    void *pointer;
    syncedmem_token_t token;
    subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_GPU, false);
    assert_ok(syncedmem_begin(subject.buffer, sim(0), SYNCEDMEM_WRITE, 10, 0, NULL, &pointer, NULL,
                              &token));
    assert_ok(syncedmem_drop(subject.buffer, sim(0)));
    assert_ok(syncedmem_end(subject.buffer, token));
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}

Test(drop, refused)
{
    struct subject subject;
    subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_GPU, false);
    assert_status(syncedmem_drop(NULL, sim(0)), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_drop(subject.buffer, NULL), SYNCEDMEM_INVALID_ARGUMENT);
    assert_ok(syncedmem_drop(subject.buffer, sim(1)));
    cr_assert_eq(syncedmem_head(subject.buffer), SYNCEDMEM_HEAD_AT_GPU);
    subject_end(&subject);
}

static void check_failing(syncedmem_head_t state, bool device, int32_t what)
{
    struct subject subject;
    syncedmem_place *place = device ? sim(0) : syncedmem_host();
    subject_make(&subject, SIZE, state, true);
    assert_ok(syncedmem_sim_fail(sim(0), what, 1));
    assert_status(syncedmem_drop(subject.buffer, place), SYNCEDMEM_DEVICE_ERROR);
    cr_assert_eq(syncedmem_head(subject.buffer), state);
    cr_assert_eq(valid_at(subject.buffer, place), SIZE);
    assert_ok(syncedmem_drop(subject.buffer, place));
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}

Test(drop, failing)
{
    check_failing(SYNCEDMEM_HEAD_AT_GPU, true, SYNCEDMEM_SIM_FAIL_COPY);
    check_failing(SYNCEDMEM_HEAD_AT_GPU, true, SYNCEDMEM_SIM_FAIL_COPY_LATE);
    check_failing(SYNCEDMEM_HEAD_AT_CPU, false, SYNCEDMEM_SIM_FAIL_COPY);
    check_failing(SYNCEDMEM_HEAD_AT_CPU, false, SYNCEDMEM_SIM_FAIL_COPY_LATE);
}

/* A push that is under way from the dropped place ends first, and its failure is told. */
Test(drop, waits_for_transfers)
{
    for (int failing = 0; failing < 2; failing++) {
        struct subject subject;
        struct gate gate;
        syncedmem_stream *stream;
        subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_CPU, true);
        assert_ok(syncedmem_stream_create(sim(0), &stream));
        gate_put(&gate, stream);
        assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, (uint64_t)failing));
        assert_ok(syncedmem_async_gpu_push(subject.buffer, stream));
        gate_open_later(&gate, LATER);
        assert_status(syncedmem_drop(subject.buffer, syncedmem_host()),
                      failing ? SYNCEDMEM_DEVICE_ERROR : SYNCEDMEM_OK);
        cr_assert(gate_is_open(&gate));
        cr_assert_eq(syncedmem_head(subject.buffer),
                     failing ? SYNCEDMEM_HEAD_AT_CPU : SYNCEDMEM_HEAD_AT_GPU);
        cr_assert(subject_bytes_right(&subject));
        gate_join(&gate);
        syncedmem_stream_release(stream);
        subject_end(&subject);
    }
}

/* ---- Afterwards ---- */

/* Places that were dropped get memory again, registered again where that was the policy. */
Test(drop, and_use_again)
{
    const uint64_t free_before = device_memory_free(0);
    syncedmem_buffer *buffer;
    struct subject subject = {.size = SIZE};
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    subject.buffer = buffer;
    for (unsigned round = 1; round < 20; round++) {
        subject_host_write(&subject, round);
        cr_assert(subject_bytes_right(&subject));
        assert_ok(syncedmem_drop(buffer, round % 2 ? syncedmem_host() : sim(0)));
        cr_assert(subject_bytes_right(&subject));
        assert_ok(syncedmem_drop(buffer, round % 2 ? sim(0) : syncedmem_host()));
        cr_assert(subject_bytes_right(&subject));
    }
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_PIN_FALLBACKS), 0);
    syncedmem_release(buffer);
    cr_assert_eq(device_memory_free(0), free_before);
}

/* Work on plain device pointers ends before the memory goes. */
Test(drop, waits_for_plain_kernels)
{
    struct gate gate;
    syncedmem_stream *stream;
    struct subject subject;
    void *pointer;
    subject_make(&subject, SIZE, SYNCEDMEM_SYNCED, false);
    assert_ok(syncedmem_stream_default(sim(0), &stream));
    assert_ok(syncedmem_mutable_gpu_data(subject.buffer, &pointer));
    gate_put(&gate, stream);
    cr_assert(stream_pattern_write(stream, pointer, SIZE, 6));
    gate_open_later(&gate, LATER);
    assert_ok(syncedmem_drop(subject.buffer, sim(0)));
    subject.seed = 6;
    cr_assert(subject_bytes_right(&subject));
    gate_join(&gate);
    syncedmem_stream_release(stream);
    subject_end(&subject);
}

Test(drop, size_0)
{
    struct subject subject;
    for (int device = 0; device < 2; device++) {
        for (syncedmem_head_t state = 0; state < STATES; state++) {
            subject_make(&subject, 0, state, false);
            assert_ok(syncedmem_drop(subject.buffer, device ? sim(0) : syncedmem_host()));
            cr_assert_eq(syncedmem_head(subject.buffer), head_after(state, device));
            cr_assert(subject_bytes_right(&subject));
            subject_end(&subject);
        }
    }
}
