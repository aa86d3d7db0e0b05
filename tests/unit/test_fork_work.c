/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forks while work is unfinished, and while another thread is inside of a call that needs a
 * device: in the child, what was under way never arrives, and no lock is waited for.
 */
#include "processes.h"

enum { SIZE = 50000, HALF = SIZE / 2, OLD = 1, NEW = 2, OTHER = 3 };

static syncedmem_buffer *buffer;
static syncedmem_stream *stream;
static struct gate gate;

/* NEW at the device, OLD and stale at the host. A gate holds up the stream. */
static void make_stale(void)
{
    void *pointer;
    sim_setup();
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, OLD);
    assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
    device_pattern_write(0, pointer, SIZE, NEW);
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
}

static void check_parent(unsigned seed)
{
    const void *pointer;
    gate_open(&gate);
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, seed));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, seed));
    assert_ok(syncedmem_wait(buffer));
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}

TestSuite(fork_work, .timeout = 120, .init = make_stale);

/* ---- A pull ---- */

static void child_misses_a_pull(void)
{
    const void *pointer;
    void *writing;
    size_t valid;
    CHILD_STATUS(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
    CHILD_STATUS(syncedmem_mutable_cpu_data(buffer, &writing), SYNCEDMEM_FORKED);
    CHILD_OK(syncedmem_valid_bytes(buffer, syncedmem_host(), 0, SIZE, &valid));
    CHILD_CHECK(valid == 0);
    CHILD_CHECK(syncedmem_head(buffer) == SYNCEDMEM_HEAD_AT_GPU);
    CHILD_STATUS(syncedmem_wait(buffer), SYNCEDMEM_FORKED);
    CHILD_OK(syncedmem_wait(buffer));
    CHILD_STATUS(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}

/* The first call is one that only looks. */
static void child_looks_first(void)
{
    size_t valid;
    CHILD_OK(syncedmem_valid_bytes(buffer, syncedmem_host(), 0, SIZE, &valid));
    CHILD_CHECK(valid == 0);
    CHILD_CHECK(syncedmem_head(buffer) == SYNCEDMEM_HEAD_AT_GPU);
}

static void child_writes_over_a_pull(void)
{
    syncedmem_token_t token;
    void *pointer;
    const void *reading;
    CHILD_OK(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer,
                             NULL, &token));
    pattern_write(pointer, SIZE, OTHER);
    CHILD_OK(syncedmem_end(buffer, token));
    CHILD_OK(syncedmem_cpu_data(buffer, &reading));
    CHILD_CHECK(pattern_is(reading, SIZE, OTHER));
}

Test(fork_work, an_unfinished_pull)
{
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, stream));
    assert_forked(child_misses_a_pull);
    assert_forked(child_looks_first);
    assert_forked(child_writes_over_a_pull);
    check_parent(NEW);
}

static void child_misses_half(void)
{
    syncedmem_buffer *first, *second;
    const void *pointer;
    CHILD_OK(syncedmem_view(buffer, 0, HALF, &first));
    CHILD_OK(syncedmem_view(buffer, HALF, HALF, &second));
    CHILD_STATUS(syncedmem_cpu_data(first, &pointer), SYNCEDMEM_FORKED);
    CHILD_OK(syncedmem_cpu_data(second, &pointer));
    for (size_t i = 0; i < HALF; i++) {
        CHILD_CHECK(((const unsigned char *)pointer)[i] == pattern_at(NEW, HALF + i));
    }
}

Test(fork_work, half_of_it_has_arrived)
{
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), HALF, HALF, NULL));
    assert_ok(syncedmem_wait(buffer));
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 0, HALF, stream));
    assert_forked(child_misses_half);
    check_parent(NEW);
}

/* ---- A push ---- */

static void child_keeps_the_source(void)
{
    const void *pointer;
    void *writing;
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OTHER));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
    pattern_write(writing, SIZE, OLD);
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
    CHILD_STATUS(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}

Test(fork_work, an_unfinished_push)
{
    void *pointer;
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, OTHER);
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    assert_forked(child_keeps_the_source);
    check_parent(OTHER);
}

/* What is taken at the device after the push is not the host's any more. */
static void child_has_nothing(void)
{
    const void *pointer;
    CHILD_STATUS(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
    syncedmem_release(buffer);
}

static void child_meets_a_lease(void)
{
    const void *pointer;
    CHILD_STATUS(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_BUSY);
    syncedmem_release(buffer);
}

Test(fork_work, a_lease_that_writes_after_a_push)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, OTHER);
    assert_ok(syncedmem_begin(buffer, sim(0), SYNCEDMEM_READ_WRITE, 0, SIZE, stream, &pointer, NULL,
                              &token));
    cr_assert(stream_pattern_write(stream, pointer, SIZE, OLD));
    assert_forked(child_meets_a_lease);
    assert_ok(syncedmem_end(buffer, token));
    assert_forked(child_has_nothing);
    check_parent(OLD);
}

/* ---- Memory given up while it is in use ---- */

static void child_makes_more(void)
{
    syncedmem_buffer *another;
    const void *pointer;
    CHILD_OK(syncedmem_create(SIZE, &another));
    CHILD_STATUS(syncedmem_gpu_data(another, &pointer), SYNCEDMEM_FORKED);
    CHILD_OK(syncedmem_cpu_data(another, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, 0));
    syncedmem_release(another);
}

Test(fork_work, blocks_that_wait_to_be_freed)
{
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, stream));
    syncedmem_release(buffer);
    assert_forked(child_makes_more);
    gate_open(&gate);
    assert_ok(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
}

static int told;

static void count_release(void *user)
{
    ++*(int *)user;
}

static void child_releases_adopted(void)
{
    syncedmem_release(buffer); /* nothing runs in this process that could use the block */
    CHILD_CHECK(told == 1);
}

