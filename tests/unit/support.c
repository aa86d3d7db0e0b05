/* SPDX-License-Identifier: BSD-2-Clause */
/* Linked into every unit test: see support.h. */
#include "support.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

/* What the caller's environment says must not decide what is tested. */
__attribute__((constructor)) static void clean_environment(void)
{
    unsetenv("SYNCEDMEM_SIM");
    unsetenv("SYNCEDMEM_DEVICE");
    unsetenv("SYNCEDMEM_LOG");
}

bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

bool is_one_line(const char *text)
{
    return text != NULL && text[0] != '\0' && strpbrk(text, "\r\n") == NULL;
}

/* ---- Patterns ---- */

unsigned char pattern_at(unsigned seed, size_t index)
{
    if (seed == 0) {
        return 0;
    }
    return (unsigned char)(seed * 89 + index * 31 + (index >> 8) * 7 + (index >> 16));
}

void pattern_write(void *bytes, size_t size, unsigned seed)
{
    unsigned char *to = bytes;
    for (size_t i = 0; i < size; i++) {
        to[i] = pattern_at(seed, i);
    }
}

bool pattern_is(const void *bytes, size_t size, unsigned seed)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < size; i++) {
        if (from[i] != pattern_at(seed, i)) {
            return false;
        }
    }
    return true;
}

/* ---- Simulated devices ---- */

static _Atomic(syncedmem_place *) sim_places[8];

void sim_setup(void)
{
    sim_setup_with("devices=2,memory=64m");
}

void sim_setup_with(const char *specification)
{
    static bool configured;
    if (!configured) {
        assert_ok(syncedmem_sim_configure(specification));
        configured = true;
    }
    assert_ok(syncedmem_device_set_current(sim(0)));
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PAGEABLE));
}

syncedmem_place *sim(unsigned device)
{
    syncedmem_place *place = atomic_load(&sim_places[device]);
    if (place == NULL) {
        char name[16];
        snprintf(name, sizeof name, "sim:%u", device);
        syncedmem_device_find(name, &place);
        atomic_store(&sim_places[device], place);
    }
    return place;
}

struct job {
    void *host;
    size_t size;
    unsigned seed;
    bool *answer;
};

static void kernel_pattern_write(void *arguments, void *const *addresses, size_t count)
{
    const struct job *job = arguments;
    (void)count;
    pattern_write(addresses[0], job->size, job->seed);
}

static void kernel_pattern_is(void *arguments, void *const *addresses, size_t count)
{
    const struct job *job = arguments;
    (void)count;
    *job->answer = pattern_is(addresses[0], job->size, job->seed);
}

static void kernel_write(void *arguments, void *const *addresses, size_t count)
{
    const struct job *job = arguments;
    (void)count;
    memcpy(addresses[0], job->host, job->size);
}

static void kernel_read(void *arguments, void *const *addresses, size_t count)
{
    const struct job *job = arguments;
    (void)count;
    memcpy(job->host, addresses[0], job->size);
}

static bool put(syncedmem_stream *stream, syncedmem_sim_kernel_fn kernel, const void *address,
                const struct job *job)
{
    return syncedmem_sim_launch(stream, kernel, job, sizeof *job, &address, 1) == SYNCEDMEM_OK;
}

