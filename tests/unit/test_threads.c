/* SPDX-License-Identifier: BSD-2-Clause */
/* Many threads on one buffer, and on buffers of their own. Also run under ThreadSanitizer. */
#include <stdlib.h>

#include "support.h"

TestSuite(threads, .init = sim_setup, .timeout = 120);

/* ---- A crew: threads that start together, and count what went wrong ---- */

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    int number;
    void (*work)(struct worker *worker);
    syncedmem_buffer *buffer;
    const void *pointer; /* what it was given */
    int faults;
};

static void expect(struct worker *worker, bool condition)
{
    worker->faults += !condition;
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    expect(worker, syncedmem_device_set_current(sim(0)) == SYNCEDMEM_OK);
    pthread_barrier_wait(worker->start);
    worker->work(worker);
    return NULL;
}

static void run_crew(struct worker *workers, int count, void (*work)(struct worker *),
                     syncedmem_buffer *buffer)
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.start = &start, .number = i, .buffer = buffer};
        workers[i].work = work;
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_assert_eq(workers[i].faults, 0, "thread %d: %d faults", i, workers[i].faults);
    }
    pthread_barrier_destroy(&start);
}

/* ---- First touch ---- */

enum { CREW = 32, SIZE = 20000 };

static void touch_one_side(struct worker *worker)
{
    if (worker->number % 2 == 0) {
        expect(worker, syncedmem_cpu_data(worker->buffer, &worker->pointer) == SYNCEDMEM_OK);
        expect(worker, pattern_is(worker->pointer, SIZE, 0));
    } else {
        expect(worker, syncedmem_gpu_data(worker->buffer, &worker->pointer) == SYNCEDMEM_OK);
        expect(worker, worker->pointer != NULL);
    }
}

static void check_first_touch(void)
{
    struct worker workers[CREW];
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    run_crew(workers, CREW, touch_one_side, buffer);
    for (int i = 2; i < CREW; i++) {
        cr_assert_eq(workers[i].pointer, workers[i % 2].pointer, "thread %d", i);
    }
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_HOST_ALLOCATIONS), 1);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS), 1);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS), 1);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_SYNCED);
    cr_assert(device_pattern_is(0, workers[1].pointer, SIZE, 0));
    syncedmem_release(buffer);
}

Test(threads, first_touch_at_both_sides)
{
    for (int round = 0; round < 10; round++) {
        check_first_touch();
    }
}

/* Bytes that one thread wrote, touched by all at the device: one transfer. */
static void read_the_device(struct worker *worker)
{
    expect(worker, syncedmem_gpu_data(worker->buffer, &worker->pointer) == SYNCEDMEM_OK);
}

Test(threads, one_transfer_for_all)
{
    struct worker workers[CREW];
    for (unsigned round = 1; round <= 10; round++) {
        syncedmem_buffer *buffer;
        void *pointer;
        assert_ok(syncedmem_create(SIZE, &buffer));
        assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
        pattern_write(pointer, SIZE, round);
        run_crew(workers, CREW, read_the_device, buffer);
        cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS), 1);
        cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS), 1);
        cr_assert(device_pattern_is(0, workers[0].pointer, SIZE, round));
        syncedmem_release(buffer);
    }
}

/* ---- Buffers of one's own ---- */

/* Launches on the default stream and reads through the library: no wait between. */
static bool write_on_device(syncedmem_buffer *buffer, syncedmem_stream *stream, unsigned seed)
{
    void *pointer;
    return syncedmem_mutable_gpu_data(buffer, &pointer) == SYNCEDMEM_OK &&
           stream_pattern_write(stream, pointer, 3000, seed);
}

static void work_alone(struct worker *worker)
{
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    expect(worker, syncedmem_stream_default(sim(0), &stream) == SYNCEDMEM_OK);
    expect(worker, syncedmem_create(3000, &buffer) == SYNCEDMEM_OK);
    for (unsigned i = 0; i < 100 && worker->faults == 0; i++) {
        const unsigned seed = i * 8 + (unsigned)worker->number + 1;
        const void *reading = NULL;
        void *writing = NULL;
        expect(worker, write_on_device(buffer, stream, seed));
        expect(worker, syncedmem_cpu_data(buffer, &reading) == SYNCEDMEM_OK);
        expect(worker, reading != NULL && pattern_is(reading, 3000, seed));
        expect(worker, syncedmem_mutable_cpu_data(buffer, &writing) == SYNCEDMEM_OK);
        expect(worker, writing == reading);
        if (i % 10 == 0) {
            syncedmem_release(buffer);
            expect(worker, syncedmem_create(3000, &buffer) == SYNCEDMEM_OK);
        }
    }
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}

Test(threads, each_with_its_own_buffer)
{
    struct worker workers[8];
    const uint64_t free_before = device_memory_free(0);
    run_crew(workers, 8, work_alone, NULL);
    cr_assert_eq(device_memory_free(0), free_before);
}

/* ---- References ---- */

static void retain_and_release(struct worker *worker)
{
    for (int i = 0; i < 2000; i++) {
        expect(worker, syncedmem_retain(worker->buffer) == worker->buffer);
        expect(worker, syncedmem_size(worker->buffer) == SIZE);
        syncedmem_release(worker->buffer);
    }
    syncedmem_release(worker->buffer);
}

