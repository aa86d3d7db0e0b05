/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device is lost: what was there alone is said to be lost and never invented, all else works
 * on, and the device is as new when it is back.
 */
#include <stdlib.h>

#include "made.h"

static syncedmem_buffer *at_host, *synced, *at_device; /* OLD; OLD; NEW, and OLD stale */
static syncedmem_stream *stream;

static void make_all(void)
{
    sim_setup();
    at_host = made_at_host();
    synced = made_synced();
    at_device = made_at_device();
    assert_ok(syncedmem_stream_create(sim(0), &stream));
}

/* All gone, and the device is as it was. */
static void release_all(void)
{
    (void)syncedmem_sim_restore(sim(0));
    syncedmem_release(at_host);
    syncedmem_release(synced);
    syncedmem_release(at_device);
    syncedmem_stream_release(stream);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_LEASES), 0);
    cr_assert_eq(device_memory_free(0), device_memory_free(1));
}

TestSuite(loss, .timeout = 60, .init = make_all, .fini = release_all);

static void lose(void)
{
    assert_ok(syncedmem_sim_lose(sim(0)));
}

static void restore(void)
{
    assert_ok(syncedmem_sim_restore(sim(0)));
}

static void assert_host(syncedmem_buffer *buffer, unsigned seed)
{
    const void *pointer;
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, seed));
}

#define assert_data_lost(call, range)                                                              \
    do {                                                                                           \
        assert_status(call, SYNCEDMEM_DATA_LOST);                                                  \
        cr_assert(contains(syncedmem_last_error(), range), "%s", syncedmem_last_error());          \
    } while (0)

#define assert_device_lost(call)                                                                   \
    do {                                                                                           \
        assert_status(call, SYNCEDMEM_DEVICE_LOST);                                                \
        cr_assert(is_one_line(syncedmem_last_error()));                                            \
        cr_assert(contains(syncedmem_last_error(), "lost"), "%s", syncedmem_last_error());         \
    } while (0)

/* ---- While it is lost ---- */

Test(loss, what_the_host_holds_is_there)
{
    const void *pointer;
    assert_ok(syncedmem_cpu_data(synced, &pointer)); /* both hot */
    assert_ok(syncedmem_gpu_data(synced, &pointer));
    lose();
    for (int i = 0; i < 3; i++) {
        assert_device_lost(syncedmem_gpu_data(synced, &pointer));
        cr_assert_null(pointer);
        assert_host(synced, OLD);
        assert_host(at_host, OLD);
    }
    void *writing;
    assert_ok(syncedmem_mutable_cpu_data(synced, &writing));
    pattern_write(writing, SIZE, OTHER);
    assert_host(synced, OTHER);
    cr_assert_eq(syncedmem_head(synced), SYNCEDMEM_HEAD_AT_CPU);
}

Test(loss, what_was_there_alone_is_lost)
{
    const void *pointer;
    void *writing;
    lose();
    for (int i = 0; i < 3; i++) {
        assert_data_lost(syncedmem_cpu_data(at_device, &pointer), "0 to 50000");
        cr_assert_null(pointer);
        assert_data_lost(syncedmem_mutable_cpu_data(at_device, &writing), "0 to 50000");
        assert_device_lost(syncedmem_gpu_data(at_device, &pointer));
        assert_device_lost(syncedmem_mutable_gpu_data(at_device, &writing));
    }
    cr_assert_eq(syncedmem_head(at_device), SYNCEDMEM_HEAD_SPLIT);
    size_t valid;
    assert_ok(syncedmem_valid_bytes(at_device, syncedmem_host(), 0, SIZE, &valid));
    cr_assert_eq(valid, 0);
    assert_ok(syncedmem_valid_bytes(at_device, sim(0), 0, SIZE, &valid));
    cr_assert_eq(valid, 0);
}

