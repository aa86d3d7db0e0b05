/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host policy: of the process, of a buffer, captured at the first touch.
 *
 * Whether a block is registered is seen by refusing the next registration: PIN_FALLBACKS counts
 * it, and a buffer that registers nothing leaves the refusal for the next.
 */
#include <stdlib.h>

#include "support.h"
#include "table.h"

static void fini(void)
{
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PAGEABLE));
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 0));
}

TestSuite(policy, .init = sim_setup, .fini = fini, .timeout = 60);

enum { SIZE = 50000 };

static syncedmem_buffer *created(void)
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    return buffer;
}

static void touch_host(syncedmem_buffer *buffer)
{
    const void *pointer;
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
}

static void touch_device(syncedmem_buffer *buffer)
{
    const void *pointer;
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
}

/* Touches the device with the next registration refused, and looks whether there was one. */
static bool registers_at(syncedmem_buffer *buffer, void (*touch)(syncedmem_buffer *))
{
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 1));
    touch(buffer);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 0));
    const uint64_t fallbacks = stat_of(buffer, SYNCEDMEM_STAT_PIN_FALLBACKS);
    cr_assert_leq(fallbacks, 1);
    return fallbacks == 1;
}

Test(policy, pageable_by_default)
{
    syncedmem_buffer *buffer = created();
    touch_host(buffer);
    cr_assert(!registers_at(buffer, touch_device));
    syncedmem_release(buffer);
}

Test(policy, of_the_buffer)
{
    syncedmem_buffer *buffer = created();
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    touch_host(buffer);
    cr_assert(registers_at(buffer, touch_device));
    syncedmem_release(buffer);
}

Test(policy, of_the_buffer_goes_before_the_default)
{
    syncedmem_buffer *buffer = created();
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PAGEABLE));
    touch_host(buffer);
    cr_assert(!registers_at(buffer, touch_device));
    syncedmem_release(buffer);
}

/* The default is read at the first touch, not at create and not later. */
Test(policy, captured_at_the_first_touch)
{
    syncedmem_buffer *pinned = created();
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    touch_host(pinned);
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PAGEABLE));
    syncedmem_buffer *pageable = created();
    touch_host(pageable);
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    cr_assert(registers_at(pinned, touch_device));
    cr_assert(!registers_at(pageable, touch_device));
    syncedmem_release(pinned);
    syncedmem_release(pageable);
}

/* A touch of the device is a first touch as well. */
Test(policy, captured_at_a_device_touch)
{
    syncedmem_buffer *buffer = created();
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    touch_device(buffer);
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PAGEABLE));
    assert_status(syncedmem_set_host_policy(buffer, SYNCEDMEM_PAGEABLE), SYNCEDMEM_WRONG_STATE);
    cr_assert(registers_at(buffer, touch_host));
    syncedmem_release(buffer);
}

Test(policy, not_after_the_first_touch)
{
    syncedmem_buffer *buffer = created();
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PAGEABLE));
    touch_host(buffer);
    assert_status(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED), SYNCEDMEM_WRONG_STATE);
    cr_assert(is_one_line(syncedmem_last_error()));
    syncedmem_release(buffer);
    /* Adopting is a touch. */
    char *block = calloc(1, SIZE);
    buffer = created();
    assert_ok(syncedmem_set_cpu_data(buffer, block, SIZE));
    assert_status(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED), SYNCEDMEM_WRONG_STATE);
    syncedmem_release(buffer);
    free(block);
}

/* Nor does a touch that fails: the policy can still be chosen. */
Test(policy, a_failing_touch_captures_nothing)
{
    static const int32_t kinds[] = {SYNCEDMEM_SIM_FAIL_ALLOC, SYNCEDMEM_SIM_FAIL_COPY,
                                    SYNCEDMEM_SIM_FAIL_COPY_LATE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const void *pointer;
        syncedmem_buffer *buffer = created();
        assert_ok(syncedmem_sim_fail(sim(0), kinds[i], 1));
        cr_assert_neq(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_OK);
        assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
        touch_device(buffer);
        cr_assert(registers_at(buffer, touch_host));
        syncedmem_release(buffer);
    }
}

