/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures on demand: exactly the n-th, once. */
#include "support.h"

enum { TRIES = 8 };

struct bench {
    struct engine_device *device;
    struct engine_stream *stream;
    void *block;
};

static enum engine_result try_alloc(const struct bench *bench)
{
    void *address;
    enum engine_result result = syncedmem_engine_alloc(bench->device, 10, &address);
    if (result == ENGINE_OK)
        syncedmem_engine_free(bench->device, address);
    else
        cr_assert_null(address);
    return result;
}

static enum engine_result try_fill(const struct bench *bench)
{
    return fill_bytes(bench->stream, bench->block, 10, 1);
}

static enum engine_result try_copy(const struct bench *bench)
{
    char bytes[10] = {0};
    return copy_bytes(bench->stream, (struct side){NULL, bytes},
                      (struct side){bench->device, bench->block}, 10);
}

static enum engine_result try_pin(const struct bench *bench)
{
    char bytes[10];
    enum engine_result result = syncedmem_engine_pin(bench->device, bytes, 10);
    if (result == ENGINE_OK)
        syncedmem_engine_unpin(bench->device, bytes);
    return result;
}

struct kind {
    enum engine_failure what;
    enum engine_result expected;
    enum engine_result (*attempt)(const struct bench *bench);
};

static const struct kind kinds[] = {
    {ENGINE_FAIL_ALLOC, ENGINE_DEVICE_MEMORY, try_alloc},
    {ENGINE_FAIL_COPY, ENGINE_REFUSED, try_copy},
    {ENGINE_FAIL_COPY, ENGINE_REFUSED, try_fill},
    {ENGINE_FAIL_COPY_LATE, ENGINE_FAILED, try_copy},
    {ENGINE_FAIL_COPY_LATE, ENGINE_FAILED, try_fill},
    {ENGINE_FAIL_PIN, ENGINE_REFUSED, try_pin},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct bench bench_from(const struct engine_settings *settings)
{
    struct bench bench = {.device = device_from(settings)};
    bench.stream = stream_of(bench.device);
    return bench;
}

/* Tries so often that a second failure would show. */
static void expect_nth(const struct bench *bench, const struct kind *kind, uint64_t nth)
{
    for (uint64_t i = 1; i <= TRIES; i++)
        cr_assert_eq(kind->attempt(bench), i == nth ? kind->expected : ENGINE_OK);
}

Test(simulator_failure, the_nth_from_now_fails_once)
{
    struct engine_settings settings = {.memory = MIB};
    struct bench bench = bench_from(&settings);
    bench.block = block_of(bench.device, 10);
    for (size_t i = 0; i < KINDS; i++)
        for (uint64_t nth = 0; nth <= TRIES; nth++) {
            syncedmem_engine_fail(bench.device, kinds[i].what, nth);
            expect_nth(&bench, &kinds[i], nth);
        }
    syncedmem_engine_device_destroy(bench.device);
}

Test(simulator_failure, settings_count_from_the_start)
{
    for (size_t i = 0; i < KINDS; i++)
        for (uint64_t nth = 2; nth <= TRIES; nth++) {
            struct engine_settings settings = {.memory = MIB};
            settings.fail[kinds[i].what] = nth;
            struct bench bench = bench_from(&settings);
            bench.block = block_of(bench.device, 10);
            /* The block was an allocation itself. */
            expect_nth(&bench, &kinds[i], kinds[i].what == ENGINE_FAIL_ALLOC ? nth - 1 : nth);
            syncedmem_engine_device_destroy(bench.device);
        }
}

Test(simulator_failure, a_new_order_replaces_the_old_one)
{
    struct engine_settings settings = {.memory = MIB, .fail = {[ENGINE_FAIL_PIN] = 2}};
    struct bench bench = bench_from(&settings);
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_PIN, 4);
    expect_nth(&bench, &kinds[5], 4);
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_PIN, 1);
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_PIN, 0);
    expect_nth(&bench, &kinds[5], 0);
    syncedmem_engine_device_destroy(bench.device);
}