Test(loss, calls_that_name_the_device)
{
    syncedmem_buffer *const all[] = {at_host, synced, at_device};
    lose();
    for (int i = 0; i < 3; i++) {
        for (syncedmem_mode_t mode = SYNCEDMEM_READ; mode <= SYNCEDMEM_READ_WRITE; mode++) {
            syncedmem_token_t token;
            void *pointer;
            assert_device_lost(
                syncedmem_begin(all[i], sim(0), mode, 0, SIZE, NULL, &pointer, NULL, &token));
            assert_device_lost(
                syncedmem_begin(all[i], sim(0), mode, 0, SIZE, stream, &pointer, NULL, &token));
        }
        assert_device_lost(syncedmem_prefetch(all[i], sim(0), 0, SIZE, NULL));
    }
    assert_host(at_host, OLD);
    assert_device_lost(syncedmem_async_gpu_push(at_host, NULL));
    assert_device_lost(syncedmem_async_gpu_push(at_host, stream));
    assert_host(at_host, OLD);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_LEASES), 0);
}

static void kernel_nothing(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

Test(loss, streams_of_before_stay_lost)
{
    syncedmem_stream *another, *standard;
    void *block;
    lose();
    for (int i = 0; i < 2; i++) {
        assert_device_lost(syncedmem_stream_wait(stream));
        assert_device_lost(syncedmem_sim_launch(stream, kernel_nothing, NULL, 0, NULL, 0));
    }
    assert_device_lost(syncedmem_stream_create(sim(0), &another));
    assert_device_lost(syncedmem_sim_alloc(sim(0), 64, &block));
    restore();
    for (int i = 0; i < 3; i++) {
        assert_device_lost(syncedmem_stream_wait(stream));
        assert_device_lost(syncedmem_sim_launch(stream, kernel_nothing, NULL, 0, NULL, 0));
        assert_device_lost(syncedmem_async_gpu_push(at_host, stream));
    }
    assert_ok(syncedmem_stream_create(sim(0), &another));
    assert_ok(syncedmem_sim_launch(another, kernel_nothing, NULL, 0, NULL, 0));
    assert_ok(syncedmem_stream_wait(another));
    assert_ok(syncedmem_stream_default(sim(0), &standard));
    assert_ok(syncedmem_stream_wait(standard));
    syncedmem_stream_release(another);
    syncedmem_stream_release(standard);
}

Test(loss, losing_twice_and_restoring_twice)
{
    lose();
    lose();
    restore();
    assert_status(syncedmem_sim_restore(sim(0)), SYNCEDMEM_WRONG_STATE);
    const void *pointer;
    assert_data_lost(syncedmem_cpu_data(at_device, &pointer), "0 to 50000");
}

Test(loss, statistics)
{
    cr_assert_eq(stat_of(synced, SYNCEDMEM_STAT_DEVICE_BYTES), SIZE);
    lose();
    assert_host(synced, OLD);
    const void *pointer;
    (void)syncedmem_cpu_data(at_device, &pointer);
    cr_assert_eq(stat_of(synced, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    cr_assert_eq(stat_of(at_device, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    cr_assert_eq(stat_of(at_device, SYNCEDMEM_STAT_HOST_BYTES), SIZE);
}

/* ---- Other devices ---- */

Test(loss, other_devices_work_on)
{
    syncedmem_token_t token;
    void *pointer;
    syncedmem_buffer *elsewhere = made_at_device();
    assert_ok(syncedmem_prefetch(elsewhere, sim(1), 0, SIZE, NULL));
    assert_ok(syncedmem_wait(elsewhere));
    lose();
    assert_ok(
        syncedmem_begin(elsewhere, sim(1), SYNCEDMEM_READ, 0, SIZE, NULL, &pointer, NULL, &token));
    cr_assert(device_pattern_is(1, pointer, SIZE, NEW));
    assert_ok(syncedmem_end(elsewhere, token));
    assert_host(elsewhere, NEW);
    assert_ok(
        syncedmem_begin(at_host, sim(1), SYNCEDMEM_READ, 0, SIZE, NULL, &pointer, NULL, &token));
    cr_assert(device_pattern_is(1, pointer, SIZE, OLD));
    assert_ok(syncedmem_end(at_host, token));
    assert_data_lost(
        syncedmem_begin(at_device, sim(1), SYNCEDMEM_READ, 0, SIZE, NULL, &pointer, NULL, &token),
        "0 to 50000");
    syncedmem_release(elsewhere);
}

/* ---- Lost bytes are written over ---- */

/* Still lost, by whatever call reads. */
static void assert_lost_for_all(syncedmem_buffer *buffer)
{
    const void *pointer;
    syncedmem_token_t token;
    void *writing;
    assert_data_lost(syncedmem_cpu_data(buffer, &pointer), "0 to 50000");
    assert_data_lost(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_READ, 0, SIZE, NULL,
                                     &writing, NULL, &token),
                     "0 to 50000");
    assert_data_lost(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_READ_WRITE, 0, SIZE, NULL,
                                     &writing, NULL, &token),
                     "0 to 50000");
    assert_data_lost(syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, NULL), "0 to 50000");
    assert_data_lost(syncedmem_copy(at_host, 0, buffer, 0, SIZE), "0 to 50000");
    assert_host(at_host, OLD);
}

static void write_by_lease(syncedmem_buffer *buffer)
{
    syncedmem_token_t token;
    void *pointer;
    assert_ok(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer,
                              NULL, &token));
    pattern_write(pointer, SIZE, OTHER);
    assert_ok(syncedmem_end(buffer, token));
}

static void write_by_mark(syncedmem_buffer *buffer)
{
    assert_ok(syncedmem_mark_modified(buffer, syncedmem_host(), 0, SIZE));
    void *pointer;
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, OLD), "what was there");
    pattern_write(pointer, SIZE, OTHER);
}

