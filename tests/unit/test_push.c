/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A push and what may happen to it: its source is replaced, unmapped or released while it waits,
 * or it fails after it was accepted.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "support.h"

TestSuite(push, .init = sim_setup, .timeout = 60);

enum { SIZE = 65536, LATER = 60 };

/* ---- Adopted memory at both sides, so that the test can look after the buffer is gone ---- */

struct adopted {
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    void *host;   /* mapped; pattern 1 */
    void *device; /* of the test's own */
    struct gate gate;
};

static void *map_pattern(unsigned seed)
{
    void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    pattern_write(memory, SIZE, seed);
    return memory;
}

/* Pushed behind a gate that opens a little later. */
static void push_adopted(struct adopted *adopted)
{
    adopted->host = map_pattern(1);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &adopted->device));
    assert_ok(syncedmem_stream_create(sim(0), &adopted->stream));
    assert_ok(syncedmem_create(SIZE, &adopted->buffer));
    assert_ok(syncedmem_set_gpu_data(adopted->buffer, adopted->device, SIZE));
    assert_ok(syncedmem_set_cpu_data(adopted->buffer, adopted->host, SIZE));
    gate_put(&adopted->gate, adopted->stream);
    assert_ok(syncedmem_async_gpu_push(adopted->buffer, adopted->stream));
    gate_open_later(&adopted->gate, LATER);
}

static void end_adopted(struct adopted *adopted)
{
    gate_join(&adopted->gate);
    syncedmem_release(adopted->buffer);
    syncedmem_stream_release(adopted->stream);
    assert_ok(syncedmem_sim_free(sim(0), adopted->device));
}

/* The memory that was pushed is not used any more when set_cpu_data() returns. */
Test(push, then_set_cpu_data)
{
    struct adopted adopted;
    push_adopted(&adopted);
    void *other = map_pattern(2);
    assert_ok(syncedmem_set_cpu_data(adopted.buffer, other, SIZE));
    cr_assert_eq(munmap(adopted.host, SIZE), 0);
    cr_assert_eq(syncedmem_head(adopted.buffer), SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_stream_wait(adopted.stream));
    cr_assert(device_pattern_is(0, adopted.device, SIZE, 1));
    const void *pointer;
    assert_ok(syncedmem_gpu_data(adopted.buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, 2));
    end_adopted(&adopted);
    munmap(other, SIZE);
}

/* The same with overwriting: the stream's work saw the old bytes. */
Test(push, then_set_cpu_data_and_overwrite)
{
    struct adopted adopted;
    static unsigned char seen[SIZE];
    push_adopted(&adopted);
    cr_assert(stream_read(adopted.stream, adopted.device, seen, SIZE));
    void *other = map_pattern(2);
    assert_ok(syncedmem_set_cpu_data(adopted.buffer, other, SIZE));
    pattern_write(adopted.host, SIZE, 9);
    assert_ok(syncedmem_stream_wait(adopted.stream));
    cr_assert(pattern_is(seen, SIZE, 1));
    end_adopted(&adopted);
    munmap(adopted.host, SIZE);
    munmap(other, SIZE);
}

/* The device memory that is pushed to may be freed when set_gpu_data() returns. */
Test(push, then_set_gpu_data)
{
    struct adopted adopted;
    void *other;
    push_adopted(&adopted);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &other));
    device_pattern_write(0, other, SIZE, 3);
    assert_ok(syncedmem_set_gpu_data(adopted.buffer, other, SIZE));
    cr_assert(gate_is_open(&adopted.gate));
    cr_assert(device_pattern_is(0, adopted.device, SIZE, 1));
    const void *pointer;
    assert_ok(syncedmem_cpu_data(adopted.buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, 3));
    end_adopted(&adopted);
    assert_ok(syncedmem_sim_free(sim(0), other));
    munmap(adopted.host, SIZE);
}

static void check_release(bool unmap)
{
    struct adopted adopted;
    push_adopted(&adopted);
    syncedmem_release(adopted.buffer);
    adopted.buffer = NULL;
    if (unmap) {
        cr_assert_eq(munmap(adopted.host, SIZE), 0);
    } else {
        pattern_write(adopted.host, SIZE, 9);
    }
    assert_ok(syncedmem_stream_wait(adopted.stream));
    cr_assert(device_pattern_is(0, adopted.device, SIZE, 1));
    end_adopted(&adopted);
    if (!unmap) {
        munmap(adopted.host, SIZE);
    }
}

Test(push, then_release_and_overwrite)
{
    check_release(false);
}

Test(push, then_release_and_unmap)
{
    check_release(true);
}

/* Memory of the library's own, and the stream gone as well. */
Test(push, then_release_everything)
{
    const uint64_t free_before = device_memory_free(0);
    const uint64_t host_before = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    for (int round = 0; round < 20; round++) {
        syncedmem_buffer *buffer;
        syncedmem_stream *stream;
        void *pointer;
        struct gate gate;
        assert_ok(syncedmem_create(SIZE, &buffer));
        assert_ok(syncedmem_stream_create(sim(0), &stream));
        assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
        gate_put(&gate, stream);
        assert_ok(syncedmem_async_gpu_push(buffer, stream));
        gate_open_later(&gate, 3);
        syncedmem_stream_release(stream);
        syncedmem_release(buffer);
        gate_join(&gate);
    }
    cr_assert(device_memory_gets_free(0, free_before));
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host_before);
}

