/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call fails at its n-th allocation or copy, for every n: a status and a line, nothing
 * changed, nothing leaked, and the same call works afterwards.
 */
/* link: wrap-alloc */
#include <stdlib.h>

#include "failing.h"
#include "support.h"
#include "table.h"

TestSuite(failures, .init = sim_setup, .timeout = 120);

enum { SIZE = 5000, ROUNDS_MOST = 200 };

/* ---- The plain calls ---- */

/* Memory of the process's own before, to compare with after. */
struct held {
    uint64_t host, device, free;
};

static struct held held_now(void)
{
    return (struct held){stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES),
                         stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES), device_memory_free(0)};
}

static void check_nothing_leaked(const struct held *before, const char *what)
{
    const struct held now = held_now();
    cr_assert_eq(now.host, before->host, "%s: host bytes", what);
    cr_assert_eq(now.device, before->device, "%s: device bytes", what);
    cr_assert_eq(now.free, before->free, "%s: free device memory", what);
}

struct trial {
    struct subject subject;
    void *host, *device; /* of the newest copies, NULL where stale */
    char what[96];
};

static void trial_make(struct trial *trial, enum call call, syncedmem_head_t state, bool warm,
                       enum failing failing, unsigned n)
{
    const void *pointer;
    snprintf(trial->what, sizeof trial->what, "%s in state %d, %s, %s %u", call_name[call],
             (int)state, warm ? "warm" : "cold", failings[failing].name, n);
    subject_make(&trial->subject, SIZE, state, warm);
    trial->host = trial->device = NULL;
    if (state == SYNCEDMEM_HEAD_AT_CPU || state == SYNCEDMEM_SYNCED) {
        assert_ok(syncedmem_cpu_data(trial->subject.buffer, &pointer));
        trial->host = (void *)(uintptr_t)pointer;
    }
    if (state == SYNCEDMEM_HEAD_AT_GPU || state == SYNCEDMEM_SYNCED) {
        assert_ok(syncedmem_gpu_data(trial->subject.buffer, &pointer));
        trial->device = (void *)(uintptr_t)pointer;
    }
}

/* Looks at the bytes through the pointers had before, and asks for those again. */
static void check_newest_unchanged(struct trial *trial)
{
    const void *pointer;
    cr_assert_eq(syncedmem_head(trial->subject.buffer), trial->subject.state, "%s: head",
                 trial->what);
    if (trial->host != NULL) {
        cr_assert(pattern_is(trial->host, SIZE, 1), "%s: host bytes", trial->what);
        assert_ok(syncedmem_cpu_data(trial->subject.buffer, &pointer));
        cr_assert_eq(pointer, trial->host, "%s: host pointer", trial->what);
    }
    if (trial->device != NULL) {
        cr_assert(device_pattern_is(0, trial->device, SIZE, 1), "%s: device bytes", trial->what);
        assert_ok(syncedmem_gpu_data(trial->subject.buffer, &pointer));
        cr_assert_eq(pointer, trial->device, "%s: device pointer", trial->what);
    }
    cr_assert_eq(syncedmem_head(trial->subject.buffer), trial->subject.state, "%s: head",
                 trial->what);
}

static bool gives_a_pointer(enum call call)
{
    return call <= MUTABLE_GPU_DATA;
}

static void check_failed(struct trial *trial, enum call call, enum failing failing,
                         syncedmem_status_t status, bool cold_home)
{
    cr_assert_eq(status, failings[failing].status, "%s: %s (%s)", trial->what,
                 syncedmem_status_name(status), syncedmem_last_error());
    cr_assert(is_one_line(syncedmem_last_error()), "%s: last error", trial->what);
    if (gives_a_pointer(call)) {
        cr_assert_null(trial->subject.pointer, "%s: out parameter", trial->what);
    }
    check_newest_unchanged(trial);
    if (cold_home) {
        cr_assert(home_is_open(trial->subject.buffer), "%s: home", trial->what);
    }
}

