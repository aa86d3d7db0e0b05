/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forks of a process that has used no device: its child can do everything, unless another
 * thread was in the middle of something.
 */
#include "processes.h"

enum { SIZE = 20000, OLD = 1, NEW = 2, THREADS = 4, ROUNDS = 300 };

static syncedmem_buffer *buffer;

static void make_buffer(void)
{
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, OLD);
}

TestSuite(fork_host, .timeout = 200, .init = make_buffer);

/* ---- Threads of the child's own ---- */

static atomic_int faults, entered;

/* Each has a range of its own to write, and takes it often. */
static void *lease_often(void *argument)
{
    const size_t length = SIZE / THREADS, offset = (size_t)(uintptr_t)argument * length;
    for (int i = 0; i < ROUNDS; i++) {
        syncedmem_token_t token;
        void *pointer;
        if (syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_READ_WRITE, offset, length, NULL,
                            &pointer, NULL, &token) != SYNCEDMEM_OK) {
            atomic_fetch_add(&faults, 1);
            continue;
        }
        pattern_write(pointer, length, NEW);
        if (syncedmem_end(buffer, token) != SYNCEDMEM_OK) {
            atomic_fetch_add(&faults, 1);
        }
    }
    return NULL;
}

static void child_has_threads(void)
{
    pthread_t threads[THREADS];
    const void *pointer;
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
    for (uintptr_t i = 0; i < THREADS; i++) {
        /* The number of the thread is no address. */
        CHILD_CHECK(pthread_create(&threads[i], NULL, lease_often, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHILD_CHECK(atomic_load(&faults) == 0);
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    for (size_t i = 0; i < THREADS; i++) {
        const unsigned char *part = (const unsigned char *)pointer + i * (SIZE / THREADS);
        CHILD_CHECK(pattern_is(part, SIZE / THREADS, NEW));
    }
    syncedmem_release(buffer);
}

Test(fork_host, threads_of_the_child)
{
    assert_forked(child_has_threads);
    const void *pointer;
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, OLD));
}

/* ---- A device that is first opened in the child ---- */

static void child_opens_a_device(void)
{
    syncedmem_place *place;
    syncedmem_stream *stream;
    const void *pointer;
    void *writing;
    CHILD_OK(syncedmem_sim_configure("memory=4m"));
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_OK(syncedmem_device_set_current(place));
    CHILD_OK(syncedmem_stream_create(place, &stream));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_CHECK(syncedmem_head(buffer) == SYNCEDMEM_SYNCED);
    CHILD_OK(syncedmem_mutable_gpu_data(buffer, &writing));
    CHILD_CHECK(stream_pattern_write(stream, writing, SIZE, NEW));
    CHILD_OK(syncedmem_stream_wait(stream));
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, NEW));
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}

static void child_opens_and_forks(void)
{
    syncedmem_place *place;
    const void *pointer;
    void *writing;
    CHILD_OK(syncedmem_sim_configure("memory=4m"));
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_OK(syncedmem_device_set_current(place));
    CHILD_OK(syncedmem_mutable_gpu_data(buffer, &writing));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        CHILD_STATUS(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
        CHILD_STATUS(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
        syncedmem_release(buffer);
        leave_child(7);
    }
    int state = 0;
    CHILD_CHECK(waitpid(child, &state, 0) == child);
    CHILD_CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 7);
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
    syncedmem_release(buffer);
}

Test(fork_host, a_device_opened_in_the_child)
{
    assert_forked(child_opens_a_device);
    assert_forked(child_opens_and_forks);
    sim_setup();
    const void *pointer;
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, OLD));
}

/* ---- Another thread is inside of a call ---- */

static atomic_bool enough;

static void use_all(int round)
{
    syncedmem_token_t token;
    syncedmem_buffer *another;
    syncedmem_place *place;
    void *pointer;
    uint64_t figure;
    if (syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_READ, 0, SIZE, NULL, &pointer, NULL,
                        &token) == SYNCEDMEM_OK) {
        (void)syncedmem_end(buffer, token);
    }
    if (syncedmem_create(100, &another) == SYNCEDMEM_OK) {
        (void)syncedmem_mutable_cpu_data(another, &pointer);
        (void)syncedmem_fill(another, 0, 100, (uint8_t)round);
        syncedmem_release(another);
    }
    (void)syncedmem_set_log(NULL, NULL, SYNCEDMEM_LOG_OFF);
    (void)syncedmem_device_find("nonsense", &place);
    (void)syncedmem_device_count();
    (void)syncedmem_backend_reason("none");
    (void)syncedmem_stat(NULL, SYNCEDMEM_STAT_LEASES, &figure);
}

static void *use_until_enough(void *argument)
{
    (void)argument;
    for (int round = 0; !atomic_load(&enough); round++) {
        use_all(round);
        atomic_fetch_add(&entered, 1);
    }
    return NULL;
}

/* Works, or is told that it cannot: for this one buffer only. */
static void child_uses_what_was_in_use(void)
{
    syncedmem_token_t token;
    void *pointer;
    const void *reading;
    for (int i = 0; i < 3; i++) {
        const syncedmem_status_t status = syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_READ,
                                                          0, SIZE, NULL, &pointer, NULL, &token);
        CHILD_CHECK(status == SYNCEDMEM_OK || status == SYNCEDMEM_FORKED);
        if (status == SYNCEDMEM_OK) {
            CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
            CHILD_OK(syncedmem_end(buffer, token));
        }
        (void)syncedmem_head(buffer);
        (void)syncedmem_home(buffer);
        (void)stat_of(buffer, SYNCEDMEM_STAT_LEASES);
        use_all(i);
    }
    syncedmem_buffer *another;
    CHILD_OK(syncedmem_create(SIZE, &another));
    CHILD_OK(syncedmem_cpu_data(another, &reading));
    CHILD_CHECK(pattern_is(reading, SIZE, 0));
    syncedmem_release(another);
    syncedmem_release(buffer);
}

Test(fork_host, another_thread_is_inside_of_a_call)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, use_until_enough, NULL), 0);
    }
    while (atomic_load(&entered) < 100) {
        sleep_ms(1);
    }
    for (int i = 0; i < 60 && CAN_FORK_AMONG_ALLOCATIONS; i++) {
        assert_forked(child_uses_what_was_in_use);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}
