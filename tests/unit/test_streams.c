/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams and async_gpu_push: what waits for what, and which bytes are seen.
 *
 * A gate holds up the stream, so that a push on it cannot have run before the gate is opened.
 */
#include "support.h"

enum { SIZE = 40000, LATER = 60, MUCH_LATER = 5000 };

/* ---- A buffer with memory on the device, its bytes newest on the host, and a stream ---- */

static syncedmem_buffer *buffer;
static syncedmem_stream *stream;
static void *host;
static void *device;
static struct gate gate;
static unsigned char seen[SIZE];

static void make_pushable(void)
{
    sim_setup();
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_mutable_gpu_data(buffer, &device));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &host));
    pattern_write(host, SIZE, 1);
}

static void end_pushable(void)
{
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}

TestSuite(streams, .init = make_pushable, .fini = end_pushable, .timeout = 60);

/* The push is on the stream, behind the gate. */
static void push_behind_gate(void)
{
    gate_put(&gate, stream);
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_SYNCED);
    cr_assert(!gate_is_open(&gate));
}

/* What the stream sees after the push; read when the stream has been waited for. */
static void read_on_stream(void)
{
    cr_assert(stream_read(stream, device, seen, SIZE), "%s", syncedmem_last_error());
}

static void check_stream_saw(unsigned seed)
{
    assert_ok(syncedmem_stream_wait(stream));
    cr_assert(pattern_is(seen, SIZE, seed));
}

/* ---- What is seen ---- */

Test(streams, work_after_the_push_sees_the_bytes)
{
    for (unsigned seed = 1; seed < 20; seed++) {
        assert_ok(syncedmem_mutable_cpu_data(buffer, &host));
        pattern_write(host, SIZE, seed);
        assert_ok(syncedmem_async_gpu_push(buffer, stream));
        read_on_stream();
        check_stream_saw(seed);
    }
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE), 19);
}

Test(streams, push_on_the_default_stream)
{
    assert_ok(syncedmem_async_gpu_push(buffer, NULL));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_SYNCED);
    cr_assert(device_pattern_is(0, device, SIZE, 1));
    syncedmem_stream *handle;
    assert_ok(syncedmem_stream_default(sim(0), &handle));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &host));
    pattern_write(host, SIZE, 2);
    assert_ok(syncedmem_async_gpu_push(buffer, handle));
    cr_assert(device_pattern_is(0, device, SIZE, 2));
    syncedmem_stream_release(handle);
}

/* The first use of the device is the push. */
Test(streams, push_of_a_buffer_that_no_device_has_seen)
{
    syncedmem_buffer *fresh;
    const void *pointer;
    assert_ok(syncedmem_create(SIZE, &fresh));
    assert_ok(syncedmem_cpu_data(fresh, &pointer));
    assert_ok(syncedmem_async_gpu_push(fresh, stream));
    assert_ok(syncedmem_gpu_data(fresh, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, 0));
    syncedmem_release(fresh);
}

/* Kernels on the default stream still read what the push is about to replace. */
Test(streams, a_push_does_not_overtake_the_default_stream)
{
    syncedmem_stream *handle;
    const void *pointer;
    assert_ok(syncedmem_stream_default(sim(0), &handle));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    gate_put(&gate, handle);
    cr_assert(stream_read(handle, pointer, seen, SIZE));
    gate_open_later(&gate, LATER);
    assert_ok(syncedmem_mutable_cpu_data(buffer, &host));
    pattern_write(host, SIZE, 2);
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    assert_ok(syncedmem_wait(buffer));
    assert_ok(syncedmem_stream_wait(handle));
    cr_assert(pattern_is(seen, SIZE, 1));
    cr_assert(device_pattern_is(0, pointer, SIZE, 2));
    gate_join(&gate);
    syncedmem_stream_release(handle);
}

/* ---- What waits ---- */

