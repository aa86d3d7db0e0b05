/* SPDX-License-Identifier: BSD-2-Clause */
/* Places: how they are found, named, counted and chosen. Each test is a process of its own. */
#include <stdlib.h>

#include "support.h"

static syncedmem_place *found(const char *name)
{
    syncedmem_place *place;
    CHILD_OK(syncedmem_device_find(name, &place));
    CHILD_CHECK(place != NULL);
    return place;
}

static const char *text_of(syncedmem_place *place, syncedmem_key_t key)
{
    const char *text;
    CHILD_OK(syncedmem_device_text(place, key, &text));
    CHILD_CHECK(is_one_line(text));
    return text;
}

static uint64_t number_of(syncedmem_place *place, syncedmem_key_t key)
{
    uint64_t number;
    CHILD_OK(syncedmem_device_number(place, key, &number));
    return number;
}

static void check_not_found(const char *name, syncedmem_status_t wanted)
{
    syncedmem_place *place = (syncedmem_place *)(uintptr_t)16;
    const syncedmem_status_t status = syncedmem_device_find(name, &place);
    if (status != wanted || place != NULL || !is_one_line(syncedmem_last_error())) {
        fprintf(stderr, "device_find(\"%s\"): %s, %s\n", name, syncedmem_status_name(status),
                syncedmem_last_error());
        _exit(1);
    }
}

static void check_no_current(void)
{
    syncedmem_place *place = (syncedmem_place *)(uintptr_t)16;
    CHILD_STATUS(syncedmem_device_current(&place), SYNCEDMEM_NO_DEVICE);
    CHILD_CHECK(place == NULL);
    CHILD_CHECK(is_one_line(syncedmem_last_error()));
}

/* ---- The host ---- */

CHILD_TEST(places, the_host)
{
    syncedmem_place *host = syncedmem_host();
    CHILD_CHECK(host != NULL);
    CHILD_CHECK(found("host") == host && syncedmem_host() == host);
    CHILD_CHECK(strcmp(text_of(host, SYNCEDMEM_PLACE_NAME), "host") == 0);
    CHILD_CHECK(strcmp(text_of(host, SYNCEDMEM_PLACE_BACKEND), "host") == 0);
    CHILD_CHECK(text_of(host, SYNCEDMEM_PLACE_DESCRIPTION) != NULL);
    const uint64_t total = number_of(host, SYNCEDMEM_PLACE_MEMORY_TOTAL);
    CHILD_CHECK(total > 0 && number_of(host, SYNCEDMEM_PLACE_MEMORY_FREE) <= total);
    CHILD_CHECK(number_of(host, SYNCEDMEM_PLACE_ALIGNMENT) == 64);
    CHILD_CHECK(number_of(host, SYNCEDMEM_PLACE_UNIFIED) <= 1);
}

/* ---- Nothing named ---- */

static void check_gpu_calls_without_device(syncedmem_buffer *buffer)
{
    void *pointer = buffer;
    const void *reading = buffer;
    CHILD_STATUS(syncedmem_gpu_data(buffer, &reading), SYNCEDMEM_NO_DEVICE);
    CHILD_CHECK(reading == NULL && is_one_line(syncedmem_last_error()));
    CHILD_STATUS(syncedmem_mutable_gpu_data(buffer, &pointer), SYNCEDMEM_NO_DEVICE);
    CHILD_CHECK(pointer == NULL);
    CHILD_STATUS(syncedmem_set_gpu_data(buffer, &pointer, 1000), SYNCEDMEM_NO_DEVICE);
}

CHILD_TEST(places, no_device_when_nothing_is_named)
{
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_CHECK(syncedmem_device_count() == 0);
    CHILD_STATUS(syncedmem_device_at(0, &place), SYNCEDMEM_NOT_FOUND);
    CHILD_CHECK(place == NULL);
    check_no_current();
    CHILD_OK(syncedmem_create(1000, &buffer));
    check_gpu_calls_without_device(buffer);
    CHILD_CHECK(syncedmem_head(buffer) == SYNCEDMEM_UNINITIALIZED);
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    check_gpu_calls_without_device(buffer);
    CHILD_STATUS(syncedmem_async_gpu_push(buffer, NULL), SYNCEDMEM_NO_DEVICE);
    CHILD_CHECK(syncedmem_head(buffer) == SYNCEDMEM_HEAD_AT_CPU);
    CHILD_CHECK(pattern_is(pointer, 1000, 0));
    syncedmem_release(buffer);
    CHILD_CHECK(syncedmem_device_count() == 0);
}

/* Named, but not chosen: nothing is a default on the library's own account. */
CHILD_TEST(places, the_simulator_is_never_the_default)
{
    CHILD_OK(syncedmem_sim_configure("memory=1m"));
    syncedmem_place *place = found("sim:0");
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_CHECK(syncedmem_device_count() == 1);
    check_no_current();
    CHILD_OK(syncedmem_create(1000, &buffer));
    check_gpu_calls_without_device(buffer);
    CHILD_OK(syncedmem_device_set_current(place));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_OK(syncedmem_device_set_current(NULL));
    check_no_current();
    /* The home was fixed by the touch. */
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    syncedmem_release(buffer);
}