static void run_on(unsigned device, syncedmem_sim_kernel_fn kernel, const void *address,
                   const struct job *job)
{
    if (job->size == 0) {
        return;
    }
    syncedmem_stream *stream;
    assert_ok(syncedmem_stream_default(sim(device), &stream));
    cr_assert(put(stream, kernel, address, job), "launch: %s", syncedmem_last_error());
    assert_ok(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
}

void device_pattern_write(unsigned device, const void *address, size_t size, unsigned seed)
{
    run_on(device, kernel_pattern_write, address, &(struct job){.size = size, .seed = seed});
}

bool device_pattern_is(unsigned device, const void *address, size_t size, unsigned seed)
{
    bool answer = size == 0;
    run_on(device, kernel_pattern_is, address,
           &(struct job){.size = size, .seed = seed, .answer = &answer});
    return answer;
}

void device_write(unsigned device, const void *address, const void *bytes, size_t size)
{
    run_on(device, kernel_write, address,
           &(struct job){.host = (void *)(uintptr_t)bytes, .size = size});
}

void device_read(unsigned device, const void *address, void *bytes, size_t size)
{
    run_on(device, kernel_read, address, &(struct job){.host = bytes, .size = size});
}

bool stream_pattern_write(syncedmem_stream *stream, const void *address, size_t size, unsigned seed)
{
    return put(stream, kernel_pattern_write, address, &(struct job){.size = size, .seed = seed});
}

bool stream_read(syncedmem_stream *stream, const void *address, void *bytes, size_t size)
{
    return put(stream, kernel_read, address, &(struct job){.host = bytes, .size = size});
}

static void kernel_nothing(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

bool device_knows(unsigned device, const void *address)
{
    syncedmem_stream *stream;
    if (address == NULL || syncedmem_stream_default(sim(device), &stream) != SYNCEDMEM_OK) {
        return false;
    }
    const syncedmem_status_t status =
        syncedmem_sim_launch(stream, kernel_nothing, NULL, 0, &address, 1);
    syncedmem_stream_wait(stream);
    syncedmem_stream_release(stream);
    return status == SYNCEDMEM_OK;
}

/* After the default stream's work, for blocks that it uses are given back later. */
uint64_t device_memory_free(unsigned device)
{
    syncedmem_stream *stream;
    cr_assert_eq(syncedmem_stream_default(sim(device), &stream), SYNCEDMEM_OK);
    syncedmem_stream_wait(stream);
    syncedmem_stream_release(stream);
    uint64_t figure = 0;
    syncedmem_device_number(sim(device), SYNCEDMEM_PLACE_MEMORY_FREE, &figure);
    return figure;
}

bool device_memory_gets_free(unsigned device, uint64_t bytes)
{
    const uint64_t begin = now_ms();
    while (device_memory_free(device) != bytes && now_ms() - begin < 20000) {
        sleep_ms(1);
    }
    return device_memory_free(device) == bytes;
}

/* ---- Figures ---- */

uint64_t stat_of(const syncedmem_buffer *buffer, syncedmem_key_t key)
{
    uint64_t figure = UINT64_MAX;
    syncedmem_stat(buffer, key, &figure);
    return figure;
}

struct figures figures_of(const syncedmem_buffer *buffer)
{
    struct figures figures = {.head = syncedmem_head(buffer)};
    for (syncedmem_key_t key = 1; key < STATS; key++) {
        figures.stat[key] = stat_of(buffer, key);
    }
    return figures;
}

bool figures_equal(const struct figures *one, const struct figures *other)
{
    bool equal = one->head == other->head;
    for (syncedmem_key_t key = 1; key < STATS; key++) {
        equal = equal && (key == SYNCEDMEM_STAT_WAITS || one->stat[key] == other->stat[key]);
    }
    return equal;
}

bool home_is_open(syncedmem_buffer *buffer)
{
    return syncedmem_set_home(buffer, sim(1)) == SYNCEDMEM_OK &&
           syncedmem_set_home(buffer, sim(0)) == SYNCEDMEM_OK;
}

bool home_is_fixed_at(syncedmem_buffer *buffer, unsigned device)
{
    return syncedmem_set_home(buffer, sim(1 - device)) == SYNCEDMEM_WRONG_STATE &&
           syncedmem_set_home(buffer, sim(device)) == SYNCEDMEM_OK;
}

/* ---- Gates ---- */

void sleep_ms(unsigned milliseconds)
{
    const struct timespec time = {.tv_sec = (time_t)(milliseconds / 1000),
                                  .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    nanosleep(&time, NULL);
}

uint64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void kernel_gate(void *arguments, void *const *addresses, size_t count)
{
    atomic_bool *open = arguments;
    (void)addresses;
    (void)count;
    while (!atomic_load(open)) {
        sleep_ms(1);
    }
}

void gate_put(struct gate *gate, syncedmem_stream *stream)
{
    static atomic_bool opens[65536]; /* a kernel may look once more when the test has gone on */
    static atomic_size_t used;
    const size_t index = atomic_fetch_add(&used, 1);
    cr_assert_lt(index, sizeof opens / sizeof opens[0]);
    gate->open = &opens[index];
    assert_ok(syncedmem_sim_launch(stream, kernel_gate, gate->open, 0, NULL, 0));
}

void gate_open(struct gate *gate)
{
    atomic_store(gate->open, true);
}

bool gate_is_open(struct gate *gate)
{
    return atomic_load(gate->open);
}

struct opening {
    struct gate *gate;
    unsigned milliseconds;
};

static void *open_later(void *argument)
{
    struct opening *opening = argument;
    for (unsigned i = 0; i < opening->milliseconds && !gate_is_open(opening->gate); i++) {
        sleep_ms(1);
    }
    gate_open(opening->gate);
    free(opening);
    return NULL;
}

void gate_open_later(struct gate *gate, unsigned milliseconds)
{
    struct opening *opening = malloc(sizeof *opening);
    cr_assert_not_null(opening);
    *opening = (struct opening){gate, milliseconds};
    cr_assert_eq(pthread_create(&gate->opener, NULL, open_later, opening), 0);
}

void gate_join(struct gate *gate)
{
    gate_open(gate);
    pthread_join(gate->opener, NULL);
}

/* ---- Children ---- */

/* Figures of coverage are written at the end of a process, which children leave out. */
void __gcov_exit(void) __attribute__((weak));

_Noreturn void leave_child(int status)
{
    if (__gcov_exit) {
        __gcov_exit();
    }
    _exit(status);
}

int run_in_child(void (*body)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        body();
        leave_child(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