static void write_by_copy(syncedmem_buffer *buffer)
{
    void *pointer;
    assert_ok(syncedmem_mutable_cpu_data(at_host, &pointer));
    pattern_write(pointer, SIZE, OTHER);
    assert_ok(syncedmem_copy(buffer, 0, at_host, 0, SIZE));
    pattern_write(pointer, SIZE, OLD);
}

static void write_by_set(syncedmem_buffer *buffer)
{
    static unsigned char block[SIZE];
    pattern_write(block, SIZE, OTHER);
    assert_ok(syncedmem_set_cpu_data(buffer, block, SIZE));
}

static void write_by_adopt(syncedmem_buffer *buffer)
{
    static unsigned char block[SIZE];
    pattern_write(block, SIZE, OTHER);
    assert_ok(syncedmem_adopt(buffer, syncedmem_host(), block, SIZE, SYNCEDMEM_ADOPT_READ_ONLY,
                              NULL, NULL, NULL));
}

static void write_by_fill(syncedmem_buffer *buffer)
{
    assert_ok(syncedmem_fill(buffer, 0, SIZE, 77));
    void *pointer;
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    cr_assert_eq(((unsigned char *)pointer)[0], 77);
    cr_assert_eq(((unsigned char *)pointer)[SIZE - 1], 77);
    pattern_write(pointer, SIZE, OTHER);
}

static void (*const ways[])(syncedmem_buffer *) = {write_by_lease, write_by_mark,  write_by_copy,
                                                   write_by_set,   write_by_adopt, write_by_fill};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* A call that names the device is told of its loss, at most so often; then it works. */
static const void *device_data(syncedmem_buffer *buffer, int most)
{
    const void *pointer;
    for (int told = 0; told < most; told++) {
        const syncedmem_status_t status = syncedmem_gpu_data(buffer, &pointer);
        if (status == SYNCEDMEM_OK) {
            return pointer;
        }
        cr_assert_eq(status, SYNCEDMEM_DEVICE_LOST, "%s", syncedmem_last_error());
    }
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    return pointer;
}

Test(loss, each_way_to_write_over)
{
    syncedmem_buffer *buffers[WAYS];
    for (int i = 0; i < WAYS; i++) {
        buffers[i] = made_at_device();
    }
    lose();
    for (int i = 0; i < WAYS; i++) {
        assert_lost_for_all(buffers[i]);
        ways[i](buffers[i]);
        assert_host(buffers[i], OTHER);
    }
    restore();
    for (int i = 0; i < WAYS; i++) {
        cr_assert(device_pattern_is(0, device_data(buffers[i], 1), SIZE, OTHER), "way %d", i);
        assert_host(buffers[i], OTHER);
        syncedmem_release(buffers[i]);
    }
}