/* Each thread owns a reference; the last one frees. */
Test(threads, references)
{
    struct worker workers[8];
    syncedmem_buffer *buffer;
    const void *pointer;
    const uint64_t host = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    const uint64_t free_before = device_memory_free(0);
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    for (int i = 1; i < 8; i++) {
        syncedmem_retain(buffer);
    }
    run_crew(workers, 8, retain_and_release, buffer);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host);
    cr_assert_eq(device_memory_free(0), free_before);
}

/* ---- Calls with nothing to do, while others have much to do ---- */

static unsigned char blocks[2][SIZE];
static const void *own_pointer;

static bool is_known(const void *pointer)
{
    return pointer == own_pointer || pointer == blocks[0] || pointer == blocks[1];
}

static void read_hot(struct worker *worker)
{
    for (int i = 0; i < 20000 && worker->faults == 0; i++) {
        const void *pointer = NULL;
        expect(worker, syncedmem_cpu_data(worker->buffer, &pointer) == SYNCEDMEM_OK);
        expect(worker, is_known(pointer));
        if (i % 16 == 0) {
            expect(worker, syncedmem_gpu_data(worker->buffer, &pointer) == SYNCEDMEM_OK);
            expect(worker, pointer != NULL);
            const syncedmem_head_t head = syncedmem_head(worker->buffer);
            expect(worker, head >= SYNCEDMEM_HEAD_AT_CPU && head <= SYNCEDMEM_SYNCED);
            expect(worker, stat_of(worker->buffer, SYNCEDMEM_STAT_TRANSFERS) != UINT64_MAX);
        }
    }
}

static void change_what_is_hot(struct worker *worker)
{
    for (int i = 0; i < 400 && worker->faults == 0; i++) {
        void *pointer;
        expect(worker, syncedmem_mutable_gpu_data(worker->buffer, &pointer) == SYNCEDMEM_OK);
        expect(worker, syncedmem_mutable_cpu_data(worker->buffer, &pointer) == SYNCEDMEM_OK);
        expect(worker, syncedmem_set_cpu_data(worker->buffer, blocks[i % 2], SIZE) == SYNCEDMEM_OK);
        const syncedmem_status_t status = syncedmem_async_gpu_push(worker->buffer, NULL);
        expect(worker, status == SYNCEDMEM_OK || status == SYNCEDMEM_WRONG_STATE);
    }
}

static void read_or_change(struct worker *worker)
{
    if (worker->number == 0) {
        change_what_is_hot(worker);
    } else {
        read_hot(worker);
    }
}

Test(threads, hot_calls_while_another_changes)
{
    struct worker workers[4];
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_cpu_data(buffer, &own_pointer));
    run_crew(workers, 4, read_or_change, buffer);
    syncedmem_release(buffer);
}

/* ---- Pushes on streams of one's own ---- */

static void push_patterns(struct worker *worker)
{
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    const void *device;
    unsigned char *seen = malloc(SIZE);
    expect(worker, seen != NULL);
    expect(worker, syncedmem_stream_create(sim(0), &stream) == SYNCEDMEM_OK);
    expect(worker, syncedmem_create(SIZE, &buffer) == SYNCEDMEM_OK);
    expect(worker, syncedmem_gpu_data(buffer, &device) == SYNCEDMEM_OK);
    for (unsigned i = 1; i <= 60 && worker->faults == 0; i++) {
        void *writing;
        const unsigned seed = i * 4 + (unsigned)worker->number;
        expect(worker, syncedmem_mutable_cpu_data(buffer, &writing) == SYNCEDMEM_OK);
        pattern_write(writing, SIZE, seed);
        expect(worker, syncedmem_async_gpu_push(buffer, stream) == SYNCEDMEM_OK);
        expect(worker, stream_read(stream, device, seen, SIZE));
        /* Changing the host's bytes waits for the push, and it alone has read them. */
        expect(worker, syncedmem_mutable_cpu_data(buffer, &writing) == SYNCEDMEM_OK);
        pattern_write(writing, SIZE, 0);
        expect(worker, syncedmem_stream_wait(stream) == SYNCEDMEM_OK);
        expect(worker, pattern_is(seen, SIZE, seed));
    }
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
    free(seen);
}

Test(threads, pushes)
{
    struct worker workers[4];
    run_crew(workers, 4, push_patterns, NULL);
}

/* One buffer: some push, some read the device, one writes. No state of it is lost. */
static void push_and_read_one_buffer(struct worker *worker)
{
    for (int i = 0; i < 300; i++) {
        const void *reading;
        void *writing;
        syncedmem_status_t status;
        switch (worker->number % 3) {
        case 0:
            status = syncedmem_mutable_cpu_data(worker->buffer, &writing);
            expect(worker, status == SYNCEDMEM_OK);
            break;
        case 1:
            status = syncedmem_async_gpu_push(worker->buffer, NULL);
            expect(worker, status == SYNCEDMEM_OK || status == SYNCEDMEM_WRONG_STATE);
            break;
        default:
            expect(worker, syncedmem_gpu_data(worker->buffer, &reading) == SYNCEDMEM_OK);
            expect(worker, syncedmem_wait(worker->buffer) == SYNCEDMEM_OK);
        }
    }
}

Test(threads, pushes_of_one_buffer)
{
    struct worker workers[6];
    syncedmem_buffer *buffer;
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, 9);
    run_crew(workers, 6, push_and_read_one_buffer, buffer);
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    cr_assert(device_pattern_is(0, reading, SIZE, 9));
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert(pattern_is(reading, SIZE, 9));
    syncedmem_release(buffer);
}
