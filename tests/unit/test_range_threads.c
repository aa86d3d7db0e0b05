/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several threads on ranges of one buffer: leases exclude each other where they overlap, and no
 * byte is lost. Made for ThreadSanitizer.
 */
#include <stdlib.h>

#include "support.h"

TestSuite(range_threads, .init = sim_setup, .timeout = 120);

enum { THREADS = 6, CELL = 256, CELLS = 48, SIZE = CELL * CELLS };

static unsigned rounds(void)
{
    const char *given = getenv("SYNCEDMEM_TEST_ROUNDS");
    return given != NULL && strlen(given) < 3 ? 60 : 400;
}

struct shared {
    syncedmem_buffer *buffer;
    atomic_uint writers[CELLS]; /* who is in a cell now */
    atomic_uint readers[CELLS];
    atomic_uint busy, done, faults;
};

struct worker {
    struct shared *shared;
    unsigned number;
    uint64_t random;
    pthread_t thread;
};

static unsigned dice(struct worker *worker, unsigned limit)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    return (unsigned)(worker->random >> 11) % limit;
}

static void fault_if(struct worker *worker, bool wrong)
{
    if (wrong) {
        atomic_fetch_add(&worker->shared->faults, 1);
    }
}

static void run_workers(struct shared *shared, void *(*run)(void *))
{
    struct worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .shared = shared, .number = i, .random = (i + 1) * UINT64_C(0x9E3779B97F4A7C15)};
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    cr_assert_eq(atomic_load(&shared->faults), 0);
    cr_assert_eq(stat_of(shared->buffer, SYNCEDMEM_STAT_LEASES), 0);
}

/* ---- Bytes at a place, without anything of Criterion ---- */

static void put_bytes(syncedmem_place *place, syncedmem_stream *stream, void *pointer, size_t size,
                      unsigned seed, struct worker *worker)
{
    if (place == syncedmem_host()) {
        pattern_write(pointer, size, seed);
    } else {
        fault_if(worker, !stream_pattern_write(stream, pointer, size, seed));
    }
}

static bool bytes_are(syncedmem_place *place, syncedmem_stream *stream, const void *pointer,
                      size_t size, unsigned seed)
{
    unsigned char copy[SIZE];
    if (place == syncedmem_host()) {
        return pattern_is(pointer, size, seed);
    }
    return stream_read(stream, pointer, copy, size) &&
           syncedmem_stream_wait(stream) == SYNCEDMEM_OK && pattern_is(copy, size, seed);
}

/* ---- Disjoint ranges: no one is ever BUSY, and each thread finds its own bytes ---- */

static void own_round(struct worker *worker, syncedmem_buffer *handle, size_t from,
                      syncedmem_stream *stream, unsigned *seed)
{
    syncedmem_place *place = dice(worker, 2) ? sim(0) : syncedmem_host();
    syncedmem_stream *used = place == syncedmem_host() ? NULL : stream;
    const size_t size = SIZE / THREADS;
    void *pointer;
    syncedmem_token_t token;
    const syncedmem_mode_t mode = (syncedmem_mode_t)(1 + dice(worker, 3));
    if (syncedmem_begin(handle, place, mode, from, size, used, &pointer, NULL, &token) !=
        SYNCEDMEM_OK) {
        fault_if(worker, true);
        return;
    }
    if (mode != SYNCEDMEM_WRITE) {
        fault_if(worker, !bytes_are(place, stream, pointer, size, *seed));
    }
    if (mode != SYNCEDMEM_READ) {
        *seed = 1 + dice(worker, 200);
        put_bytes(place, stream, pointer, size, *seed, worker);
    }
    fault_if(worker, syncedmem_end(handle, token) != SYNCEDMEM_OK);
}

/* By turns through the buffer and through a view that is made for the round. */
static void *work_on_own_range(void *argument)
{
    struct worker *worker = argument;
    const size_t from = worker->number * (SIZE / THREADS);
    syncedmem_stream *stream;
    unsigned seed = 0;
    if (syncedmem_stream_create(sim(0), &stream) != SYNCEDMEM_OK) {
        fault_if(worker, true);
        return NULL;
    }
    for (unsigned i = 0; i < rounds(); i++) {
        syncedmem_buffer *view;
        if (syncedmem_view(worker->shared->buffer, from, SIZE / THREADS, &view) != SYNCEDMEM_OK) {
            fault_if(worker, true);
            break;
        }
        own_round(worker, i % 2 ? view : worker->shared->buffer, i % 2 ? 0 : from, stream, &seed);
        syncedmem_release(view);
    }
    syncedmem_stream_release(stream);
    return NULL;
}

Test(range_threads, disjoint_ranges)
{
    static struct shared shared;
    memset(&shared, 0, sizeof shared);
    assert_ok(syncedmem_create(SIZE, &shared.buffer));
    run_workers(&shared, work_on_own_range);
    syncedmem_release(shared.buffer);
}

/* ---- Overlapping ranges: a reader-writer lock, checked by counting who is inside ---- */

static void enter_and_leave(struct worker *worker, unsigned first, unsigned count, bool writing)
{
    struct shared *shared = worker->shared;
    for (unsigned i = first; i < first + count; i++) {
        if (writing) {
            fault_if(worker, atomic_fetch_add(&shared->writers[i], 1) != 0);
        } else {
            atomic_fetch_add(&shared->readers[i], 1);
        }
    }
    for (unsigned i = first; i < first + count; i++) {
        fault_if(worker, atomic_load(&shared->writers[i]) != (writing ? 1U : 0U));
        fault_if(worker, writing && atomic_load(&shared->readers[i]) != 0);
    }
    for (unsigned i = first; i < first + count; i++) {
        atomic_fetch_sub(writing ? &shared->writers[i] : &shared->readers[i], 1);
    }
}