Test(loss, each_way_to_write_over_when_it_is_back)
{
    syncedmem_buffer *buffers[WAYS];
    for (int i = 0; i < WAYS; i++) {
        buffers[i] = made_at_device();
    }
    lose();
    restore();
    for (int i = 0; i < WAYS; i++) {
        assert_lost_for_all(buffers[i]);
        assert_lost_for_all(buffers[i]);
        ways[i](buffers[i]);
        assert_host(buffers[i], OTHER);
        cr_assert(device_pattern_is(0, device_data(buffers[i], 1), SIZE, OTHER), "way %d", i);
        syncedmem_release(buffers[i]);
    }
}

Test(loss, device_memory_is_written_over)
{
    syncedmem_token_t token;
    const void *reading;
    void *pointer;
    lose();
    restore();
    assert_device_lost(
        syncedmem_begin(at_device, sim(0), SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer, NULL, &token));
    assert_data_lost(syncedmem_gpu_data(at_device, &reading), "0 to 50000");
    assert_ok(
        syncedmem_begin(at_device, sim(0), SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer, NULL, &token));
    device_pattern_write(0, pointer, SIZE, OTHER);
    assert_ok(syncedmem_end(at_device, token));
    assert_host(at_device, OTHER);
}

/* ---- A part ---- */

Test(loss, a_part_is_lost)
{
    syncedmem_token_t token;
    syncedmem_buffer *first, *second;
    const void *reading;
    void *pointer;
    assert_ok(syncedmem_view(synced, 0, HALF, &first));
    assert_ok(syncedmem_view(synced, HALF, HALF, &second));
    assert_ok(syncedmem_begin(synced, sim(0), SYNCEDMEM_READ_WRITE, HALF, HALF, NULL, &pointer,
                              NULL, &token));
    assert_ok(syncedmem_end(synced, token));
    lose();
    assert_data_lost(syncedmem_cpu_data(synced, &reading), "25000 to 50000");
    assert_ok(syncedmem_cpu_data(first, &reading));
    cr_assert(pattern_is(reading, HALF, OLD));
    assert_status(syncedmem_cpu_data(second, &reading), SYNCEDMEM_DATA_LOST);
    cr_assert_eq(syncedmem_head(first), SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_fill(second, 0, HALF - 100, 5));
    assert_data_lost(syncedmem_cpu_data(synced, &reading), "49900 to 50000");
    assert_ok(syncedmem_begin(second, syncedmem_host(), SYNCEDMEM_WRITE, HALF - 100, 100, NULL,
                              &pointer, NULL, &token));
    memset(pointer, 6, 100);
    assert_ok(syncedmem_end(second, token));
    assert_ok(syncedmem_cpu_data(synced, &reading));
    const unsigned char *bytes = reading;
    cr_assert(pattern_is(bytes, HALF, OLD));
    cr_assert(bytes[HALF] == 5 && bytes[SIZE - 101] == 5 && bytes[SIZE - 100] == 6);
    syncedmem_release(first);
    syncedmem_release(second);
}

/* Bytes that no one wrote are zero, not lost. */
Test(loss, fresh_bytes_stay_zero)
{
    syncedmem_buffer *fresh;
    syncedmem_token_t token;
    const void *reading;
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &fresh));
    assert_ok(
        syncedmem_begin(fresh, sim(0), SYNCEDMEM_WRITE, 0, 100, NULL, &pointer, NULL, &token));
    assert_ok(syncedmem_end(fresh, token));
    lose();
    assert_data_lost(syncedmem_cpu_data(fresh, &reading), "0 to 100");
    assert_ok(syncedmem_fill(fresh, 0, 100, 0));
    assert_host(fresh, 0);
    syncedmem_release(fresh);
}

/* ---- When it is back ---- */