/* Allocate, flip, release: the way that it was allocated decides how it is freed. */
static void check_flip(syncedmem_host_policy_t first, syncedmem_host_policy_t then)
{
    const uint64_t host = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    const uint64_t fallbacks = stat_of(NULL, SYNCEDMEM_STAT_PIN_FALLBACKS);
    for (int round = 0; round < 20; round++) {
        struct subject subject;
        assert_ok(syncedmem_set_default_host_policy(first));
        subject_make(&subject, SIZE, SYNCEDMEM_SYNCED, round % 2 == 0);
        assert_ok(syncedmem_set_default_host_policy(then));
        cr_assert(subject_bytes_right(&subject));
        if (round % 3 == 0) {
            assert_ok(subject_call(&subject, SET_CPU_DATA));
        }
        subject_end(&subject);
    }
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host);
    /* A registration that outlived its block would be in the way of the next one there. */
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_PIN_FALLBACKS), fallbacks);
}

Test(policy, flip_then_release)
{
    check_flip(SYNCEDMEM_PAGEABLE, SYNCEDMEM_PINNED);
    check_flip(SYNCEDMEM_PINNED, SYNCEDMEM_PAGEABLE);
}

/* In place: the pointer stays, and so do the bytes. */
Test(policy, pinned_in_place)
{
    struct subject subject = {.size = SIZE};
    assert_ok(syncedmem_create(SIZE, &subject.buffer));
    assert_ok(syncedmem_set_host_policy(subject.buffer, SYNCEDMEM_PINNED));
    subject_host_write(&subject, 3);
    assert_ok(subject_call(&subject, CPU_DATA));
    void *before = subject.pointer;
    touch_device(subject.buffer);
    assert_ok(subject_call(&subject, CPU_DATA));
    cr_assert_eq(subject.pointer, before);
    subject_device_write(&subject, 4);
    cr_assert(subject_bytes_right(&subject));
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_PIN_FALLBACKS), 0);
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_HOST_ALLOCATIONS), 1);
    syncedmem_release(subject.buffer);
}

/* Where the driver refuses, all works on; buffer and process count it, once. */
Test(policy, refused_registration)
{
    const uint64_t before = stat_of(NULL, SYNCEDMEM_STAT_PIN_FALLBACKS);
    struct subject subject = {.size = SIZE};
    assert_ok(syncedmem_create(SIZE, &subject.buffer));
    assert_ok(syncedmem_set_host_policy(subject.buffer, SYNCEDMEM_PINNED));
    subject_host_write(&subject, 3);
    cr_assert(registers_at(subject.buffer, touch_device));
    cr_assert(subject_bytes_right(&subject));
    subject_device_write(&subject, 4);
    cr_assert(subject_bytes_right(&subject));
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_PIN_FALLBACKS), 1);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_PIN_FALLBACKS), before + 1);
    syncedmem_release(subject.buffer);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_PIN_FALLBACKS), before + 1);
}

/* The call succeeds, so what was said of an earlier failure stays. */
Test(policy, refused_registration_is_no_error)
{
    syncedmem_place *place;
    syncedmem_buffer *buffer = created();
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    touch_host(buffer);
    assert_status(syncedmem_device_find("no_such_place", &place), SYNCEDMEM_NOT_FOUND);
    cr_assert(registers_at(buffer, touch_device));
    cr_assert_not_null(strstr(syncedmem_last_error(), "no_such_place"), "%s",
                       syncedmem_last_error());
    syncedmem_release(buffer);
}

/* Memory of the caller's is not registered: only blocks of the library are allocated. */
Test(policy, adopted_memory_is_left_alone)
{
    struct subject subject;
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    subject_make(&subject, SIZE, SYNCEDMEM_UNINITIALIZED, false);
    assert_ok(subject_call(&subject, SET_CPU_DATA));
    cr_assert(!registers_at(subject.buffer, touch_device));
    subject_end(&subject);
}

/* A policy set by one thread is that of buffers that other threads touch. */
static void *touch_in_thread(void *argument)
{
    syncedmem_buffer *buffer = argument;
    const void *pointer;
    return syncedmem_cpu_data(buffer, &pointer) == SYNCEDMEM_OK ? NULL : argument;
}

Test(policy, seen_by_other_threads)
{
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    for (int i = 0; i < 2; i++) {
        syncedmem_buffer *buffer = created();
        pthread_t thread;
        void *outcome;
        cr_assert_eq(pthread_create(&thread, NULL, touch_in_thread, buffer), 0);
        pthread_join(thread, &outcome);
        cr_assert_null(outcome);
        cr_assert(registers_at(buffer, touch_device));
        syncedmem_release(buffer);
    }
}
