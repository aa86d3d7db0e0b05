/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the plain calls: every call in every state, with heads, transfers and bytes. */
#include "support.h"
#include "table.h"

TestSuite(transitions, .init = sim_setup, .timeout = 120);

static const size_t sizes[] = {10, 1, 4097, (size_t)1 << 20, 0};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static uint64_t grown(const struct figures *before, const struct figures *after,
                      syncedmem_key_t key)
{
    return after->stat[key] - before->stat[key];
}

/* Whether an empty transfer counts as one is left open: it has no bytes in any case. */
static void check_figures(const struct cell *cell, size_t size, const struct figures *before,
                          const struct figures *after, const char *what)
{
    const uint64_t to_device = grown(before, after, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE);
    const uint64_t to_host = grown(before, after, SYNCEDMEM_STAT_TRANSFERS_TO_HOST);
    if (size != 0) {
        cr_assert_eq(to_device, cell->to_device, "%s: %d to the device", what, (int)to_device);
        cr_assert_eq(to_host, cell->to_host, "%s: %d to the host", what, (int)to_host);
    }
    cr_assert_eq(grown(before, after, SYNCEDMEM_STAT_TRANSFERS), to_device + to_host, "%s", what);
    cr_assert_eq(grown(before, after, SYNCEDMEM_STAT_BYTES_TO_DEVICE), cell->to_device * size, "%s",
                 what);
    cr_assert_eq(grown(before, after, SYNCEDMEM_STAT_BYTES_TO_HOST), cell->to_host * size, "%s",
                 what);
    cr_assert_eq(after->head, cell->head, "%s: head %d", what, (int)after->head);
}

/* The bytes where the call gave a pointer, before anything else is asked. */
static void check_pointer(const struct subject *subject, enum call call, const char *what)
{
    if (call == CPU_DATA || call == MUTABLE_CPU_DATA) {
        cr_assert(pattern_is(subject->pointer, subject->size, subject->seed), "%s", what);
    } else if (call == GPU_DATA || call == MUTABLE_GPU_DATA) {
        cr_assert(device_pattern_is(0, subject->pointer, subject->size, subject->seed), "%s", what);
    }
}

static void check_cell(enum call call, syncedmem_head_t state, size_t size, bool warm)
{
    const struct cell *cell = &transition[call][state];
    struct subject subject;
    char what[80];
    snprintf(what, sizeof what, "%s in state %d, %zu bytes, %s", call_name[call], (int)state, size,
             warm ? "warm" : "cold");
    subject_make(&subject, size, state, warm);
    const struct figures before = figures_of(subject.buffer);
    const syncedmem_status_t status = subject_call(&subject, call);
    cr_assert_eq(status, cell->status, "%s: %s (%s)", what, syncedmem_status_name(status),
                 syncedmem_last_error());
    cr_assert_eq(syncedmem_head(subject.buffer), cell->head, "%s: head at once", what);
    assert_ok(syncedmem_wait(subject.buffer));
    const struct figures after = figures_of(subject.buffer);
    check_figures(cell, size, &before, &after, what);
    check_pointer(&subject, call, what);
    cr_assert(subject_bytes_right(&subject), "%s: bytes", what);
    subject_end(&subject);
}

static void check_call(enum call call)
{
    for (size_t i = 0; i < SIZES; i++) {
        for (syncedmem_head_t state = 0; state < STATES; state++) {
            check_cell(call, state, sizes[i], false);
            check_cell(call, state, sizes[i], true);
        }
    }
}

Test(transitions, cpu_data)
{
    check_call(CPU_DATA);
}

Test(transitions, mutable_cpu_data)
{
    check_call(MUTABLE_CPU_DATA);
}

Test(transitions, gpu_data)
{
    check_call(GPU_DATA);
}

Test(transitions, mutable_gpu_data)
{
    check_call(MUTABLE_GPU_DATA);
}

Test(transitions, set_cpu_data)
{
    check_call(SET_CPU_DATA);
}

Test(transitions, set_gpu_data)
{
    check_call(SET_GPU_DATA);
}

Test(transitions, async_gpu_push)
{
    check_call(ASYNC_GPU_PUSH);
}

/* Bytes written at one place after each cell are seen at the other. */
static void check_write_after(enum call call, syncedmem_head_t state)
{
    struct subject subject;
    subject_make(&subject, 4097, state, false);
    (void)subject_call(&subject, call);
    subject_device_write(&subject, 7);
    cr_assert(subject_bytes_right(&subject), "%s in %d, device", call_name[call], (int)state);
    (void)subject_call(&subject, call);
    subject_host_write(&subject, 8);
    cr_assert(subject_bytes_right(&subject), "%s in %d, host", call_name[call], (int)state);
    subject_end(&subject);
}

Test(transitions, writes_after_every_cell)
{
    for (int call = 0; call < CALLS; call++) {
        for (syncedmem_head_t state = 0; state < STATES; state++) {
            check_write_after((enum call)call, state);
        }
    }
}

/* ---- The nine steps of the contract ---- */

static const struct {
    enum call call;
    unsigned transfers;
} steps[] = {
    {GPU_DATA, 1},         {CPU_DATA, 0},         {MUTABLE_GPU_DATA, 0},
    {MUTABLE_GPU_DATA, 0}, {CPU_DATA, 1},         {GPU_DATA, 0},
    {MUTABLE_CPU_DATA, 0}, {MUTABLE_GPU_DATA, 1}, {MUTABLE_CPU_DATA, 1},
};