Test(loss, told_once_when_it_is_back)
{
    const void *pointer;
    lose();
    restore();
    assert_device_lost(syncedmem_gpu_data(synced, &pointer));
    assert_ok(syncedmem_gpu_data(synced, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, OLD));
    assert_ok(syncedmem_gpu_data(at_host, &pointer)); /* had nothing there */
    cr_assert(device_pattern_is(0, pointer, SIZE, OLD));
    assert_device_lost(syncedmem_gpu_data(at_device, &pointer));
    assert_data_lost(syncedmem_gpu_data(at_device, &pointer), "0 to 50000");
    assert_data_lost(syncedmem_gpu_data(at_device, &pointer), "0 to 50000");
    assert_ok(syncedmem_fill(at_device, 0, SIZE, 0));
    cr_assert(device_pattern_is(0, device_data(at_device, 0), SIZE, 0));
}

Test(loss, again_and_again)
{
    void *pointer;
    for (unsigned seed = 1; seed < 20; seed++) {
        assert_ok(syncedmem_mutable_cpu_data(synced, &pointer));
        pattern_write(pointer, SIZE, seed);
        cr_assert(device_pattern_is(0, device_data(synced, 1), SIZE, seed));
        lose();
        assert_host(synced, seed);
        restore();
    }
    cr_assert_leq(device_memory_free(0), device_memory_free(1));
}

/* Between two looks at the buffer it went and came more than once. */
Test(loss, twice_between_two_calls)
{
    const void *pointer;
    lose();
    restore();
    lose();
    restore();
    assert_device_lost(syncedmem_gpu_data(synced, &pointer));
    assert_ok(syncedmem_gpu_data(synced, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, OLD));
}

Test(loss, new_buffers_when_it_is_back)
{
    lose();
    restore();
    syncedmem_buffer *buffer = made_at_device();
    assert_host(buffer, NEW);
    syncedmem_release(buffer);
}

/* ---- Unfinished work ---- */

Test(loss, an_unfinished_pull)
{
    struct gate gate;
    const void *pointer;
    gate_put(&gate, stream);
    assert_ok(syncedmem_prefetch(at_device, syncedmem_host(), 0, SIZE, stream));
    lose();
    gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        const syncedmem_status_t status = syncedmem_cpu_data(at_device, &pointer);
        cr_assert(status == SYNCEDMEM_DATA_LOST || (i == 0 && status == SYNCEDMEM_DEVICE_LOST));
    }
    write_by_lease(at_device);
    assert_host(at_device, OTHER);
}

Test(loss, an_unfinished_push)
{
    struct gate gate;
    gate_put(&gate, stream);
    assert_ok(syncedmem_async_gpu_push(at_host, stream));
    lose();
    gate_open(&gate);
    const void *pointer;
    const syncedmem_status_t status = syncedmem_cpu_data(at_host, &pointer); /* may be told */
    cr_assert(status == SYNCEDMEM_OK || status == SYNCEDMEM_DEVICE_LOST);
    assert_host(at_host, OLD);
    restore();
    cr_assert(device_pattern_is(0, device_data(at_host, 1), SIZE, OLD));
}

/* What the kernel wrote is gone: the bytes are lost, or the caller is told before it is given
 * those from before the lease. Never is there nothing but OK. */
Test(loss, a_lease_that_writes_over_an_unfinished_upload)
{
    struct gate gate;
    syncedmem_token_t token;
    const void *reading;
    void *pointer;
    gate_put(&gate, stream);
    assert_ok(syncedmem_begin(at_host, sim(0), SYNCEDMEM_READ_WRITE, 0, SIZE, stream, &pointer,
                              NULL, &token));
    cr_assert(stream_pattern_write(stream, pointer, SIZE, NEW));
    assert_ok(syncedmem_end(at_host, token));
    lose();
    gate_open(&gate);
    const syncedmem_status_t status = syncedmem_cpu_data(at_host, &reading);
    cr_assert(status == SYNCEDMEM_DATA_LOST || status == SYNCEDMEM_DEVICE_LOST, "%s",
              syncedmem_status_name(status));
}

