/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a process with handles that live: exit status kept, and not a word.
 *
 * Each test starts this program again with the name of a small program in the environment,
 * which runs before main() would, and looks at its status and at what it printed.
 */
#include <errno.h>

#include "processes.h"

/* ---- The small programs. Each ends by exit() or by returning its status. ---- */

enum { SIZE = 50000 };

static syncedmem_buffer *global_buffer;
static syncedmem_stream *global_stream;

static void must(syncedmem_status_t status)
{
    if (status != SYNCEDMEM_OK) {
        fprintf(stderr, "%s: %s\n", syncedmem_status_name(status), syncedmem_last_error());
        _exit(99);
    }
}

/* Both sides touched. */
static syncedmem_buffer *touched(void)
{
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    void *pointer;
    const void *reading;
    must(syncedmem_device_find("sim:0", &place));
    must(syncedmem_device_set_current(place));
    must(syncedmem_create(SIZE, &buffer));
    must(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, 1);
    must(syncedmem_gpu_data(buffer, &reading));
    return buffer;
}

static int program_nothing(void)
{
    return 0;
}

static int program_global(void)
{
    global_buffer = touched();
    return 0;
}

static int program_status_is_kept(void)
{
    global_buffer = touched();
    return 7;
}

static void release_at_exit(void)
{
    syncedmem_release(global_buffer);
    syncedmem_stream_release(global_stream);
}

static void use_at_exit(void)
{
    const void *pointer;
    uint64_t figure;
    (void)syncedmem_cpu_data(global_buffer, &pointer);
    (void)syncedmem_stat(global_buffer, SYNCEDMEM_STAT_TRANSFERS, &figure);
    (void)syncedmem_head(global_buffer);
    (void)syncedmem_last_error();
    release_at_exit();
}

/* The handler is older than the library's first use, and so runs last. */
static int program_atexit_before(void)
{
    atexit(release_at_exit);
    global_buffer = touched();
    return 0;
}

static int program_atexit_after(void)
{
    global_buffer = touched();
    atexit(release_at_exit);
    return 0;
}

static int program_atexit_uses(void)
{
    atexit(use_at_exit);
    global_buffer = touched();
    return 0;
}

static int program_pinned(void)
{
    must(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    atexit(release_at_exit);
    global_buffer = touched();
    return 0;
}

static void kernel_slow(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
    sleep_ms(50);
}

/* Kernels and a push are still on a stream. */
static int program_unfinished(void)
{
    void *pointer;
    global_buffer = touched();
    must(syncedmem_stream_create(sim(0), &global_stream));
    must(syncedmem_mutable_cpu_data(global_buffer, &pointer));
    must(syncedmem_sim_launch(global_stream, kernel_slow, NULL, 0, NULL, 0));
    must(syncedmem_async_gpu_push(global_buffer, global_stream));
    must(syncedmem_sim_launch(global_stream, kernel_slow, NULL, 0, NULL, 0));
    return 0;
}

static int program_unfinished_atexit(void)
{
    atexit(release_at_exit);
    return program_unfinished();
}

static void *exit_from_here(void *argument)
{
    (void)argument;
    exit(5);
}

static int program_exit_in_a_thread(void)
{
    pthread_t thread;
    global_buffer = touched();
    if (pthread_create(&thread, NULL, exit_from_here, NULL) == 0) {
        pthread_join(thread, NULL);
    }
    return 98;
}

/* Another thread goes on with its work while the process ends. */
static void *use_for_ever(void *argument)
{
    syncedmem_buffer *buffer = argument;
    for (;;) {
        void *pointer;
        (void)syncedmem_mutable_gpu_data(buffer, &pointer);
        (void)syncedmem_mutable_cpu_data(buffer, &pointer);
    }
    return NULL;
}

static int program_busy_thread(void)
{
    pthread_t thread;
    global_buffer = touched();
    if (pthread_create(&thread, NULL, use_for_ever, global_buffer) != 0) {
        return 98;
    }
    sleep_ms(20);
    return 3;
}

/* A failure's line is per thread, and goes with the thread. */
static void *fail_once(void *argument)
{
    syncedmem_place *place;
    (void)argument;
    (void)syncedmem_device_find("nonsense", &place);
    return NULL;
}

static int program_threads_with_errors(void)
{
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fail_once, NULL) != 0) {
            return 98;
        }
        pthread_join(thread, NULL);
    }
    fail_once(NULL);
    return 0;
}

static int program_errno_of_the_first_call(void)
{
    syncedmem_place *place;
    unsetenv("SYNCEDMEM_SIM");
    errno = 4711;
    const bool empty = strcmp(syncedmem_last_error(), "") == 0;
    const bool none = syncedmem_device_count() == 0;
    setenv("SYNCEDMEM_SIM", "memory=4m", 1);
    must(syncedmem_device_find("sim:0", &place));
    return empty && none && errno == 4711 ? 0 : 1;
}

/* Malformed environment: not a word either. */
static int program_malformed_environment(void)
{
    setenv("SYNCEDMEM_SIM", "devices=nonsense,,=", 1);
    setenv("SYNCEDMEM_DEVICE", "::", 1);
    syncedmem_place *place;
    (void)syncedmem_device_count();
    (void)syncedmem_device_current(&place);
    global_buffer = touched();
    return 0;
}

static const struct program programs[] = {
    {"nothing", program_nothing},
    {"global", program_global},
    {"status_is_kept", program_status_is_kept},
    {"atexit_before", program_atexit_before},
    {"atexit_after", program_atexit_after},
    {"atexit_uses", program_atexit_uses},
    {"pinned", program_pinned},
    {"unfinished", program_unfinished},
    {"unfinished_atexit", program_unfinished_atexit},
    {"exit_in_a_thread", program_exit_in_a_thread},
    {"busy_thread", program_busy_thread},
    {"threads_with_errors", program_threads_with_errors},
    {"errno_of_the_first_call", program_errno_of_the_first_call},
    {"malformed_environment", program_malformed_environment},
};

__attribute__((constructor)) static void run_program(void)
{
    run_named_program(programs, sizeof programs / sizeof programs[0]);
}

/* ---- The tests ---- */

TestSuite(process, .timeout = 60);

Test(process, nothing)
{
    assert_program("nothing", 0);
}

Test(process, a_global_handle)
{
    assert_program_often("global", 0);
}

Test(process, status_is_kept)
{
    assert_program("status_is_kept", 7);
}

Test(process, released_at_exit)
{
    assert_program_often("atexit_before", 0);
    assert_program_often("atexit_after", 0);
}

Test(process, used_at_exit)
{
    assert_program_often("atexit_uses", 0);
}

Test(process, pinned)
{
    assert_program("pinned", 0);
}

Test(process, unfinished_work)
{
    assert_program_often("unfinished", 0);
    assert_program_often("unfinished_atexit", 0);
}

Test(process, exit_in_a_thread)
{
    assert_program_often("exit_in_a_thread", 5);
}

Test(process, a_thread_works_on)
{
    assert_program_often("busy_thread", 3);
}

Test(process, threads_with_errors)
{
    assert_program("threads_with_errors", 0);
}

Test(process, errno_of_the_first_call)
{
    assert_program("errno_of_the_first_call", 0);
}

Test(process, malformed_environment)
{
    assert_program("malformed_environment", 0);
}