/* After a push behind a gate, the call returns only once the gate is open. */
#define waits_for_the_push(call)                                                                   \
    do {                                                                                           \
        push_behind_gate();                                                                        \
        gate_open_later(&gate, LATER);                                                             \
        assert_ok(call);                                                                           \
        cr_assert(gate_is_open(&gate), "%s did not wait", #call);                                  \
        gate_join(&gate);                                                                          \
    } while (0)

#define does_not_wait_for_the_push(call)                                                           \
    do {                                                                                           \
        push_behind_gate();                                                                        \
        gate_open_later(&gate, MUCH_LATER);                                                        \
        assert_ok(call);                                                                           \
        cr_assert(!gate_is_open(&gate), "%s waited", #call);                                       \
        gate_join(&gate);                                                                          \
    } while (0)

Test(streams, wait_waits)
{
    waits_for_the_push(syncedmem_wait(buffer));
    cr_assert_geq(stat_of(buffer, SYNCEDMEM_STAT_WAITS), 1);
    cr_assert(device_pattern_is(0, device, SIZE, 1));
}

Test(streams, stream_wait_waits)
{
    waits_for_the_push(syncedmem_stream_wait(stream));
    cr_assert(device_pattern_is(0, device, SIZE, 1));
}

Test(streams, gpu_data_waits)
{
    const void *pointer;
    waits_for_the_push(syncedmem_gpu_data(buffer, &pointer));
    cr_assert_eq(pointer, device);
    cr_assert(device_pattern_is(0, pointer, SIZE, 1));
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE), 1);
}

Test(streams, mutable_gpu_data_waits)
{
    void *pointer;
    waits_for_the_push(syncedmem_mutable_gpu_data(buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, 1));
    device_pattern_write(0, pointer, SIZE, 2);
    const void *reading;
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert(pattern_is(reading, SIZE, 2));
}

/* The host's bytes would change while being read: the call waits, the stream saw the old ones. */
Test(streams, mutable_cpu_data_waits)
{
    void *pointer;
    push_behind_gate();
    read_on_stream();
    gate_open_later(&gate, LATER);
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    cr_assert(gate_is_open(&gate));
    cr_assert_eq(pointer, host);
    pattern_write(pointer, SIZE, 7);
    check_stream_saw(1);
    gate_join(&gate);
    const void *reading;
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    cr_assert(device_pattern_is(0, reading, SIZE, 7));
}

/* Only reading, where the bytes are: nothing to wait for. */
Test(streams, cpu_data_does_not_wait)
{
    const void *pointer;
    does_not_wait_for_the_push(syncedmem_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, 1));
}

Test(streams, other_buffers_do_not_wait)
{
    syncedmem_buffer *other;
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &other));
    assert_ok(syncedmem_mutable_cpu_data(other, &pointer));
    does_not_wait_for_the_push(syncedmem_mutable_gpu_data(other, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, 0));
    syncedmem_release(other);
}

/* Releasing another buffer does not wait for this one's work. */
Test(streams, releasing_another_buffer_does_not_wait)
{
    syncedmem_buffer *other;
    const void *pointer;
    assert_ok(syncedmem_create(SIZE, &other));
    assert_ok(syncedmem_gpu_data(other, &pointer));
    does_not_wait_for_the_push((syncedmem_release(other), SYNCEDMEM_OK));
}

Test(streams, stream_create_and_release_do_not_wait)
{
    syncedmem_stream *another;
    does_not_wait_for_the_push(syncedmem_stream_create(sim(0), &another));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &host));
    does_not_wait_for_the_push((syncedmem_stream_release(another), SYNCEDMEM_OK));
}

/* ---- Streams that are given back ---- */

Test(streams, released_right_after_the_push)
{
    push_behind_gate();
    read_on_stream();
    gate_open_later(&gate, MUCH_LATER);
    syncedmem_stream_release(stream);
    stream = NULL;
    cr_assert(!gate_is_open(&gate), "stream_release waited");
    gate_join(&gate);
    const void *pointer;
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, 1));
}

static atomic_bool reached;

static void kernel_reach(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
    atomic_store(&reached, true);
}

/* Released with kernels on it: they are done all the same. */
Test(streams, work_of_a_released_stream_is_done)
{
    gate_put(&gate, stream);
    cr_assert(stream_pattern_write(stream, device, SIZE, 5));
    assert_ok(syncedmem_sim_launch(stream, kernel_reach, NULL, 0, NULL, 0));
    syncedmem_stream_release(stream);
    stream = NULL;
    gate_open(&gate);
    for (int i = 0; i < 10000 && !atomic_load(&reached); i++) {
        sleep_ms(1);
    }
    cr_assert(atomic_load(&reached));
    cr_assert(device_pattern_is(0, device, SIZE, 5));
}

Test(streams, made_and_released_many_times)
{
    for (int i = 0; i < 500; i++) {
        syncedmem_stream *another;
        assert_ok(syncedmem_stream_create(sim(0), &another));
        if (i % 2 == 0) {
            assert_ok(syncedmem_mutable_cpu_data(buffer, &host));
            assert_ok(syncedmem_async_gpu_push(buffer, another));
        }
        syncedmem_stream_release(another);
    }
}