/* The same before end(), which cannot say so. */
Test(loss, a_lease_open_over_an_unfinished_upload)
{
    struct gate gate;
    syncedmem_token_t token;
    const void *reading;
    void *pointer;
    gate_put(&gate, stream);
    assert_ok(syncedmem_begin(at_host, sim(0), SYNCEDMEM_READ_WRITE, 0, SIZE, stream, &pointer,
                              NULL, &token));
    cr_assert(stream_pattern_write(stream, pointer, SIZE, NEW));
    lose();
    gate_open(&gate);
    assert_ok(syncedmem_end(at_host, token));
    const syncedmem_status_t status = syncedmem_cpu_data(at_host, &reading);
    cr_assert(status == SYNCEDMEM_DATA_LOST || status == SYNCEDMEM_DEVICE_LOST, "%s",
              syncedmem_status_name(status));
}

Test(loss, open_leases_are_ended)
{
    syncedmem_token_t first, second, third;
    void *pointer;
    assert_ok(
        syncedmem_begin(synced, sim(0), SYNCEDMEM_READ, 0, SIZE, stream, &pointer, NULL, &first));
    assert_ok(syncedmem_begin(at_device, sim(0), SYNCEDMEM_WRITE, 0, HALF, NULL, &pointer, NULL,
                              &second));
    assert_ok(syncedmem_begin(at_host, syncedmem_host(), SYNCEDMEM_READ, 0, SIZE, NULL, &pointer,
                              NULL, &third));
    lose();
    cr_assert(pattern_is(pointer, SIZE, OLD));
    assert_ok(syncedmem_end(synced, first));
    restore();
    assert_ok(syncedmem_end(at_device, second));
    assert_ok(syncedmem_end(at_host, third));
    assert_status(syncedmem_end(synced, first), SYNCEDMEM_INVALID_LEASE);
    assert_host(synced, OLD);
}

Test(loss, released_with_unfinished_work)
{
    struct gate gate;
    gate_put(&gate, stream);
    syncedmem_buffer *buffer = made_at_device();
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, stream));
    lose();
    syncedmem_release(buffer);
    gate_open(&gate);
    restore();
    buffer = made_at_device();
    assert_host(buffer, NEW);
    syncedmem_release(buffer);
}

/* ---- Adopted memory, pinned memory ---- */

static void count_release(void *user)
{
    ++*(int *)user;
}

Test(loss, adopted_device_memory)
{
    int told[3] = {0};
    syncedmem_buffer *buffers[3];
    void *blocks[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = made_at_host();
        assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &blocks[i]));
        assert_ok(
            syncedmem_adopt(buffers[i], sim(0), blocks[i], SIZE, 0, NULL, count_release, &told[i]));
    }
    lose();
    const void *pointer;
    syncedmem_release(buffers[0]);
    assert_data_lost(syncedmem_cpu_data(buffers[1], &pointer), "0 to 50000");
    syncedmem_release(buffers[1]);
    restore();
    write_by_lease(buffers[2]);
    cr_assert(device_pattern_is(0, device_data(buffers[2], 1), SIZE, OTHER));
    syncedmem_release(buffers[2]);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(told[i], 1, "%d: %d", i, told[i]);
        assert_ok(syncedmem_sim_free(sim(0), blocks[i]));
    }
}

Test(loss, pinned_host_blocks)
{
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    syncedmem_buffer *one = made_synced(), *other = made_synced();
    lose();
    assert_host(one, OLD);
    syncedmem_release(other);
    restore();
    cr_assert(device_pattern_is(0, device_data(one, 1), SIZE, OLD));
    void *pointer;
    assert_ok(syncedmem_mutable_gpu_data(one, &pointer));
    device_pattern_write(0, pointer, SIZE, NEW);
    assert_host(one, NEW);
    syncedmem_release(one);
}

Test(loss, drop)
{
    const void *pointer;
    lose();
    (void)syncedmem_drop(synced, sim(0));
    assert_host(synced, OLD);
    (void)syncedmem_drop(at_device, sim(0));
    assert_status(syncedmem_cpu_data(at_device, &pointer), SYNCEDMEM_DATA_LOST);
    assert_status(syncedmem_drop(at_host, syncedmem_host()), SYNCEDMEM_DEVICE_LOST);
    assert_host(at_host, OLD);
}