/* ---- Finding ---- */

CHILD_TEST(places, three_devices)
{
    static const char *const names[] = {"sim:0", "sim:1", "sim:2"};
    CHILD_OK(syncedmem_sim_configure("devices=3,memory=8m"));
    CHILD_CHECK(syncedmem_device_count() == 3);
    for (size_t i = 0; i < 3; i++) {
        syncedmem_place *place, *again;
        CHILD_OK(syncedmem_device_at(i, &place));
        CHILD_CHECK(strcmp(text_of(place, SYNCEDMEM_PLACE_NAME), names[i]) == 0);
        CHILD_CHECK(strcmp(text_of(place, SYNCEDMEM_PLACE_BACKEND), "sim") == 0);
        CHILD_CHECK(text_of(place, SYNCEDMEM_PLACE_NAME) == text_of(place, SYNCEDMEM_PLACE_NAME));
        CHILD_CHECK(found(names[i]) == place && place != syncedmem_host());
        CHILD_CHECK(text_of(place, SYNCEDMEM_PLACE_DESCRIPTION) != NULL);
        CHILD_OK(syncedmem_device_at(i, &again));
        CHILD_CHECK(again == place);
    }
    syncedmem_place *place = syncedmem_host();
    CHILD_STATUS(syncedmem_device_at(3, &place), SYNCEDMEM_NOT_FOUND);
    CHILD_CHECK(place == NULL);
    CHILD_STATUS(syncedmem_device_at(SIZE_MAX, &place), SYNCEDMEM_NOT_FOUND);
    check_not_found("sim:3", SYNCEDMEM_NO_DEVICE);
    check_not_found("sim:62", SYNCEDMEM_NO_DEVICE);
    CHILD_CHECK(syncedmem_device_count() == 3);
}

CHILD_TEST(places, numbers_of_a_device)
{
    const uint64_t size = 100000;
    void *block;
    CHILD_OK(syncedmem_sim_configure("memory=8m"));
    syncedmem_place *place = found("sim:0");
    CHILD_CHECK(number_of(place, SYNCEDMEM_PLACE_MEMORY_TOTAL) == (uint64_t)8 << 20);
    const uint64_t before = number_of(place, SYNCEDMEM_PLACE_MEMORY_FREE);
    CHILD_CHECK(before == (uint64_t)8 << 20);
    CHILD_CHECK(number_of(place, SYNCEDMEM_PLACE_ALIGNMENT) >= 1);
    CHILD_CHECK(number_of(place, SYNCEDMEM_PLACE_UNIFIED) == 0);
    CHILD_OK(syncedmem_sim_alloc(place, size, &block));
    CHILD_CHECK(number_of(place, SYNCEDMEM_PLACE_MEMORY_FREE) <= before - size);
    CHILD_OK(syncedmem_sim_free(place, block));
    CHILD_CHECK(number_of(place, SYNCEDMEM_PLACE_MEMORY_FREE) == before);
}

CHILD_TEST(places, names_that_are_none)
{
    static const char *const names[] = {
        "",       "sim",   "SIM:0",       "Host", "host ", "host:0", ":0",
        " sim:0", "gpu:0", "simulator:0", "si:0", "sim0",  "\n",
    };
    CHILD_CHECK(found("sim:0") != NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_not_found(names[i], SYNCEDMEM_NOT_FOUND);
    }
    check_not_found("sim:1", SYNCEDMEM_NO_DEVICE);
}

/* After a known backend: no such name, or no such device. Large numbers are not taken for 0. */
CHILD_TEST(places, numbers_that_are_none)
{
    static const char *const names[] = {
        "sim:",
        "sim:x",
        "sim:-1",
        "sim:-0",
        "sim:+0",
        "sim: 0",
        "sim:0x",
        "sim:0 ",
        "sim:0:0",
        "sim:0x0",
        "sim:0.0",
        "sim:0,",
        "sim:0\n",
        "sim:4294967296",
        "sim:18446744073709551616",
        "sim:99999999999999999999999999999",
    };
    CHILD_CHECK(found("sim:0") != NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        syncedmem_place *place = (syncedmem_place *)(uintptr_t)16;
        const syncedmem_status_t status = syncedmem_device_find(names[i], &place);
        CHILD_CHECK(status == SYNCEDMEM_NO_DEVICE || status == SYNCEDMEM_NOT_FOUND);
        CHILD_CHECK(place == NULL && is_one_line(syncedmem_last_error()));
    }
}

