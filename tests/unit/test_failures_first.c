/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first use of a thing, where memory runs out on the way: opening the simulator, the first
 * copy of a device, the first line of a thread. Each trial is a process of its own.
 */
/* link: wrap-alloc */
#include <stdlib.h>

#include "support.h"
#include "wrap_alloc.h"

enum { NOT_REACHED = 10, ROUNDS_MOST = 200, SIZE = 5000 };

/* What the trial in the child does; the fork copies these. */
static syncedmem_status_t (*taken)(void **out);
static void (*prepared)(void);
static unsigned long nth;
static bool opening; /* the call opens the simulator: its device may be what is missing */

static bool is_allowed(syncedmem_status_t status)
{
    return status == SYNCEDMEM_OUT_OF_HOST_MEMORY ||
           (opening && (status == SYNCEDMEM_NO_DEVICE || status == SYNCEDMEM_OUT_OF_DEVICE_MEMORY ||
                        status == SYNCEDMEM_DEVICE_ERROR));
}

static void trial(void)
{
    void *out = &out;
    setenv("SYNCEDMEM_SIM", "memory=1m", 1);
    if (prepared != NULL) {
        prepared();
    }
    wrap_fail_nth(nth);
    const syncedmem_status_t status = taken(&out);
    const bool fired = wrap_fired();
    wrap_fail_nth(0);
    if (status != SYNCEDMEM_OK) {
        CHILD_CHECK(fired);
        CHILD_CHECK(is_allowed(status));
        CHILD_CHECK(out == NULL);
        CHILD_CHECK(is_one_line(syncedmem_last_error()));
        CHILD_OK(taken(&out));
    }
    _exit(fired ? 0 : NOT_REACHED);
}

static void try_first(syncedmem_status_t (*take)(void **out), void (*prepare)(void), bool opens)
{
    int outcome = 0;
    taken = take;
    prepared = prepare;
    opening = opens;
    for (nth = 1; nth < ROUNDS_MOST && outcome == 0; nth++) {
        outcome = run_in_child(trial);
    }
    cr_assert_eq(outcome, NOT_REACHED, "n = %lu: exit status %d", nth - 1, outcome);
}

/* ---- Opening the simulator ---- */

static syncedmem_status_t take_find(void **out)
{
    return syncedmem_device_find("sim:0", (syncedmem_place **)(void *)out);
}

static void prepare_two_devices(void)
{
    setenv("SYNCEDMEM_SIM", "devices=2,memory=1m", 1);
}

static void prepare_default_device(void)
{
    setenv("SYNCEDMEM_DEVICE", "sim:0", 1);
}

static syncedmem_status_t take_at(void **out)
{
    return syncedmem_device_at(1, (syncedmem_place **)(void *)out);
}

static syncedmem_status_t take_current(void **out)
{
    return syncedmem_device_current((syncedmem_place **)(void *)out);
}

static syncedmem_status_t take_configure(void **out)
{
    *out = NULL;
    return syncedmem_sim_configure("devices=3,memory=1m,latency=1us");
}

/* A buffer without a home: the first gpu_data opens all there is. */
static syncedmem_status_t take_gpu_data(void **out)
{
    static syncedmem_buffer *buffer;
    *out = NULL;
    const syncedmem_status_t status =
        buffer == NULL ? syncedmem_create(SIZE, &buffer) : SYNCEDMEM_OK;
    return status == SYNCEDMEM_OK ? syncedmem_gpu_data(buffer, (const void **)(void *)out) : status;
}

Test(failures_first, device_find, .timeout = 60)
{
    try_first(take_find, NULL, true);
}

Test(failures_first, device_find_of_two, .timeout = 60)
{
    try_first(take_find, prepare_two_devices, true);
}

Test(failures_first, sim_configure, .timeout = 60)
{
    try_first(take_configure, NULL, true);
}

Test(failures_first, device_current, .timeout = 60)
{
    try_first(take_current, prepare_default_device, true);
}

Test(failures_first, gpu_data, .timeout = 60)
{
    try_first(take_gpu_data, prepare_default_device, true);
}

/* device_count() has no status: whatever it said, the device is found afterwards. */
static void trial_count(void)
{
    syncedmem_place *place;
    prepare_two_devices();
    wrap_fail_nth(nth);
    const size_t count = syncedmem_device_count();
    const bool fired = wrap_fired();
    wrap_fail_nth(0);
    CHILD_CHECK(count == 2 || (fired && count < 2));
    CHILD_OK(syncedmem_device_find("sim:1", &place));
    CHILD_CHECK(syncedmem_device_count() == 2);
    CHILD_OK(take_at((void **)(void *)&place));
    _exit(fired ? 0 : NOT_REACHED);
}

Test(failures_first, device_count, .timeout = 60)
{
    int outcome = 0;
    for (nth = 1; nth < ROUNDS_MOST && outcome == 0; nth++) {
        outcome = run_in_child(trial_count);
    }
    cr_assert_eq(outcome, NOT_REACHED, "n = %lu: exit status %d", nth - 1, outcome);
}

/* ---- First uses of an open device ---- */

static void prepare_open(void)
{
    syncedmem_place *place;
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_OK(syncedmem_device_set_current(place));
}

static syncedmem_status_t take_stream_create(void **out)
{
    return syncedmem_stream_create(sim(0), (syncedmem_stream **)(void *)out);
}

static syncedmem_status_t take_stream_default(void **out)
{
    return syncedmem_stream_default(sim(0), (syncedmem_stream **)(void *)out);
}

static syncedmem_status_t take_sim_alloc(void **out)
{
    return syncedmem_sim_alloc(sim(0), SIZE, out);
}

static syncedmem_status_t take_cpu_data(void **out)
{
    static syncedmem_buffer *buffer;
    *out = NULL;
    const syncedmem_status_t status =
        buffer == NULL ? syncedmem_create(SIZE, &buffer) : SYNCEDMEM_OK;
    return status == SYNCEDMEM_OK ? syncedmem_cpu_data(buffer, (const void **)(void *)out) : status;
}

Test(failures_first, stream_create, .timeout = 60)
{
    try_first(take_stream_create, prepare_open, false);
}

Test(failures_first, stream_default, .timeout = 60)
{
    try_first(take_stream_default, prepare_open, false);
}

Test(failures_first, sim_alloc, .timeout = 60)
{
    try_first(take_sim_alloc, prepare_open, false);
}

Test(failures_first, gpu_data_of_an_open_device, .timeout = 60)
{
    try_first(take_gpu_data, prepare_open, false);
}

Test(failures_first, cpu_data_as_the_first_call, .timeout = 60)
{
    try_first(take_cpu_data, NULL, false);
}

/* ---- The line itself ---- */

/* Out of memory on the way to the first error of a thread: the right status, some line. */
static void *first_error_of_a_thread(void *argument)
{
    int *faults = argument;
    for (unsigned long n = 1; n < 8; n++) {
        syncedmem_place *place = (syncedmem_place *)argument;
        wrap_fail_nth(n);
        const syncedmem_status_t status = syncedmem_device_find("nonsense", &place);
        wrap_fail_nth(0);
        *faults += status != SYNCEDMEM_NOT_FOUND;
        *faults += place != NULL;
        *faults += !is_one_line(syncedmem_last_error());
    }
    return NULL;
}

CHILD_TEST(failures_first, error_line)
{
    for (int i = 0; i < 3; i++) {
        int faults = 0;
        pthread_t thread;
        CHILD_CHECK(pthread_create(&thread, NULL, first_error_of_a_thread, &faults) == 0);
        pthread_join(thread, NULL);
        CHILD_CHECK(faults == 0);
    }
}