/* ---- Threads ---- */

static atomic_bool enough;

/* What went wrong first in a thread, for the message. */
struct fault {
    const char *call; /* NULL: nothing did */
    syncedmem_status_t status;
};

static bool is_allowed(struct fault *fault, const char *call, syncedmem_status_t status)
{
    if (status != SYNCEDMEM_OK && status != SYNCEDMEM_DEVICE_LOST &&
        status != SYNCEDMEM_DATA_LOST) {
        *fault = (struct fault){call, status};
    }
    return status == SYNCEDMEM_OK;
}

/* Device 1 all the time, and bytes of its own. */
static void *use_another_device(void *argument)
{
    struct fault *fault = argument;
    syncedmem_buffer *own;
    if (!is_allowed(fault, "create", syncedmem_create(SIZE, &own)) ||
        !is_allowed(fault, "set_home", syncedmem_set_home(own, sim(1)))) {
        return NULL;
    }
    for (unsigned seed = 1; fault->call == NULL && !atomic_load(&enough); seed++) {
        void *pointer = NULL;
        const void *reading = NULL;
        syncedmem_status_t status = syncedmem_mutable_cpu_data(own, &pointer);
        if (status == SYNCEDMEM_OK) {
            pattern_write(pointer, SIZE, seed);
            status = syncedmem_mutable_gpu_data(own, &pointer);
        }
        if (status == SYNCEDMEM_OK) {
            status = syncedmem_cpu_data(own, &reading);
        }
        if (status != SYNCEDMEM_OK || !pattern_is(reading, SIZE, seed)) {
            *fault = (struct fault){"another device", status};
        }
    }
    syncedmem_release(own);
    return NULL;
}

/* False: a fault, or nothing to be written to. */
static bool write_at_host(struct fault *fault, syncedmem_buffer *buffer, unsigned seed)
{
    syncedmem_token_t token;
    void *writing;
    if (!is_allowed(fault, "begin",
                    syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_WRITE, 0, SIZE, NULL,
                                    &writing, NULL, &token))) {
        return false;
    }
    pattern_write(writing, SIZE, seed);
    return is_allowed(fault, "end", syncedmem_end(buffer, token));
}

/* Device 0, which comes and goes: right, or one of two statuses. */
static void *use_the_device(void *argument)
{
    struct fault *fault = argument;
    syncedmem_buffer *own;
    if (!is_allowed(fault, "create", syncedmem_create(SIZE, &own)) ||
        !is_allowed(fault, "set_home", syncedmem_set_home(own, sim(0)))) {
        return NULL;
    }
    for (unsigned seed = 1; fault->call == NULL && !atomic_load(&enough); seed++) {
        void *writing;
        const void *reading;
        if (!write_at_host(fault, own, seed)) {
            continue;
        }
        (void)is_allowed(fault, "mutable_gpu_data", syncedmem_mutable_gpu_data(own, &writing));
        if (is_allowed(fault, "cpu_data", syncedmem_cpu_data(own, &reading)) &&
            !pattern_is(reading, SIZE, seed)) {
            *fault = (struct fault){"wrong bytes", SYNCEDMEM_OK};
        }
    }
    syncedmem_release(own);
    return NULL;
}

Test(loss, while_threads_use_devices)
{
    enum { THREADS = 4, LOSSES = 100 };
    pthread_t threads[THREADS];
    struct fault faults[THREADS] = {{NULL, 0}};
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, i % 2 ? use_the_device : use_another_device,
                                    &faults[i]),
                     0);
    }
    for (int i = 0; i < LOSSES; i++) {
        lose();
        sleep_ms(1); /* lets them meet it; right at any speed */
        restore();
        sleep_ms(1);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_null(faults[i].call, "thread %d: %s: %s", i, faults[i].call,
                       syncedmem_status_name(faults[i].status));
    }
}