CHILD_TEST(places, reasons)
{
    CHILD_CHECK(strcmp(syncedmem_backend_reason("sim"), "") == 0);
    CHILD_CHECK(is_one_line(syncedmem_backend_reason("none")));
    CHILD_CHECK(is_one_line(syncedmem_backend_reason("nonsense")));
    CHILD_CHECK(is_one_line(syncedmem_backend_reason("")));
    CHILD_CHECK(syncedmem_backend_reason("none") == syncedmem_backend_reason("none"));
}

/* ---- The thread's current device ---- */

/* What a thread returns for a fault. */
static char fault;

static void *has_no_current(void *argument)
{
    syncedmem_place *place;
    (void)argument;
    return syncedmem_device_current(&place) == SYNCEDMEM_NO_DEVICE ? NULL : &fault;
}

CHILD_TEST(places, current_is_per_thread)
{
    syncedmem_place *place;
    pthread_t thread;
    void *outcome;
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=1m"));
    CHILD_OK(syncedmem_device_set_current(found("sim:1")));
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == found("sim:1"));
    CHILD_CHECK(pthread_create(&thread, NULL, has_no_current, NULL) == 0);
    pthread_join(thread, &outcome);
    CHILD_CHECK(outcome == NULL);
    CHILD_STATUS(syncedmem_device_set_current(syncedmem_host()), SYNCEDMEM_INVALID_ARGUMENT);
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == found("sim:1"));
    CHILD_OK(syncedmem_device_set_current(found("sim:0")));
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == found("sim:0"));
    CHILD_OK(syncedmem_device_set_current(NULL));
    check_no_current();
}

/* ---- Homes ---- */

static syncedmem_buffer *home_buffer;

static void *touch_device(void *argument)
{
    const void *pointer;
    if (argument != NULL) {
        syncedmem_device_set_current(argument);
    }
    return syncedmem_gpu_data(home_buffer, &pointer) == SYNCEDMEM_OK ? NULL : &fault;
}

static void touch_in_thread(syncedmem_place *current)
{
    pthread_t thread;
    void *outcome;
    CHILD_CHECK(pthread_create(&thread, NULL, touch_device, current) == 0);
    pthread_join(thread, &outcome);
    CHILD_CHECK(outcome == NULL);
}

/* The current device of the thread that touches first, whatever other threads have. */
CHILD_TEST(places, home_is_the_touching_threads_device)
{
    const void *pointer;
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=1m"));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(1000, &home_buffer));
    touch_in_thread(sim(1));
    CHILD_CHECK(home_is_fixed_at(home_buffer, 1));
    CHILD_OK(syncedmem_gpu_data(home_buffer, &pointer));
    CHILD_CHECK(device_knows(1, pointer) && !device_knows(0, pointer));
    /* Threads with another current device, or none, use and release it. */
    touch_in_thread(sim(0));
    touch_in_thread(NULL);
    const uint64_t free_before = device_memory_free(1);
    syncedmem_release(home_buffer);
    CHILD_CHECK(device_memory_free(1) >= free_before + 1000);
    syncedmem_place *place;
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == sim(0));
}

CHILD_TEST(places, set_home_before_and_after_the_touch)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=1m"));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(1000, &buffer));
    CHILD_OK(syncedmem_set_home(buffer, sim(1)));
    CHILD_OK(syncedmem_set_home(buffer, sim(0)));
    CHILD_OK(syncedmem_set_home(buffer, sim(1)));
    /* A touch of the host fixes nothing. */
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(home_is_open(buffer));
    CHILD_OK(syncedmem_set_home(buffer, sim(1)));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_CHECK(device_knows(1, pointer) && !device_knows(0, pointer));
    CHILD_CHECK(home_is_fixed_at(buffer, 1));
    CHILD_CHECK(is_one_line(syncedmem_last_error()));
    CHILD_STATUS(syncedmem_set_home(buffer, syncedmem_host()), SYNCEDMEM_INVALID_ARGUMENT);
    syncedmem_release(buffer);
}

/* Failing touches, of each kind, leave the home open; a home is enough without a current device. */
CHILD_TEST(places, a_failing_touch_does_not_fix_the_home)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=1m"));
    CHILD_OK(syncedmem_create(100000, &buffer));
    CHILD_STATUS(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_NO_DEVICE);
    CHILD_CHECK(home_is_open(buffer));
    CHILD_OK(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_ALLOC, 1));
    CHILD_STATUS(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_OUT_OF_DEVICE_MEMORY);
    CHILD_CHECK(home_is_open(buffer));
    CHILD_OK(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY, 1));
    CHILD_STATUS(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_DEVICE_ERROR);
    CHILD_CHECK(home_is_open(buffer));
    CHILD_OK(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    CHILD_STATUS(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_DEVICE_ERROR);
    CHILD_CHECK(home_is_open(buffer));
    CHILD_OK(syncedmem_set_home(buffer, sim(1)));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_CHECK(device_knows(1, pointer) && device_pattern_is(1, pointer, 100000, 0));
    syncedmem_release(buffer);
    CHILD_CHECK(device_memory_free(0) == 1 << 20 && device_memory_free(1) == 1 << 20);
}