Test(simulator_failure, copies_and_fills_count_together_and_a_list_once)
{
    struct engine_settings settings = {.memory = MIB};
    struct bench bench = bench_from(&settings);
    bench.block = block_of(bench.device, 10);
    struct engine_region regions[] = {
        {.to = 0, .length = 2}, {.to = 4, .length = 2}, {.to = 8, .length = 2}};
    struct engine_fill fill = {.to = bench.block, .regions = regions, .count = 3};
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_COPY, 3);
    cr_assert_eq(syncedmem_engine_fill(bench.stream, &fill, NULL), ENGINE_OK);
    cr_assert_eq(try_copy(&bench), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_fill(bench.stream, &fill, NULL), ENGINE_REFUSED);
    cr_assert_eq(try_copy(&bench), ENGINE_OK);
    syncedmem_engine_device_destroy(bench.device);
}

Test(simulator_failure, counts_on_the_device_of_the_stream)
{
    struct engine_settings settings = {.memory = MIB};
    struct bench bench = bench_from(&settings);
    struct engine_device *other = device_with(MIB);
    struct side there = {other, block_of(other, 10)};
    bench.block = block_of(bench.device, 10);
    struct side here = {bench.device, bench.block};
    syncedmem_engine_fail(other, ENGINE_FAIL_COPY, 1);
    cr_assert_eq(copy_bytes(bench.stream, there, here, 10), ENGINE_OK);
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_COPY, 1);
    cr_assert_eq(copy_bytes(bench.stream, there, here, 10), ENGINE_REFUSED);
    syncedmem_engine_device_destroy(bench.device);
    syncedmem_engine_device_destroy(other);
}

Test(simulator_failure, a_refused_copy_writes_nothing)
{
    struct engine_settings settings = {.memory = MIB};
    struct bench bench = bench_from(&settings);
    bench.block = block_of(bench.device, 100);
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_COPY, 1);
    cr_assert_eq(fill_bytes(bench.stream, bench.block, 100, 1), ENGINE_REFUSED);
    syncedmem_engine_stream_synchronize(bench.stream);
    cr_assert(all_are(syncedmem_engine_translate(bench.device, bench.block), 100, 0xCD));
    syncedmem_engine_device_destroy(bench.device);
}

Test(simulator_failure, a_late_one_does_half_and_the_stream_goes_on)
{
    struct engine_settings settings = {.memory = MIB};
    struct bench bench = bench_from(&settings);
    unsigned char *host = malloc(100);
    struct engine_region region = {.length = 100};
    struct engine_copy copy = {.to = host,
                               .from = block_of(bench.device, 100),
                               .from_device = bench.device,
                               .regions = &region,
                               .count = 1};
    struct engine_event *first;
    struct engine_event *second;
    bench.block = (void *)(uintptr_t)copy.from;
    memset(host, 1, 100);
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_COPY_LATE, 1);
    cr_assert_eq(syncedmem_engine_copy(bench.stream, &copy, &first), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_event_wait(first), ENGINE_FAILED);
    cr_assert_eq(syncedmem_engine_event_query(first), ENGINE_FAILED);
    cr_assert(all_are(host, 50, 0xCD));
    cr_assert(all_are(host + 50, 50, 1));
    cr_assert_eq(syncedmem_engine_copy(bench.stream, &copy, &second), ENGINE_OK);
    cr_assert_eq(outcome(second), ENGINE_OK);
    cr_assert(all_are(host, 100, 0xCD));
    cr_assert_eq(outcome(first), ENGINE_FAILED);
    cr_assert_eq(syncedmem_engine_stream_synchronize(bench.stream), ENGINE_OK);
    syncedmem_engine_device_destroy(bench.device);
    free(host);
}

Test(simulator_failure, a_late_one_releases_those_who_wait)
{
    struct engine_settings settings = {.memory = MIB};
    struct bench bench = bench_from(&settings);
    struct engine_stream *second = stream_of(bench.device);
    struct engine_region region = {.length = 10};
    struct engine_fill fill = {.to = block_of(bench.device, 10), .regions = &region, .count = 1};
    struct engine_event *failed;
    struct engine_event *after;
    sem_t gate;
    hold_up(bench.stream, &gate);
    syncedmem_engine_fail(bench.device, ENGINE_FAIL_COPY_LATE, 1);
    cr_assert_eq(syncedmem_engine_fill(bench.stream, &fill, &failed), ENGINE_OK);
    syncedmem_engine_stream_wait_event(second, failed);
    syncedmem_engine_record(second, &after);
    cr_assert_eq(syncedmem_engine_event_query(after), ENGINE_PENDING);
    sem_post(&gate);
    cr_assert_eq(outcome(after), ENGINE_OK);
    cr_assert_eq(outcome(failed), ENGINE_FAILED);
    syncedmem_engine_device_destroy(bench.device);
}
