/* SPDX-License-Identifier: BSD-2-Clause */
/* Many threads on the same device, its default stream and streams of their own. */
#include "support.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 60, SIZE = 5000 };

struct shared {
    struct engine_device *device;
    pthread_barrier_t start;
};

struct worker {
    struct shared *shared;
    int number;
    bool wrong;
};

static void kernel_increment(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < SIZE; j++)
            ((unsigned char *)addresses[i])[j]++;
}

/* Fills on one stream, adds on a second that waits for it, reads back on the first. */
static bool round_trip(struct engine_device *device, struct engine_stream *first,
                       struct engine_stream *second, unsigned char value)
{
    unsigned char host[SIZE];
    void *block;
    struct engine_event *event;
    const void *address;
    if (syncedmem_engine_alloc(device, SIZE, &block) != ENGINE_OK)
        return false;
    struct engine_region region = {.length = SIZE};
    struct engine_fill fill = {.to = block, .regions = &region, .count = 1, .value = value};
    address = block;
    bool ok = syncedmem_engine_fill(first, &fill, &event) == ENGINE_OK;
    ok = ok && syncedmem_engine_stream_wait_event(second, event) == ENGINE_OK;
    syncedmem_engine_event_release(event);
    ok = ok && syncedmem_engine_launch(second, kernel_increment, NULL, 0, &address, 1, &event) ==
                   ENGINE_OK;
    ok = ok && syncedmem_engine_stream_wait_event(first, event) == ENGINE_OK;
    syncedmem_engine_event_release(event);
    ok = ok && copy_bytes(first, (struct side){NULL, host}, (struct side){device, block}, SIZE) ==
                   ENGINE_OK;
    ok = ok && all_are(host, SIZE, (unsigned char)(value + 1));
    return syncedmem_engine_free(device, block) == ENGINE_OK && ok;
}

static bool one_round(struct engine_device *device, unsigned char value)
{
    struct engine_stream *common;
    struct engine_stream *own;
    if (syncedmem_engine_stream_default(device, &common) != ENGINE_OK ||
        syncedmem_engine_stream_create(device, &own) != ENGINE_OK)
        return false;
    bool ok = round_trip(device, common, own, value) &&
              syncedmem_engine_stream_synchronize(common) == ENGINE_OK;
    syncedmem_engine_stream_release(own);
    return ok;
}

/* The assertions are the main thread's: a worker notes what was wrong. */
static void *hammer(void *argument)
{
    struct worker *worker = argument;
    struct engine_device *device = worker->shared->device;
    pthread_barrier_wait(&worker->shared->start);
    for (int i = 0; i < ROUNDS && !worker->wrong; i++) {
        worker->wrong = !one_round(device, (unsigned char)(worker->number + i));
        syncedmem_engine_pin(device, &worker->number, sizeof worker->number);
        syncedmem_engine_unpin(device, &worker->number);
    }
    return NULL;
}

Test(simulator_threads, share_a_device, .timeout = 240)
{
    struct shared shared = {.device = device_with(MIB)};
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_init(&shared.start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = &shared, .number = i};
        cr_assert_eq(pthread_create(&threads[i], NULL, hammer, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        cr_assert(!workers[i].wrong);
    cr_assert_eq(syncedmem_engine_memory_free(shared.device), MIB);
    cr_assert_eq(syncedmem_engine_pinned_bytes(shared.device), 0);
    pthread_barrier_destroy(&shared.start);
    syncedmem_engine_device_destroy(shared.device);
}

static void *ask_for_default(void *argument)
{
    struct worker *worker = argument;
    struct engine_stream *stream;
    pthread_barrier_wait(&worker->shared->start);
    worker->wrong = syncedmem_engine_stream_default(worker->shared->device, &stream) != ENGINE_OK;
    return worker->wrong ? NULL : stream;
}

Test(simulator_threads, get_the_same_default_stream)
{
    struct shared shared = {.device = device_with(MIB)};
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    void *streams[THREADS];
    pthread_barrier_init(&shared.start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = &shared, .number = i};
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_for_default, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], &streams[i]);
    for (int i = 0; i < THREADS; i++) {
        cr_assert_not_null(streams[i]);
        cr_assert_eq(streams[i], streams[0]);
    }
    pthread_barrier_destroy(&shared.start);
    syncedmem_engine_device_destroy(shared.device);
}