/* A push that fails late has succeeded before; its failure comes with the wait. */
static syncedmem_status_t call_and_wait(struct subject *subject, enum call call)
{
    const syncedmem_status_t status = subject_call(subject, call);
    return status == SYNCEDMEM_OK ? syncedmem_wait(subject->buffer) : status;
}

/* One trial; false when the n-th failure was not reached. */
static bool try_cell(enum call call, syncedmem_head_t state, bool warm, enum failing failing,
                     unsigned n)
{
    const struct held before = held_now();
    const struct cell *cell = &transition[call][state];
    struct trial trial;
    trial_make(&trial, call, state, warm, failing, n);
    struct subject *subject = &trial.subject;
    const bool cold_home =
        !warm && (state == SYNCEDMEM_UNINITIALIZED || state == SYNCEDMEM_HEAD_AT_CPU);
    arm(failing, n);
    const syncedmem_status_t status = call_and_wait(subject, call);
    const bool fired = failing == HOST_ALLOCATION ? wrap_fired() : status != cell->status;
    arm(failing, 0);
    /* A late push has touched the device. */
    if (status != cell->status) {
        check_failed(&trial, call, failing, status,
                     cold_home && !(call == ASYNC_GPU_PUSH && failing == LATE_COPY));
        cr_assert_eq(call_and_wait(subject, call), cell->status, "%s: again", trial.what);
    }
    cr_assert_eq(syncedmem_head(subject->buffer), cell->head, "%s: head", trial.what);
    cr_assert(subject_bytes_right(subject), "%s: bytes", trial.what);
    subject_end(subject);
    check_nothing_leaked(&before, trial.what);
    return fired;
}

static void try_call(enum call call)
{
    for (int failing = 0; failing < FAILINGS; failing++) {
        for (syncedmem_head_t state = 0; state < STATES; state++) {
            for (int warm = 0; warm < 2; warm++) {
                unsigned n = 1;
                while (n < ROUNDS_MOST && try_cell(call, state, warm, (enum failing)failing, n)) {
                    n++;
                }
                cr_assert_lt(n, ROUNDS_MOST);
            }
        }
    }
}

Test(failures, cpu_data)
{
    try_call(CPU_DATA);
}

Test(failures, mutable_cpu_data)
{
    try_call(MUTABLE_CPU_DATA);
}

Test(failures, gpu_data)
{
    try_call(GPU_DATA);
}

Test(failures, mutable_gpu_data)
{
    try_call(MUTABLE_GPU_DATA);
}

Test(failures, set_cpu_data)
{
    try_call(SET_CPU_DATA);
}

Test(failures, set_gpu_data)
{
    try_call(SET_GPU_DATA);
}

Test(failures, async_gpu_push)
{
    try_call(ASYNC_GPU_PUSH);
}

/* ---- Other calls: each gets a world of its own for every n ---- */

struct things {
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    void *block;
    void *out;
};

static syncedmem_status_t do_create(struct things *things)
{
    const syncedmem_status_t status =
        syncedmem_create(SIZE, (syncedmem_buffer **)(void *)&things->out);
    if (status == SYNCEDMEM_OK) {
        syncedmem_release(things->out);
    }
    return status;
}

static syncedmem_status_t do_stream_create(struct things *things)
{
    const syncedmem_status_t status =
        syncedmem_stream_create(sim(0), (syncedmem_stream **)(void *)&things->out);
    if (status == SYNCEDMEM_OK) {
        syncedmem_stream_release(things->out);
    }
    return status;
}

static syncedmem_status_t do_stream_default(struct things *things)
{
    const syncedmem_status_t status =
        syncedmem_stream_default(sim(0), (syncedmem_stream **)(void *)&things->out);
    if (status == SYNCEDMEM_OK) {
        syncedmem_stream_release(things->out);
    }
    return status;
}

static syncedmem_status_t do_set_home(struct things *things)
{
    return syncedmem_set_home(things->buffer, sim(0));
}

