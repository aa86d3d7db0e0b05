/* SPDX-License-Identifier: BSD-2-Clause */
/* The last error of each thread, and errno, over calls that succeed and calls that fail. */
#include <errno.h>
#include <stdlib.h>

#include "support.h"

TestSuite(last_error, .init = sim_setup, .timeout = 60);

/* ---- The line ---- */

struct watcher {
    int faults;
    const char *name; /* of a place that is none */
    pthread_barrier_t *barrier;
};

static void *fail_and_look(void *argument)
{
    struct watcher *watcher = argument;
    syncedmem_place *place;
    watcher->faults += strcmp(syncedmem_last_error(), "") != 0;
    pthread_barrier_wait(watcher->barrier);
    for (int i = 0; i < 200; i++) {
        watcher->faults += syncedmem_device_find(watcher->name, &place) != SYNCEDMEM_NOT_FOUND;
        watcher->faults += strstr(syncedmem_last_error(), watcher->name) == NULL;
        watcher->faults += !is_one_line(syncedmem_last_error());
    }
    pthread_barrier_wait(watcher->barrier);
    watcher->faults += strstr(syncedmem_last_error(), watcher->name) == NULL;
    return NULL;
}

Test(last_error, each_thread_has_its_own)
{
    enum { THREADS = 6 };
    static const char *const names[THREADS] = {"one_", "two_", "three_", "four_", "five_", "six_"};
    struct watcher watchers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    syncedmem_place *place;
    assert_status(syncedmem_device_find("mine_", &place), SYNCEDMEM_NOT_FOUND);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        watchers[i] = (struct watcher){0, names[i], &barrier};
        cr_assert_eq(pthread_create(&threads[i], NULL, fail_and_look, &watchers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(watchers[i].faults, 0, "thread %d: %d", i, watchers[i].faults);
    }
    pthread_barrier_destroy(&barrier);
    cr_assert_not_null(strstr(syncedmem_last_error(), "mine_"));
}

Test(last_error, success_leaves_it_alone)
{
    char kept[500];
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    const void *pointer;
    uint64_t number;
    assert_status(syncedmem_device_find("no_such_place", &place), SYNCEDMEM_NOT_FOUND);
    const char *line = syncedmem_last_error();
    cr_assert(is_one_line(line));
    snprintf(kept, sizeof kept, "%s", line);
    assert_ok(syncedmem_device_find("host", &place));
    assert_ok(syncedmem_create(1000, &buffer));
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    assert_ok(syncedmem_stat(buffer, SYNCEDMEM_STAT_TRANSFERS, &number));
    assert_ok(syncedmem_wait(buffer));
    syncedmem_release(buffer);
    (void)syncedmem_device_count();
    (void)syncedmem_stat_name(1000);
    (void)syncedmem_backend_reason("sim");
    (void)syncedmem_backend_reason("none");
    (void)syncedmem_backend_reason("nonsense");
    cr_assert_str_eq(syncedmem_last_error(), kept);
}

/* Names of any length and with any bytes make one line. */
Test(last_error, odd_names)
{
    char name[5000];
    syncedmem_place *place;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_status(syncedmem_device_find(name, &place), SYNCEDMEM_NOT_FOUND);
    cr_assert(is_one_line(syncedmem_last_error()));
    assert_status(syncedmem_device_find("two\nlines%s%n", &place), SYNCEDMEM_NOT_FOUND);
    cr_assert(is_one_line(syncedmem_last_error()));
    assert_status(syncedmem_device_find("", &place), SYNCEDMEM_NOT_FOUND);
    cr_assert(is_one_line(syncedmem_last_error()));
    cr_assert(strpbrk(syncedmem_backend_reason("two\nlines"), "\r\n") == NULL);
}

/* ---- errno ---- */

enum { SENTINEL = 4711 };

#define keeps(expression)                                                                          \
    do {                                                                                           \
        errno = SENTINEL;                                                                          \
        (void)(expression);                                                                        \
        cr_assert_eq(errno, SENTINEL, "%s changed errno to %d", #expression, errno);               \
    } while (0)

static void kernel(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

static void keep_plain_calls(syncedmem_buffer *buffer, void *block, syncedmem_stream *stream)
{
    static unsigned char bytes[5000];
    const void *reading;
    void *writing;
    keeps(syncedmem_cpu_data(buffer, &reading));
    keeps(syncedmem_gpu_data(buffer, &reading));
    keeps(syncedmem_mutable_gpu_data(buffer, &writing));
    keeps(syncedmem_mutable_cpu_data(buffer, &writing));
    keeps(syncedmem_async_gpu_push(buffer, stream));
    keeps(syncedmem_wait(buffer));
    keeps(syncedmem_set_cpu_data(buffer, bytes, sizeof bytes));
    keeps(syncedmem_set_gpu_data(buffer, block, sizeof bytes));
    keeps(syncedmem_head(buffer));
    keeps(syncedmem_size(buffer));
    keeps(syncedmem_retain(buffer));
    keeps(syncedmem_release(buffer));
}

static void keep_places(void)
{
    syncedmem_place *place;
    const char *text;
    uint64_t number;
    keeps(syncedmem_device_count());
    keeps(syncedmem_device_find("sim:1", &place));
    keeps(syncedmem_device_find("sim:7", &place));
    keeps(syncedmem_device_find("nonsense", &place));
    keeps(syncedmem_device_at(0, &place));
    keeps(syncedmem_device_at(1000, &place));
    keeps(syncedmem_device_text(sim(0), SYNCEDMEM_PLACE_DESCRIPTION, &text));
    for (syncedmem_key_t key = SYNCEDMEM_PLACE_MEMORY_TOTAL; key <= SYNCEDMEM_PLACE_UNIFIED;
         key++) {
        keeps(syncedmem_device_number(sim(0), key, &number));
        keeps(syncedmem_device_number(syncedmem_host(), key, &number));
    }
    keeps(syncedmem_device_current(&place));
    keeps(syncedmem_device_set_current(NULL));
    keeps(syncedmem_device_current(&place));
    keeps(syncedmem_device_set_current(sim(0)));
    keeps(syncedmem_backend_reason("sim"));
    keeps(syncedmem_backend_reason("none"));
    keeps(syncedmem_sim_configure("bogus"));
    keeps(syncedmem_sim_configure("devices=1"));
    keeps(syncedmem_last_error());
}

Test(last_error, errno_is_kept)
{
    syncedmem_buffer *buffer, *large;
    syncedmem_stream *stream;
    void *block, *pointer;
    keep_places();
    keeps(syncedmem_create(5000, &buffer));
    keeps(syncedmem_create(SIZE_MAX, &large));
    keeps(syncedmem_create((size_t)PTRDIFF_MAX - 100000, &large));
    keeps(syncedmem_mutable_cpu_data(large, &pointer));
    keeps(syncedmem_mutable_gpu_data(large, &pointer));
    keeps(syncedmem_release(large));
    keeps(syncedmem_stream_create(sim(0), &stream));
    keeps(syncedmem_sim_alloc(sim(0), 5000, &block));
    keeps(syncedmem_sim_alloc(sim(0), (size_t)PTRDIFF_MAX, &pointer));
    keeps(syncedmem_sim_launch(stream, kernel, NULL, 0, NULL, 0));
    keeps(syncedmem_stream_wait(stream));
    keep_plain_calls(buffer, block, stream);
    keeps(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    keeps(syncedmem_set_home(buffer, sim(1)));
    keeps(syncedmem_release(buffer));
    keeps(syncedmem_stream_release(stream));
    keeps(syncedmem_sim_free(sim(0), block));
    keeps(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY, 1));
    keeps(syncedmem_create(100, &buffer));
    keeps(syncedmem_mutable_gpu_data(buffer, &pointer));
    keeps(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY, 0));
    keeps(syncedmem_release(buffer));
}