static void check_nine_steps(size_t size)
{
    struct subject subject;
    subject_make(&subject, size, SYNCEDMEM_HEAD_AT_CPU, false);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const uint64_t before = stat_of(subject.buffer, SYNCEDMEM_STAT_TRANSFERS);
        assert_ok(subject_call(&subject, steps[i].call));
        const uint64_t after = stat_of(subject.buffer, SYNCEDMEM_STAT_TRANSFERS);
        cr_assert_eq(after - before, steps[i].transfers, "step %zu", i);
        if (steps[i].call == MUTABLE_CPU_DATA) {
            subject.seed = (unsigned)(20 + i);
            pattern_write(subject.pointer, size, subject.seed);
        } else if (steps[i].call == MUTABLE_GPU_DATA) {
            subject.seed = (unsigned)(20 + i);
            device_pattern_write(0, subject.pointer, size, subject.seed);
        }
        check_pointer(&subject, steps[i].call, "nine steps");
    }
    subject_end(&subject);
}

Test(transitions, nine_steps)
{
    for (size_t i = 0; i < SIZES; i++) {
        if (sizes[i] != 0) {
            check_nine_steps(sizes[i]);
        }
    }
}

/* ---- Pointers and allocations ---- */

Test(transitions, pointers_are_stable)
{
    struct subject subject;
    subject_make(&subject, 1000, SYNCEDMEM_UNINITIALIZED, false);
    assert_ok(subject_call(&subject, CPU_DATA));
    void *host = subject.pointer;
    assert_ok(subject_call(&subject, GPU_DATA));
    void *device = subject.pointer;
    for (int round = 0; round < 3; round++) {
        for (int call = 0; call < SET_CPU_DATA; call++) {
            assert_ok(subject_call(&subject, (enum call)call));
            cr_assert_eq(subject.pointer, call < GPU_DATA ? host : device, "%s", call_name[call]);
        }
        subject_host_write(&subject, 4);
        assert_ok(subject_call(&subject, ASYNC_GPU_PUSH));
    }
    /* A set_ call at one place leaves the pointer of the other. */
    assert_ok(subject_call(&subject, SET_GPU_DATA));
    assert_ok(subject_call(&subject, MUTABLE_CPU_DATA));
    cr_assert_eq(subject.pointer, host);
    assert_ok(subject_call(&subject, GPU_DATA));
    cr_assert_eq(subject.pointer, subject.device_block);
    assert_ok(subject_call(&subject, SET_CPU_DATA));
    assert_ok(subject_call(&subject, GPU_DATA));
    cr_assert_eq(subject.pointer, subject.device_block);
    assert_ok(subject_call(&subject, CPU_DATA));
    cr_assert_eq(subject.pointer, subject.host_block);
    subject_end(&subject);
}

static void check_allocations(const syncedmem_buffer *buffer, uint64_t host, uint64_t device)
{
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_HOST_ALLOCATIONS), host);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS), device);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_HOST_BYTES) != 0, host != 0);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_DEVICE_BYTES) != 0, device != 0);
}

Test(transitions, a_place_is_allocated_when_asked_for)
{
    const uint64_t memory_free = device_memory_free(0);
    syncedmem_buffer *buffer;
    const void *pointer;
    assert_ok(syncedmem_create(100000, &buffer));
    check_allocations(buffer, 0, 0);
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    check_allocations(buffer, 1, 0);
    cr_assert_eq(device_memory_free(0), memory_free);
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    check_allocations(buffer, 1, 1);
    cr_assert_leq(device_memory_free(0), memory_free - 100000);
    syncedmem_release(buffer);
    cr_assert_eq(device_memory_free(0), memory_free);

    assert_ok(syncedmem_create(100000, &buffer));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    check_allocations(buffer, 0, 1);
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    check_allocations(buffer, 1, 1);
    syncedmem_release(buffer);
}

Test(transitions, adopted_memory_allocates_nothing)
{
    struct subject subject;
    subject_make(&subject, 1000, SYNCEDMEM_UNINITIALIZED, false);
    assert_ok(subject_call(&subject, SET_CPU_DATA));
    check_allocations(subject.buffer, 0, 0);
    assert_ok(subject_call(&subject, SET_GPU_DATA));
    cr_assert(subject_bytes_right(&subject));
    check_allocations(subject.buffer, 0, 0);
    subject_end(&subject);
}

/* Two buffers and the process: each figure of the process has grown by the sum. */
Test(transitions, process_figures_are_sums)
{
    struct subject one, two;
    const struct figures before = figures_of(NULL);
    subject_make(&one, 3000, SYNCEDMEM_SYNCED, true);
    subject_make(&two, 70, SYNCEDMEM_SYNCED, false);
    const struct figures first = figures_of(one.buffer), second = figures_of(two.buffer);
    const struct figures after = figures_of(NULL);
    for (syncedmem_key_t key = 1; key < STATS; key++) {
        if (key != SYNCEDMEM_STAT_WAITS) {
            cr_assert_eq(grown(&before, &after, key), first.stat[key] + second.stat[key], "%s",
                         syncedmem_stat_name(key));
        }
    }
    subject_end(&one);
    subject_end(&two);
}
