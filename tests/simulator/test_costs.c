/* SPDX-License-Identifier: BSD-2-Clause */
/* Costs: operations take at least what the settings say. No upper bounds: machines are busy. */
#include "support.h"

#include <time.h>

enum { MS = 1000000 };

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t copy_time(const struct engine_settings *settings, size_t length)
{
    struct engine_device *device = device_from(settings);
    struct engine_stream *stream = stream_of(device);
    struct side host = {NULL, calloc(1, length)};
    struct side block = {device, block_of(device, length)};
    uint64_t start = now_ns();
    cr_assert_eq(copy_bytes(stream, block, host, length), ENGINE_OK);
    uint64_t elapsed = now_ns() - start;
    syncedmem_engine_device_destroy(device);
    free(host.address);
    return elapsed;
}

Test(simulator_costs, copies_take_their_latency)
{
    struct engine_settings settings = {.memory = MIB, .latency_ns = 20 * MS};
    cr_assert_geq(copy_time(&settings, 1), 20 * MS);
}

Test(simulator_costs, copies_take_their_bandwidth)
{
    struct engine_settings settings = {.memory = MIB, .bandwidth = 10 * MIB};
    cr_assert_geq(copy_time(&settings, MIB), 99 * MS);
}

Test(simulator_costs, latency_and_bandwidth_add_up)
{
    struct engine_settings settings = {.memory = MIB, .latency_ns = 50 * MS, .bandwidth = 20 * MIB};
    cr_assert_geq(copy_time(&settings, MIB), 99 * MS);
}

Test(simulator_costs, fills_take_their_latency_and_failures_too)
{
    struct engine_settings settings = {
        .memory = MIB, .latency_ns = 20 * MS, .fail = {[ENGINE_FAIL_COPY_LATE] = 2}};
    struct engine_device *device = device_from(&settings);
    struct engine_stream *stream = stream_of(device);
    void *block = block_of(device, 10);
    uint64_t start = now_ns();
    cr_assert_eq(fill_bytes(stream, block, 10, 1), ENGINE_OK);
    uint64_t middle = now_ns();
    cr_assert_eq(fill_bytes(stream, block, 10, 1), ENGINE_FAILED);
    cr_assert_geq(middle - start, 20 * MS);
    cr_assert_geq(now_ns() - middle, 20 * MS);
    syncedmem_engine_device_destroy(device);
}

static void kernel_nothing(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

Test(simulator_costs, kernels_take_their_time_one_after_the_other)
{
    struct engine_settings settings = {.memory = MIB, .launch_ns = 10 * MS};
    struct engine_device *device = device_from(&settings);
    struct engine_stream *stream = stream_of(device);
    uint64_t start = now_ns();
    for (int i = 0; i < 3; i++)
        syncedmem_engine_launch(stream, kernel_nothing, NULL, 0, NULL, 0, NULL);
    syncedmem_engine_stream_synchronize(stream);
    cr_assert_geq(now_ns() - start, 30 * MS);
    syncedmem_engine_device_destroy(device);
}

/* The submission itself costs nothing: it would be a bug of ours that looks like a slow device. */
Test(simulator_costs, the_caller_does_not_pay)
{
    struct engine_settings settings = {.memory = MIB, .launch_ns = 200 * MS};
    struct engine_device *device = device_from(&settings);
    struct engine_stream *stream = stream_of(device);
    struct engine_event *event;
    syncedmem_engine_launch(stream, kernel_nothing, NULL, 0, NULL, 0, &event);
    cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_PENDING);
    cr_assert_eq(outcome(event), ENGINE_OK);
    syncedmem_engine_device_destroy(device);
}
