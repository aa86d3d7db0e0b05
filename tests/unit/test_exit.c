/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may go on while the process ends: handlers of exit() older and younger than ours, other
 * threads, kernels that never end, and destructors.
 *
 * Small programs as in test_process.c. A fault is printed, and no program may print.
 */
#include <dlfcn.h>

#include "processes.h"

enum { SIZE = 50000, OLD = 1, NEW = 2 };

static syncedmem_buffer *synced;    /* OLD */
static syncedmem_buffer *at_device; /* NEW; OLD on the host, stale */
static syncedmem_stream *stream;
static syncedmem_buffer *pushed;  /* by one program, and never released */
static syncedmem_stream *another; /* likewise */

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #condition,                   \
                   syncedmem_last_error());                                                        \
            fflush(stdout);                                                                        \
        }                                                                                          \
    } while (0)

#define EXPECT_STATUS(call, wanted)                                                                \
    do {                                                                                           \
        const syncedmem_status_t status_ = (call);                                                 \
        if (status_ != (wanted)) {                                                                 \
            printf("%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call,                              \
                   syncedmem_status_name(status_), syncedmem_last_error());                        \
            fflush(stdout);                                                                        \
        }                                                                                          \
    } while (0)

#define EXPECT_OK(call) EXPECT_STATUS(call, SYNCEDMEM_OK)

static syncedmem_place *device(void)
{
    syncedmem_place *place;
    EXPECT_OK(syncedmem_device_find("sim:0", &place));
    return place;
}

static syncedmem_buffer *made(void)
{
    syncedmem_buffer *buffer;
    void *pointer;
    const void *reading;
    EXPECT_OK(syncedmem_create(SIZE, &buffer));
    EXPECT_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, OLD);
    EXPECT_OK(syncedmem_gpu_data(buffer, &reading));
    return buffer;
}

static void make_all(void)
{
    void *pointer;
    EXPECT_OK(syncedmem_device_set_current(device()));
    EXPECT_OK(syncedmem_stream_default(device(), &stream));
    synced = made();
    at_device = made();
    EXPECT_OK(syncedmem_mutable_gpu_data(at_device, &pointer));
    EXPECT(stream_pattern_write(stream, pointer, SIZE, NEW));
    EXPECT_OK(syncedmem_stream_wait(stream));
}

static void kernel_nothing(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

static void kernel_never_ends(void *arguments, void *const *addresses, size_t count)
{
    atomic_bool *started = arguments;
    (void)addresses;
    (void)count;
    if (started != NULL) {
        atomic_store(started, true);
    }
    for (;;) {
        pause();
    }
}

/* ---- Handlers ---- */

static void read_host(void)
{
    const void *pointer;
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(syncedmem_cpu_data(synced, &pointer));
        EXPECT(pointer != NULL && pattern_is(pointer, SIZE, OLD));
    }
}

#define EXPECT_ENDING(call)                                                                        \
    do {                                                                                           \
        EXPECT_STATUS(call, SYNCEDMEM_NO_DEVICE);                                                  \
        EXPECT(is_one_line(syncedmem_last_error()));                                               \
        EXPECT(contains(syncedmem_last_error(), "process is ending"));                             \
    } while (0)

static void try_streams(void)
{
    syncedmem_stream *none;
    void *block;
    uint64_t figure;
    EXPECT_ENDING(syncedmem_stream_wait(stream));
    EXPECT_ENDING(syncedmem_stream_create(device(), &none));
    EXPECT_ENDING(syncedmem_sim_launch(stream, kernel_nothing, NULL, 0, NULL, 0));
    EXPECT_ENDING(syncedmem_sim_alloc(device(), 64, &block));
    EXPECT_ENDING(syncedmem_device_number(device(), SYNCEDMEM_PLACE_MEMORY_FREE, &figure));
}

/* Runs after the library's own handler. */
static void use_late(void)
{
    const void *pointer;
    void *writing;
    syncedmem_token_t token;
    read_host();
    EXPECT_ENDING(syncedmem_gpu_data(synced, &pointer));
    read_host();
    EXPECT_ENDING(syncedmem_gpu_data(synced, &pointer));
    EXPECT_ENDING(syncedmem_mutable_gpu_data(synced, &writing));
    EXPECT_ENDING(syncedmem_gpu_data(at_device, &pointer));
    EXPECT_ENDING(syncedmem_mutable_gpu_data(at_device, &writing));
    EXPECT_ENDING(syncedmem_cpu_data(at_device, &pointer));
    EXPECT_ENDING(
        syncedmem_begin(synced, device(), SYNCEDMEM_READ, 0, SIZE, NULL, &writing, NULL, &token));
    EXPECT_ENDING(syncedmem_prefetch(at_device, syncedmem_host(), 0, SIZE, stream));
    try_streams();
    EXPECT_OK(syncedmem_mutable_cpu_data(synced, &writing));
    EXPECT_ENDING(syncedmem_async_gpu_push(synced, stream));
    EXPECT_ENDING(syncedmem_prefetch(synced, device(), 0, SIZE, NULL));
}

static void release_all(void)
{
    syncedmem_release(synced);
    syncedmem_release(at_device);
    syncedmem_stream_release(stream);
}

/* Runs before it: everything works. */
static void use_early(void)
{
    const void *pointer;
    read_host();
    EXPECT_OK(syncedmem_gpu_data(synced, &pointer));
    EXPECT_OK(syncedmem_stream_wait(stream));
    EXPECT_OK(syncedmem_cpu_data(at_device, &pointer));
    EXPECT(pattern_is(pointer, SIZE, NEW));
}

static int program_late(void)
{
    atexit(release_all);
    atexit(use_late);
    make_all();
    return 3;
}

static int program_early(void)
{
    make_all();
    atexit(use_early);
    return 4;
}

static int program_early_release(void)
{
    make_all();
    atexit(release_all);
    atexit(use_early);
    return 4;
}

/* Both, and a handle that a global holds besides. */
static int program_both(void)
{
    atexit(release_all);
    atexit(use_late);
    make_all();
    syncedmem_retain(synced);
    atexit(read_host);
    return 5;
}

static bool destructor_uses;

__attribute__((destructor)) static void destroy(void)
{
    if (destructor_uses) {
        use_late();
        release_all();
    }
}

static int program_destructor(void)
{
    destructor_uses = true;
    make_all();
    return 6;
}

/* ---- Unfinished work ---- */

/* Not in the adversarial mode, where it could begin in a thread of the program. */
static int program_kernel_never_ends(void)
{
    void *pointer;
    atexit(release_all);
    atexit(read_host);
    make_all();
    pushed = made();
    EXPECT_OK(syncedmem_stream_create(device(), &another));
    EXPECT_OK(syncedmem_mutable_cpu_data(pushed, &pointer));
    EXPECT_OK(syncedmem_sim_launch(another, kernel_never_ends, NULL, 0, NULL, 0));
    EXPECT_OK(syncedmem_async_gpu_push(pushed, another));
    EXPECT_OK(syncedmem_prefetch(at_device, syncedmem_host(), 0, SIZE, another));
    EXPECT_OK(syncedmem_sim_launch(stream, kernel_never_ends, NULL, 0, NULL, 0));
    return 7;
}

static syncedmem_buffer *pulled;

/* What is under way never arrives: the stale bytes of the host are not given out. */
static void read_pulled(void)
{
    const void *pointer;
    EXPECT_ENDING(syncedmem_cpu_data(pulled, &pointer));
    (void)syncedmem_wait(pulled); /* there is nothing left to wait for */
    EXPECT_ENDING(syncedmem_cpu_data(pulled, &pointer));
    syncedmem_release(pulled);
}

static int program_unfinished_pull(void)
{
    atexit(read_pulled);
    make_all();
    pulled = at_device;
    EXPECT_OK(syncedmem_stream_create(device(), &another));
    EXPECT_OK(syncedmem_sim_launch(another, kernel_never_ends, NULL, 0, NULL, 0));
    EXPECT_OK(syncedmem_prefetch(pulled, syncedmem_host(), 0, SIZE, another));
    return 7;
}

static syncedmem_buffer *leased;
static syncedmem_token_t token_of_leased;

static void end_late(void)
{
    EXPECT_OK(syncedmem_end(leased, token_of_leased));
    EXPECT_STATUS(syncedmem_end(leased, token_of_leased), SYNCEDMEM_INVALID_LEASE);
    syncedmem_release(leased);
}

static int program_open_lease(void)
{
    void *pointer;
    atexit(end_late);
    make_all();
    leased = made();
    EXPECT_OK(syncedmem_begin(leased, device(), SYNCEDMEM_READ, 0, SIZE, stream, &pointer, NULL,
                              &token_of_leased));
    return 8;
}

static void say_released(void *user)
{
    (void)user;
    printf("told\n");
    fflush(stdout);
}

/* Nobody releases it, so nobody is told. */
static int program_adopted(void)
{
    void *block;
    make_all();
    EXPECT_OK(syncedmem_sim_alloc(device(), SIZE, &block));
    EXPECT_OK(syncedmem_adopt(synced, device(), block, SIZE, 0, NULL, say_released, NULL));
    return 2;
}

static int program_lost(void)
{
    atexit(release_all);
    make_all();
    EXPECT_OK(syncedmem_sim_lose(device()));
    return 9;
}

/* ---- exit() elsewhere ---- */

static atomic_bool started;

static void *exit_when_started(void *argument)
{
    while (!atomic_load(&started)) {
        sleep_ms(1);
    }
    sleep_ms(5); /* the other thread may be deeper in its call by now, which is not needed */
    exit((int)(intptr_t)argument);
}

/* The main thread is in a call that never returns; the kernel says that it has begun. */
static int program_exit_while_main_waits(void)
{
    pthread_t thread;
    atomic_bool *pointer_to_started = &started;
    const void *pointer;
    atexit(read_host);
    make_all();
    EXPECT_OK(syncedmem_sim_launch(stream, kernel_never_ends, pointer_to_started, 0, NULL, 0));
    EXPECT(pthread_create(&thread, NULL, exit_when_started, (void *)(intptr_t)11) == 0);
    EXPECT_OK(syncedmem_cpu_data(at_device, &pointer));
    return 98;
}

/* As before, and the handler wants the very buffer. */
static void use_waited_for(void)
{
    const void *pointer;
    const syncedmem_status_t status = syncedmem_cpu_data(at_device, &pointer);
    EXPECT(status != SYNCEDMEM_OK);
}

static int program_exit_wants_the_buffer(void)
{
    atexit(use_waited_for);
    return program_exit_while_main_waits();
}

static void kernel_exits(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
    exit(12);
}

static int program_exit_in_a_kernel(void)
{
    atexit(read_host);
    make_all();
    EXPECT_OK(syncedmem_sim_launch(stream, kernel_exits, NULL, 0, NULL, 0));
    (void)syncedmem_stream_wait(stream);
    pause(); /* the exit is another thread's */
    return 98;
}

/* ---- Threads that end later than exit() began ---- */

static pthread_t late_thread;
static atomic_bool may_end;

static void *end_late_thread(void *argument)
{
    syncedmem_place *place;
    (void)argument;
    (void)syncedmem_device_find("nonsense", &place); /* a line of this thread's own */
    atomic_store(&started, true);
    while (!atomic_load(&may_end)) {
        sleep_ms(1);
    }
    (void)syncedmem_device_find("nonsense", &place);
    return NULL;
}

static void join_late(void)
{
    atomic_store(&may_end, true);
    pthread_join(late_thread, NULL);
}

static void start_late(void)
{
    EXPECT(pthread_create(&late_thread, NULL, end_late_thread, NULL) == 0);
    while (!atomic_load(&started)) {
        sleep_ms(1);
    }
}

static int program_thread_ends_late(void)
{
    atexit(join_late);
    make_all();
    start_late();
    return 13;
}

static int program_thread_starts_late(void)
{
    atexit(join_late);
    atexit(start_late);
    make_all();
    return 14;
}

/* ---- A child that ends by exit() ---- */

static int end_of_child(pid_t child)
{
    int state = 0;
    EXPECT(child > 0 && waitpid(child, &state, 0) == child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static int program_child(void)
{
    atexit(release_all);
    atexit(read_host);
    make_all();
    EXPECT_OK(syncedmem_sim_launch(stream, kernel_nothing, NULL, 0, NULL, 0));
    const pid_t child = fork();
    if (child == 0) {
        exit(15);
    }
    EXPECT(end_of_child(child) == 15);
    use_early();
    return 16;
}

static int program_child_of_unfinished(void)
{
    atexit(release_all);
    atexit(read_host);
    make_all();
    EXPECT_OK(syncedmem_sim_launch(stream, kernel_never_ends, NULL, 0, NULL, 0));
    const pid_t child = fork();
    if (child == 0) {
        exit(15);
    }
    return end_of_child(child);
}

/* ---- The shared library, loaded and unloaded ---- */

struct loaded {
    void *handle;
    syncedmem_status_t (*device_find)(const char *, syncedmem_place **);
    syncedmem_status_t (*set_current)(syncedmem_place *);
    syncedmem_status_t (*create)(size_t, syncedmem_buffer **);
    syncedmem_status_t (*mutable_cpu_data)(syncedmem_buffer *, void **);
    syncedmem_status_t (*gpu_data)(syncedmem_buffer *, const void **);
    void (*release)(syncedmem_buffer *);
};

/* Beside the folder of this program. */
static bool shared_library_path(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length < 0 ? 0 : length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    }
    const size_t folder = strlen(path);
    snprintf(path + folder, size - folder, "/lib/libsyncedmem.so.1");
    return access(path, R_OK) == 0;
}

static bool find_symbol(const struct loaded *loaded, const char *name, void *out_function)
{
    void *symbol = dlsym(loaded->handle, name);
    memcpy(out_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load(struct loaded *loaded)
{
    char path[4096];
    if (!shared_library_path(path, sizeof path)) {
        return false;
    }
    loaded->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return loaded->handle != NULL &&
           find_symbol(loaded, "syncedmem_device_find", &loaded->device_find) &&
           find_symbol(loaded, "syncedmem_device_set_current", &loaded->set_current) &&
           find_symbol(loaded, "syncedmem_create", &loaded->create) &&
           find_symbol(loaded, "syncedmem_mutable_cpu_data", &loaded->mutable_cpu_data) &&
           find_symbol(loaded, "syncedmem_gpu_data", &loaded->gpu_data) &&
           find_symbol(loaded, "syncedmem_release", &loaded->release);
}

static void use_loaded(const struct loaded *loaded, bool releases)
{
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    void *writing;
    const void *reading;
    EXPECT(loaded->device_find("sim:0", &place) == SYNCEDMEM_OK);
    EXPECT(loaded->set_current(place) == SYNCEDMEM_OK);
    EXPECT(loaded->create(SIZE, &buffer) == SYNCEDMEM_OK);
    EXPECT(loaded->mutable_cpu_data(buffer, &writing) == SYNCEDMEM_OK);
    EXPECT(loaded->gpu_data(buffer, &reading) == SYNCEDMEM_OK);
    if (releases) {
        loaded->release(buffer);
    }
}

static struct loaded loaded_late;

static void *use_loaded_and_end_late(void *argument)
{
    syncedmem_place *place;
    (void)argument;
    (void)loaded_late.device_find("nonsense", &place);
    atomic_store(&started, true);
    while (!atomic_load(&may_end)) {
        sleep_ms(1);
    }
    return NULL;
}

static int program_unloaded(void)
{
    atexit(join_late);
    EXPECT(load(&loaded_late));
    use_loaded(&loaded_late, true);
    use_loaded(&loaded_late, false);
    EXPECT(pthread_create(&late_thread, NULL, use_loaded_and_end_late, NULL) == 0);
    while (!atomic_load(&started)) {
        sleep_ms(1);
    }
    EXPECT(dlclose(loaded_late.handle) == 0);
    EXPECT(load(&loaded_late));
    use_loaded(&loaded_late, false);
    EXPECT(dlclose(loaded_late.handle) == 0);
    return 17;
}

/* The threads of the device work while the library is unloaded. */
static int program_unloaded_at_once(void)
{
    EXPECT(load(&loaded_late));
    use_loaded(&loaded_late, false);
    EXPECT(dlclose(loaded_late.handle) == 0);
    return 18;
}

/* ---- The table ---- */

static const struct program programs[] = {
    {"late", program_late},
    {"early", program_early},
    {"early_release", program_early_release},
    {"both", program_both},
    {"destructor", program_destructor},
    {"kernel_never_ends", program_kernel_never_ends},
    {"unfinished_pull", program_unfinished_pull},
    {"open_lease", program_open_lease},
    {"adopted", program_adopted},
    {"lost", program_lost},
    {"exit_while_main_waits", program_exit_while_main_waits},
    {"exit_wants_the_buffer", program_exit_wants_the_buffer},
    {"exit_in_a_kernel", program_exit_in_a_kernel},
    {"thread_ends_late", program_thread_ends_late},
    {"thread_starts_late", program_thread_starts_late},
    {"child", program_child},
    {"child_of_unfinished", program_child_of_unfinished},
    {"unloaded", program_unloaded},
    {"unloaded_at_once", program_unloaded_at_once},
};

__attribute__((constructor)) static void run_program(void)
{
    run_named_program(programs, sizeof programs / sizeof programs[0]);
}

TestSuite(exit, .timeout = 240);

Test(exit, a_handler_older_than_the_first_use)
{
    assert_program_often("late", 3);
}

Test(exit, a_handler_younger_than_the_first_use)
{
    assert_program_often("early", 4);
    assert_program_often("early_release", 4);
}

Test(exit, handlers_of_both_kinds)
{
    assert_program_often("both", 5);
}

Test(exit, a_destructor)
{
    assert_program_often("destructor", 6);
}

Test(exit, a_kernel_that_never_ends)
{
    assert_program("kernel_never_ends", 7);
}

Test(exit, a_pull_that_never_arrives)
{
    assert_program("unfinished_pull", 7);
}

Test(exit, an_open_lease)
{
    assert_program_often("open_lease", 8);
}

Test(exit, adopted_memory)
{
    assert_program("adopted", 2);
}

Test(exit, a_lost_device)
{
    assert_program_often("lost", 9);
}

Test(exit, in_a_thread_while_another_waits)
{
    assert_program("exit_while_main_waits", 11);
}

Test(exit, handler_wants_what_is_waited_for)
{
    assert_program("exit_wants_the_buffer", 11);
}

Test(exit, in_a_kernel)
{
    assert_program_often("exit_in_a_kernel", 12);
}

Test(exit, a_thread_that_ends_later)
{
    assert_program_often("thread_ends_late", 13);
    assert_program_often("thread_starts_late", 14);
}

Test(exit, of_a_forked_child)
{
    assert_program_often("child", 16);
    assert_program("child_of_unfinished", 15);
}

Test(exit, after_unloading)
{
    char path[4096];
    cr_assert(shared_library_path(path, sizeof path), "%s is not there", path);
    assert_program_often("unloaded", 17);
    assert_program_often("unloaded_at_once", 18);
}
