/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the plain calls, and a subject to try its cells on.
 *
 * A subject is a buffer brought to a state with bytes of a known pattern, along one of two
 * ways: cold has memory only where the state needs it, warm has stale memory elsewhere too.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_TABLE_H
#define SYNCEDMEM_TESTS_UNIT_TABLE_H

#include <stdlib.h>

#include "support.h"

enum call {
    CPU_DATA,
    MUTABLE_CPU_DATA,
    GPU_DATA,
    MUTABLE_GPU_DATA,
    SET_CPU_DATA,
    SET_GPU_DATA,
    ASYNC_GPU_PUSH,
    CALLS
};

enum { STATES = 4 };

struct cell {
    syncedmem_status_t status;
    syncedmem_head_t head; /* after the call */
    unsigned to_device;    /* transfers */
    unsigned to_host;
};

/* clang-format off */
static const struct cell transition[CALLS][STATES] = {
    [CPU_DATA] = {
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_SYNCED, 0, 1},
        {SYNCEDMEM_OK, SYNCEDMEM_SYNCED, 0, 0}},
    [MUTABLE_CPU_DATA] = {
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 1},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0}},
    [GPU_DATA] = {
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_SYNCED, 1, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_SYNCED, 0, 0}},
    [MUTABLE_GPU_DATA] = {
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 1, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0}},
    [SET_CPU_DATA] = {
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_CPU, 0, 0}},
    [SET_GPU_DATA] = {
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_HEAD_AT_GPU, 0, 0}},
    [ASYNC_GPU_PUSH] = {
        {SYNCEDMEM_WRONG_STATE, SYNCEDMEM_UNINITIALIZED, 0, 0},
        {SYNCEDMEM_OK, SYNCEDMEM_SYNCED, 1, 0},
        {SYNCEDMEM_WRONG_STATE, SYNCEDMEM_HEAD_AT_GPU, 0, 0},
        {SYNCEDMEM_WRONG_STATE, SYNCEDMEM_SYNCED, 0, 0}},
};
/* clang-format on */

static const char *const call_name[CALLS] = {
    "cpu_data",     "mutable_cpu_data", "gpu_data",       "mutable_gpu_data",
    "set_cpu_data", "set_gpu_data",     "async_gpu_push",
};

struct subject {
    syncedmem_buffer *buffer;
    size_t size;
    syncedmem_head_t state;
    unsigned seed;      /* pattern of the newest bytes */
    void *host_block;   /* to adopt: pattern 2 */
    void *device_block; /* to adopt, on device 0: pattern 3 */
    void *pointer;      /* what the last call gave out */
};

static inline void subject_host_write(struct subject *subject, unsigned seed)
{
    void *pointer;
    assert_ok(syncedmem_mutable_cpu_data(subject->buffer, &pointer));
    pattern_write(pointer, subject->size, seed);
    subject->seed = seed;
}

static inline void subject_device_write(struct subject *subject, unsigned seed)
{
    void *pointer;
    assert_ok(syncedmem_mutable_gpu_data(subject->buffer, &pointer));
    device_pattern_write(0, pointer, subject->size, seed);
    subject->seed = seed;
}

/* Asserts on the way. */
static inline void subject_make(struct subject *subject, size_t size, syncedmem_head_t state,
                                bool warm)
{
    const size_t room = size == 0 ? 1 : size;
    *subject = (struct subject){.size = size, .state = state, .host_block = malloc(room)};
    cr_assert_not_null(subject->host_block);
    assert_ok(syncedmem_create(size, &subject->buffer));
    assert_ok(syncedmem_sim_alloc(sim(0), room, &subject->device_block));
    pattern_write(subject->host_block, size, 2);
    device_pattern_write(0, subject->device_block, size, 3);
    if (state == SYNCEDMEM_HEAD_AT_CPU) {
        if (warm) {
            subject_device_write(subject, 5);
        }
        subject_host_write(subject, 1);
    } else if (state == SYNCEDMEM_HEAD_AT_GPU) {
        if (warm) {
            subject_host_write(subject, 5);
        }
        subject_device_write(subject, 1);
    } else if (state == SYNCEDMEM_SYNCED) {
        const void *pointer;
        if (warm) {
            subject_device_write(subject, 1);
            assert_ok(syncedmem_cpu_data(subject->buffer, &pointer));
        } else {
            subject_host_write(subject, 1);
            assert_ok(syncedmem_gpu_data(subject->buffer, &pointer));
        }
    }
    cr_assert_eq(syncedmem_head(subject->buffer), state);
}

static inline void subject_end(struct subject *subject)
{
    syncedmem_release(subject->buffer);
    assert_ok(syncedmem_sim_free(sim(0), subject->device_block));
    free(subject->host_block);
}

/* Makes one of the calls; on success the subject's seed is that of the bytes afterwards. */
static inline syncedmem_status_t subject_call(struct subject *subject, enum call call)
{
    syncedmem_buffer *buffer = subject->buffer;
    const void *reading = &subject;
    void *writing = &subject;
    syncedmem_status_t status;
    switch (call) {
    case CPU_DATA:
        status = syncedmem_cpu_data(buffer, &reading);
        subject->pointer = (void *)(uintptr_t)reading;
        return status;
    case MUTABLE_CPU_DATA:
        status = syncedmem_mutable_cpu_data(buffer, &writing);
        subject->pointer = writing;
        return status;
    case GPU_DATA:
        status = syncedmem_gpu_data(buffer, &reading);
        subject->pointer = (void *)(uintptr_t)reading;
        return status;
    case MUTABLE_GPU_DATA:
        status = syncedmem_mutable_gpu_data(buffer, &writing);
        subject->pointer = writing;
        return status;
    case SET_CPU_DATA:
        status = syncedmem_set_cpu_data(buffer, subject->host_block, subject->size);
        subject->seed = status == SYNCEDMEM_OK ? 2 : subject->seed;
        return status;
    case SET_GPU_DATA:
        status = syncedmem_set_gpu_data(buffer, subject->device_block, subject->size);
        subject->seed = status == SYNCEDMEM_OK ? 3 : subject->seed;
        return status;
    default:
        return syncedmem_async_gpu_push(buffer, NULL);
    }
}

/* Asks at both places, and compares the bytes there. */
static inline bool subject_bytes_right(struct subject *subject)
{
    const void *pointer;
    assert_ok(syncedmem_gpu_data(subject->buffer, &pointer));
    if (!device_pattern_is(0, pointer, subject->size, subject->seed)) {
        return false;
    }
    assert_ok(syncedmem_cpu_data(subject->buffer, &pointer));
    return pattern_is(pointer, subject->size, subject->seed);
}

#endif