/* ---- Failing late ---- */

static syncedmem_status_t next_cpu_data(syncedmem_buffer *buffer, void **out)
{
    return syncedmem_cpu_data(buffer, (const void **)(void *)out);
}

static syncedmem_status_t next_mutable_cpu_data(syncedmem_buffer *buffer, void **out)
{
    return syncedmem_mutable_cpu_data(buffer, out);
}

static syncedmem_status_t next_gpu_data(syncedmem_buffer *buffer, void **out)
{
    return syncedmem_gpu_data(buffer, (const void **)(void *)out);
}

static syncedmem_status_t next_mutable_gpu_data(syncedmem_buffer *buffer, void **out)
{
    return syncedmem_mutable_gpu_data(buffer, out);
}

static syncedmem_status_t next_wait(syncedmem_buffer *buffer, void **out)
{
    *out = NULL;
    return syncedmem_wait(buffer);
}

static syncedmem_status_t next_push(syncedmem_buffer *buffer, void **out)
{
    *out = NULL;
    return syncedmem_async_gpu_push(buffer, NULL);
}

static unsigned char replacement[SIZE];

static syncedmem_status_t next_set_cpu_data(syncedmem_buffer *buffer, void **out)
{
    *out = NULL;
    return syncedmem_set_cpu_data(buffer, replacement, SIZE);
}

static const struct {
    const char *name;
    syncedmem_status_t (*call)(syncedmem_buffer *buffer, void **out);
} nexts[] = {
    {"cpu_data", next_cpu_data},
    {"mutable_cpu_data", next_mutable_cpu_data},
    {"gpu_data", next_gpu_data},
    {"mutable_gpu_data", next_mutable_gpu_data},
    {"wait", next_wait},
    {"async_gpu_push", next_push},
    {"set_cpu_data", next_set_cpu_data},
};

/* The push was accepted, and has failed by now. */
static syncedmem_buffer *failed_late(bool warm, syncedmem_stream *stream)
{
    syncedmem_buffer *buffer;
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    if (warm) {
        assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
    }
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, 4);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    syncedmem_stream_wait(stream);
    return buffer;
}

static void check_late_failure(size_t which, bool warm, syncedmem_stream *stream)
{
    const char *name = nexts[which].name;
    syncedmem_buffer *buffer = failed_late(warm, stream);
    void *out = &out;
    const void *pointer;
    const syncedmem_status_t status = nexts[which].call(buffer, &out);
    cr_assert_eq(status, SYNCEDMEM_DEVICE_ERROR, "%s: %s", name, syncedmem_status_name(status));
    cr_assert(is_one_line(syncedmem_last_error()));
    cr_assert_null(out, "%s", name);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU, "%s", name);
    /* Once: the same call works, and the bytes are those of the host. */
    assert_ok(nexts[which].call(buffer, &out));
    assert_ok(syncedmem_wait(buffer));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    const unsigned seed = nexts[which].call == next_set_cpu_data ? 8 : 4;
    cr_assert(device_pattern_is(0, pointer, SIZE, seed), "%s: device", name);
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, seed), "%s: host", name);
    syncedmem_release(buffer);
}

Test(push, fails_late)
{
    syncedmem_stream *stream;
    pattern_write(replacement, SIZE, 8);
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    for (size_t i = 0; i < sizeof nexts / sizeof nexts[0]; i++) {
        check_late_failure(i, false, stream);
        check_late_failure(i, true, stream);
    }
    syncedmem_stream_release(stream);
}

/* Calls with nothing to do while the push is under way do not hide its failure from the next. */
Test(push, fails_late_between_hot_calls)
{
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    struct gate gate;
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    for (int i = 0; i < 3; i++) {
        assert_ok(syncedmem_cpu_data(buffer, &reading));
        cr_assert_eq(reading, pointer);
    }
    gate_open(&gate);
    (void)syncedmem_stream_wait(stream);
    assert_status(syncedmem_cpu_data(buffer, &reading), SYNCEDMEM_DEVICE_ERROR);
    cr_assert_null(reading);
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}

/* Nobody asks any more. */
Test(push, fails_late_and_is_released)
{
    const uint64_t free_before = device_memory_free(0);
    syncedmem_stream *stream;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    syncedmem_release(failed_late(false, stream));
    syncedmem_release(failed_late(true, stream));
    syncedmem_stream_release(stream);
    cr_assert(device_memory_gets_free(0, free_before));
}

/* The failure comes while a call waits for the push. */
Test(push, fails_while_waited_for)
{
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    struct gate gate;
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, 4);
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_SYNCED);
    gate_open_later(&gate, LATER);
    assert_status(syncedmem_gpu_data(buffer, &reading), SYNCEDMEM_DEVICE_ERROR);
    cr_assert_null(reading);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    cr_assert(device_pattern_is(0, reading, SIZE, 4));
    gate_join(&gate);
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}