/* The default stream stays when its handle goes, and is the same for every handle. */
Test(streams, default_handles)
{
    syncedmem_stream *one, *two;
    assert_ok(syncedmem_stream_default(sim(0), &one));
    assert_ok(syncedmem_stream_default(sim(0), &two));
    gate_put(&gate, one);
    cr_assert(stream_pattern_write(two, device, SIZE, 3));
    syncedmem_stream_release(one);
    cr_assert(stream_read(two, device, seen, SIZE));
    gate_open(&gate);
    assert_ok(syncedmem_stream_wait(two));
    cr_assert(pattern_is(seen, SIZE, 3));
    syncedmem_stream_release(two);
}

/* Streams are not ordered with each other; plain calls are with the default one. */
Test(streams, plain_calls_come_after_the_default_stream)
{
    syncedmem_stream *handle;
    const void *pointer;
    assert_ok(syncedmem_mutable_gpu_data(buffer, &device));
    assert_ok(syncedmem_stream_default(sim(0), &handle));
    gate_put(&gate, handle);
    cr_assert(stream_pattern_write(handle, device, SIZE, 6));
    gate_open_later(&gate, LATER);
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    cr_assert(gate_is_open(&gate));
    cr_assert(pattern_is(pointer, SIZE, 6));
    gate_join(&gate);
    syncedmem_stream_release(handle);
}

Test(streams, own_streams_run_beside_the_default_one)
{
    syncedmem_stream *handle;
    assert_ok(syncedmem_stream_default(sim(0), &handle));
    gate_put(&gate, handle);
    gate_open_later(&gate, MUCH_LATER);
    read_on_stream();
    assert_ok(syncedmem_stream_wait(stream));
    cr_assert(!gate_is_open(&gate));
    gate_join(&gate);
    syncedmem_stream_release(handle);
}

/* ---- What is refused ---- */

Test(streams, wrong_device)
{
    syncedmem_stream *other;
    assert_ok(syncedmem_stream_create(sim(1), &other));
    const struct figures before = figures_of(buffer);
    assert_status(syncedmem_async_gpu_push(buffer, other), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert(is_one_line(syncedmem_last_error()));
    const struct figures after = figures_of(buffer);
    cr_assert(figures_equal(&before, &after));
    syncedmem_stream_release(other);
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
}

Test(streams, wrong_states)
{
    const void *pointer;
    syncedmem_buffer *fresh;
    assert_ok(syncedmem_create(SIZE, &fresh));
    assert_status(syncedmem_async_gpu_push(fresh, stream), SYNCEDMEM_WRONG_STATE);
    cr_assert(home_is_open(fresh));
    syncedmem_release(fresh);
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    assert_status(syncedmem_async_gpu_push(buffer, stream), SYNCEDMEM_WRONG_STATE);
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    assert_status(syncedmem_async_gpu_push(buffer, stream), SYNCEDMEM_WRONG_STATE);
    assert_ok(syncedmem_mutable_gpu_data(buffer, &device));
    assert_status(syncedmem_async_gpu_push(buffer, NULL), SYNCEDMEM_WRONG_STATE);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE), 1);
}

/* A buffer without a home gets the stream's device, whatever is current. */
Test(streams, the_streams_device_becomes_the_home)
{
    syncedmem_stream *other;
    syncedmem_buffer *fresh;
    const void *pointer;
    assert_ok(syncedmem_stream_create(sim(1), &other));
    assert_ok(syncedmem_create(SIZE, &fresh));
    assert_ok(syncedmem_cpu_data(fresh, &pointer));
    assert_ok(syncedmem_async_gpu_push(fresh, other));
    cr_assert(home_is_fixed_at(fresh, 1));
    assert_ok(syncedmem_gpu_data(fresh, &pointer));
    cr_assert(device_knows(1, pointer) && device_pattern_is(1, pointer, SIZE, 0));
    syncedmem_release(fresh);
    /* A home that was only chosen binds the push as well. */
    assert_ok(syncedmem_create(SIZE, &fresh));
    assert_ok(syncedmem_set_home(fresh, sim(0)));
    assert_ok(syncedmem_cpu_data(fresh, &pointer));
    assert_status(syncedmem_async_gpu_push(fresh, other), SYNCEDMEM_INVALID_ARGUMENT);
    assert_ok(syncedmem_async_gpu_push(fresh, NULL));
    cr_assert(home_is_fixed_at(fresh, 0));
    syncedmem_release(fresh);
    syncedmem_stream_release(other);
}