static syncedmem_status_t do_set_policy(struct things *things)
{
    return syncedmem_set_host_policy(things->buffer, SYNCEDMEM_PINNED);
}

static syncedmem_status_t do_set_current(struct things *things)
{
    (void)things;
    return syncedmem_device_set_current(sim(0));
}

static void kernel_nothing(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

static syncedmem_status_t do_launch(struct things *things)
{
    const void *const addresses[] = {things->block};
    return syncedmem_sim_launch(things->stream, kernel_nothing, &things->out, sizeof things->out,
                                addresses, 1);
}

static syncedmem_status_t do_sim_alloc(struct things *things)
{
    const syncedmem_status_t status = syncedmem_sim_alloc(sim(0), SIZE, &things->out);
    return status == SYNCEDMEM_OK ? syncedmem_sim_free(sim(0), things->out) : status;
}

static syncedmem_status_t do_stream_wait(struct things *things)
{
    return syncedmem_stream_wait(things->stream);
}

static syncedmem_status_t do_wait(struct things *things)
{
    return syncedmem_wait(things->buffer);
}

static syncedmem_status_t do_stat(struct things *things)
{
    uint64_t figure;
    return syncedmem_stat(things->buffer, SYNCEDMEM_STAT_TRANSFERS, &figure);
}

static syncedmem_status_t do_find(struct things *things)
{
    return syncedmem_device_find("sim:1", (syncedmem_place **)(void *)&things->out);
}

static syncedmem_status_t do_text(struct things *things)
{
    return syncedmem_device_text(sim(0), SYNCEDMEM_PLACE_DESCRIPTION,
                                 (const char **)(void *)&things->out);
}

static const struct {
    const char *name;
    syncedmem_status_t (*take)(struct things *things);
    bool has_out;
} others[] = {
    {"create", do_create, true},
    {"stream_create", do_stream_create, true},
    {"stream_default", do_stream_default, true},
    {"set_home", do_set_home, false},
    {"set_host_policy", do_set_policy, false},
    {"device_set_current", do_set_current, false},
    {"sim_launch", do_launch, false},
    {"sim_alloc", do_sim_alloc, true},
    {"stream_wait", do_stream_wait, false},
    {"wait", do_wait, false},
    {"stat", do_stat, false},
    {"device_find", do_find, true},
    {"device_text", do_text, true},
};

static bool try_other(size_t which, enum failing failing, unsigned n)
{
    const struct held before = held_now();
    struct things things = {.out = &things};
    assert_ok(syncedmem_create(SIZE, &things.buffer));
    assert_ok(syncedmem_stream_create(sim(0), &things.stream));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &things.block));
    arm(failing, n);
    const syncedmem_status_t status = others[which].take(&things);
    const bool fired = failing == HOST_ALLOCATION ? wrap_fired() : status != SYNCEDMEM_OK;
    arm(failing, 0);
    if (status != SYNCEDMEM_OK) {
        cr_assert_eq(status, failings[failing].status, "%s, %s %u: %s", others[which].name,
                     failings[failing].name, n, syncedmem_status_name(status));
        cr_assert(is_one_line(syncedmem_last_error()));
        cr_assert(!others[which].has_out || things.out == NULL, "%s", others[which].name);
        assert_ok(others[which].take(&things));
    }
    assert_ok(syncedmem_stream_wait(things.stream));
    assert_ok(syncedmem_sim_free(sim(0), things.block));
    syncedmem_stream_release(things.stream);
    syncedmem_release(things.buffer);
    check_nothing_leaked(&before, others[which].name);
    return fired;
}

Test(failures, other_calls)
{
    for (int failing = 0; failing < FAILINGS; failing++) {
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            unsigned n = 1;
            while (n < ROUNDS_MOST && try_other(i, (enum failing)failing, n)) {
                n++;
            }
            cr_assert_lt(n, ROUNDS_MOST);
        }
    }
}