/* Each cell holds one pattern, whoever wrote it: a torn one would show. */
static void use_cells(struct worker *worker, unsigned char *bytes, unsigned count, bool writing)
{
    for (unsigned i = 0; i < count; i++) {
        unsigned char *cell = bytes + (size_t)i * CELL;
        const unsigned seed = writing ? 1 + dice(worker, 200) : 0;
        if (writing) {
            memset(cell, (int)seed, CELL);
        } else {
            fault_if(worker, cell[0] != cell[CELL - 1] || cell[0] != cell[CELL / 2]);
        }
    }
}

static void overlapping_round(struct worker *worker)
{
    struct shared *shared = worker->shared;
    const unsigned first = dice(worker, CELLS), count = 1 + dice(worker, CELLS - first);
    const syncedmem_mode_t mode = (syncedmem_mode_t)(1 + dice(worker, 3));
    void *pointer;
    syncedmem_token_t token;
    syncedmem_place *place = dice(worker, 3) ? syncedmem_host() : sim(0);
    if (place != syncedmem_host() && mode == SYNCEDMEM_WRITE) {
        return; /* its kernel would have to write */
    }
    const syncedmem_status_t status =
        syncedmem_begin(shared->buffer, place, mode, (size_t)first * CELL, (size_t)count * CELL,
                        NULL, &pointer, NULL, &token);
    if (status != SYNCEDMEM_OK) {
        fault_if(worker, status != SYNCEDMEM_BUSY);
        atomic_fetch_add(&shared->busy, 1);
        return;
    }
    enter_and_leave(worker, first, count, mode != SYNCEDMEM_READ);
    if (place == syncedmem_host()) {
        use_cells(worker, pointer, count, mode != SYNCEDMEM_READ);
    }
    atomic_fetch_add(&shared->done, 1);
    fault_if(worker, syncedmem_end(shared->buffer, token) != SYNCEDMEM_OK);
}

static void *work_on_any_range(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < rounds(); i++) {
        overlapping_round(worker);
    }
    return NULL;
}

Test(range_threads, overlapping_ranges)
{
    static struct shared shared;
    const void *reading;
    memset(&shared, 0, sizeof shared);
    assert_ok(syncedmem_create(SIZE, &shared.buffer));
    run_workers(&shared, work_on_any_range);
    cr_assert_gt(atomic_load(&shared.done), 0);
    assert_ok(syncedmem_cpu_data(shared.buffer, &reading));
    const unsigned char *bytes = reading;
    for (size_t i = 0; i < SIZE; i++) {
        cr_assert_eq(bytes[i], bytes[i - i % CELL], "byte %zu", i);
    }
    syncedmem_release(shared.buffer);
}

/* While one thread holds a writing lease, all others are BUSY, and are counted. */
static void *try_to_read(void *argument)
{
    struct worker *worker = argument;
    const void *reading = worker;
    for (unsigned i = 0; i < rounds(); i++) {
        const syncedmem_status_t status = syncedmem_cpu_data(worker->shared->buffer, &reading);
        fault_if(worker, status != SYNCEDMEM_BUSY || reading != NULL);
        atomic_fetch_add(&worker->shared->busy, status == SYNCEDMEM_BUSY);
    }
    return NULL;
}

Test(range_threads, readers_under_a_writer)
{
    static struct shared shared;
    void *pointer;
    syncedmem_token_t token;
    memset(&shared, 0, sizeof shared);
    assert_ok(syncedmem_create(SIZE, &shared.buffer));
    assert_ok(syncedmem_begin(shared.buffer, syncedmem_host(), SYNCEDMEM_WRITE, 5, 1, NULL,
                              &pointer, NULL, &token));
    struct worker worker = {.shared = &shared};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, try_to_read, &worker), 0);
    try_to_read(&worker);
    pthread_join(thread, NULL);
    cr_assert_eq(atomic_load(&shared.busy), 2 * rounds());
    cr_assert_eq(atomic_load(&shared.faults), 0);
    assert_ok(syncedmem_end(shared.buffer, token));
    syncedmem_release(shared.buffer);
}

/* ---- Views by many threads, and the last reference anywhere ---- */

static void *work_on_views(void *argument)
{
    struct worker *worker = argument;
    syncedmem_buffer *parent = syncedmem_retain(worker->shared->buffer);
    for (unsigned i = 0; i < rounds(); i++) {
        syncedmem_buffer *view = NULL, *inner = NULL;
        const void *reading;
        const size_t offset = dice(worker, SIZE),
                     length = 1 + dice(worker, SIZE - (unsigned)offset);
        bool wrong = syncedmem_view(parent, offset, length, &view) != SYNCEDMEM_OK;
        wrong = wrong || syncedmem_view(view, length / 2, 0, &inner) != SYNCEDMEM_OK;
        wrong = wrong || syncedmem_cpu_data(view, &reading) != SYNCEDMEM_OK;
        wrong = wrong || *(const unsigned char *)reading != 7;
        wrong = wrong || syncedmem_gpu_data(view, &reading) != SYNCEDMEM_OK;
        fault_if(worker, wrong || syncedmem_head(view) != SYNCEDMEM_SYNCED);
        syncedmem_release(view);
        syncedmem_release(inner);
    }
    syncedmem_release(parent);
    return NULL;
}

Test(range_threads, views)
{
    static struct shared shared;
    memset(&shared, 0, sizeof shared);
    assert_ok(syncedmem_create(SIZE, &shared.buffer));
    assert_ok(syncedmem_fill(shared.buffer, 0, SIZE, 7));
    assert_ok(syncedmem_prefetch(shared.buffer, sim(0), 0, SIZE, NULL));
    run_workers(&shared, work_on_views);
    syncedmem_release(shared.buffer);
}