Test(fork_work, adopted_memory_in_use)
{
    static unsigned char block[SIZE];
    pattern_write(block, SIZE, OTHER);
    assert_ok(
        syncedmem_adopt(buffer, syncedmem_host(), block, SIZE, 0, NULL, count_release, &told));
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    assert_forked(child_releases_adopted);
    cr_assert_eq(told, 0);
    check_parent(OTHER);
    cr_assert_eq(told, 1);
}

/* ---- Another thread waits inside of a call ---- */

static syncedmem_buffer *held;
static syncedmem_stream *default_stream;
static struct gate default_gate;
static atomic_bool entered;

static void *wait_inside(void *argument)
{
    const void *pointer;
    atomic_store(&entered, true);
    if (syncedmem_cpu_data(held, &pointer) != SYNCEDMEM_OK || !pattern_is(pointer, SIZE, NEW)) {
        *(bool *)argument = true;
    }
    return NULL;
}

/* Whatever can be said of a buffer is said at once. */
static void child_meets_a_held_buffer(void)
{
    const void *pointer;
    void *writing;
    syncedmem_token_t token;
    char text[2000];
    size_t needed;
    CHILD_STATUS(syncedmem_cpu_data(held, &pointer), SYNCEDMEM_FORKED);
    CHILD_STATUS(syncedmem_gpu_data(held, &pointer), SYNCEDMEM_FORKED);
    CHILD_STATUS(syncedmem_mutable_cpu_data(held, &writing), SYNCEDMEM_FORKED);
    CHILD_STATUS(syncedmem_begin(held, syncedmem_host(), SYNCEDMEM_READ, 0, SIZE, NULL, &writing,
                                 NULL, &token),
                 SYNCEDMEM_FORKED);
    CHILD_CHECK(syncedmem_copy(held, 0, buffer, 0, SIZE) == SYNCEDMEM_FORKED);
    CHILD_CHECK(syncedmem_copy(buffer, 0, held, 0, SIZE) == SYNCEDMEM_FORKED);
    (void)syncedmem_fill(held, 0, SIZE, 1);
    (void)syncedmem_wait(held);
    (void)syncedmem_drop(held, syncedmem_host());
    (void)syncedmem_end(held, 1);
    (void)syncedmem_head(held);
    (void)syncedmem_home(held);
    (void)syncedmem_set_home(held, sim(1));
    (void)syncedmem_set_host_policy(held, SYNCEDMEM_PINNED);
    (void)syncedmem_describe(held, text, sizeof text, &needed);
    (void)stat_of(held, SYNCEDMEM_STAT_TRANSFERS);
    (void)stat_of(NULL, SYNCEDMEM_STAT_TRANSFERS);
    CHILD_STATUS(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
    syncedmem_release(held);
    syncedmem_release(buffer);
    child_makes_more();
}

Test(fork_work, another_thread_waits_inside_of_a_call)
{
    pthread_t thread;
    void *pointer;
    bool failed = false;
    assert_ok(syncedmem_create(SIZE, &held));
    assert_ok(syncedmem_mutable_gpu_data(held, &pointer));
    device_pattern_write(0, pointer, SIZE, NEW);
    assert_ok(syncedmem_stream_default(sim(0), &default_stream));
    gate_put(&default_gate, default_stream);
    cr_assert_eq(pthread_create(&thread, NULL, wait_inside, &failed), 0);
    while (!atomic_load(&entered)) {
        sleep_ms(1);
    }
    for (int i = 0; i < 10; i++) { /* before, while and after it goes in */
        assert_forked(child_meets_a_held_buffer);
        sleep_ms(2);
    }
    gate_open(&default_gate);
    pthread_join(thread, NULL);
    cr_assert_not(failed);
    syncedmem_release(held);
    syncedmem_stream_release(default_stream);
    check_parent(NEW);
}

/* ---- Threads that use devices all the time ---- */

enum { THREADS = 3, FORKS = 40 };

static atomic_bool enough;
static atomic_int rounds;

static void *use_device(void *argument)
{
    syncedmem_buffer *own;
    if (syncedmem_create(SIZE, &own) != SYNCEDMEM_OK) {
        *(bool *)argument = true;
        return NULL;
    }
    (void)syncedmem_set_home(own, sim(1));
    for (unsigned seed = 1; !atomic_load(&enough); seed++) {
        void *writing;
        const void *reading;
        if (syncedmem_mutable_cpu_data(own, &writing) != SYNCEDMEM_OK) {
            *(bool *)argument = true;
            break;
        }
        pattern_write(writing, SIZE, seed);
        if (syncedmem_mutable_gpu_data(own, &writing) != SYNCEDMEM_OK ||
            syncedmem_cpu_data(own, &reading) != SYNCEDMEM_OK || !pattern_is(reading, SIZE, seed)) {
            *(bool *)argument = true;
        }
        atomic_fetch_add(&rounds, 1);
    }
    syncedmem_release(own);
    return NULL;
}

static void child_among_threads(void)
{
    syncedmem_stream *another;
    CHILD_STATUS(syncedmem_stream_create(sim(1), &another), SYNCEDMEM_FORKED);
    child_makes_more();
    child_has_nothing();
    syncedmem_stream_release(stream);
}

Test(fork_work, while_threads_use_devices)
{
    pthread_t threads[THREADS];
    bool failed[THREADS] = {false};
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, use_device, &failed[i]), 0);
    }
    while (atomic_load(&rounds) < THREADS) {
        sleep_ms(1);
    }
    for (int i = 0; i < FORKS && CAN_FORK_AMONG_ALLOCATIONS; i++) {
        assert_forked(child_among_threads);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_not(failed[i]);
    }
    check_parent(NEW);
}
