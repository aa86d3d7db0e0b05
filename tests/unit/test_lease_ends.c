/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens, what a lease keeps alive, and the order of work on streams. */
#include <stdlib.h>

#include "support.h"

TestSuite(lease_ends, .init = sim_setup, .timeout = 120);

enum { SIZE = 20000, LATER = 40 };

static syncedmem_buffer *created(size_t size)
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(size, &buffer));
    return buffer;
}

static syncedmem_token_t begun(syncedmem_buffer *buffer, syncedmem_place *place,
                               syncedmem_mode_t mode, syncedmem_stream *stream, void **out_pointer)
{
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(buffer, place, mode, 0, syncedmem_size(buffer), stream, out_pointer,
                              NULL, &token));
    return token;
}

/* ---- Tokens ---- */

Test(lease_ends, wrong_tokens)
{
    syncedmem_buffer *one = created(SIZE), *other = created(SIZE), *untouched = created(SIZE);
    void *pointer;
    const syncedmem_token_t token = begun(one, syncedmem_host(), SYNCEDMEM_WRITE, NULL, &pointer);
    const syncedmem_token_t second = begun(other, sim(0), SYNCEDMEM_READ, NULL, &pointer);
    cr_assert_neq(token, second);
    const struct figures before = figures_of(one);
    assert_status(syncedmem_end(one, 0), SYNCEDMEM_INVALID_LEASE);
    assert_status(syncedmem_end(one, second), SYNCEDMEM_INVALID_LEASE);
    assert_status(syncedmem_end(one, UINT64_MAX), SYNCEDMEM_INVALID_LEASE);
    assert_status(syncedmem_end(untouched, token), SYNCEDMEM_INVALID_LEASE);
    const struct figures after = figures_of(one);
    cr_assert(figures_equal(&before, &after));
    cr_assert_eq(stat_of(one, SYNCEDMEM_STAT_LEASES), 1);
    assert_ok(syncedmem_end(one, token));
    assert_status(syncedmem_end(one, token), SYNCEDMEM_INVALID_LEASE);
    cr_assert(is_one_line(syncedmem_last_error()));
    assert_ok(syncedmem_end(other, second));
    syncedmem_release(one);
    syncedmem_release(other);
    syncedmem_release(untouched);
}

static int by_value(const void *one, const void *other)
{
    const syncedmem_token_t a = *(const syncedmem_token_t *)one;
    const syncedmem_token_t b = *(const syncedmem_token_t *)other;
    return (a > b) - (a < b);
}

/* More than a million of one buffer, and some of others. */
Test(lease_ends, tokens_are_never_used_twice)
{
    const char *rounds = getenv("SYNCEDMEM_TEST_ROUNDS");
    const size_t count = rounds != NULL && strlen(rounds) < 3 ? 1000 : (1 << 20) + 1000;
    syncedmem_token_t *tokens = malloc(count * sizeof *tokens);
    syncedmem_buffer *buffers[3] = {created(8), created(8), created(8)};
    void *pointer;
    cr_assert_not_null(tokens);
    for (size_t i = 0; i < count; i++) {
        syncedmem_buffer *buffer = buffers[i % 100 < 98 ? 0 : i % 100 - 97];
        tokens[i] = begun(buffer, syncedmem_host(), SYNCEDMEM_READ, NULL, &pointer);
        assert_ok(syncedmem_end(buffer, tokens[i]));
    }
    qsort(tokens, count, sizeof *tokens, by_value);
    cr_assert_neq(tokens[0], 0);
    for (size_t i = 1; i < count; i++) {
        cr_assert_neq(tokens[i], tokens[i - 1]);
    }
    for (size_t i = 0; i < 3; i++) {
        syncedmem_release(buffers[i]);
    }
    free(tokens);
}

/* ---- Arguments ---- */

Test(lease_ends, refused_arguments)
{
    syncedmem_buffer *buffer = created(SIZE);
    syncedmem_stream *stream;
    void *pointer = &pointer;
    size_t offset = 1;
    syncedmem_token_t token = 1;
    assert_ok(syncedmem_stream_create(sim(1), &stream));
    for (syncedmem_mode_t mode = -1; mode < 6; mode++) {
        if (mode < SYNCEDMEM_READ || mode > SYNCEDMEM_READ_WRITE) {
            pointer = &pointer;
            offset = 1;
            token = 1;
            assert_status(
                syncedmem_begin(buffer, sim(0), mode, 0, 1, NULL, &pointer, &offset, &token),
                SYNCEDMEM_INVALID_ARGUMENT);
            cr_assert(pointer == NULL && offset == 0 && token == 0);
        }
    }
    syncedmem_place *const places[] = {sim(0), syncedmem_host()};
    for (int i = 0; i < 2; i++) {
        assert_status(syncedmem_begin(buffer, places[i], SYNCEDMEM_READ, 0, 1, stream, &pointer,
                                      NULL, &token),
                      SYNCEDMEM_INVALID_ARGUMENT);
        assert_status(syncedmem_begin(buffer, places[i], SYNCEDMEM_READ, SIZE, 1, NULL, &pointer,
                                      NULL, &token),
                      SYNCEDMEM_OUT_OF_RANGE);
        assert_status(syncedmem_begin(buffer, places[i], SYNCEDMEM_READ, 1, SIZE_MAX, NULL,
                                      &pointer, NULL, &token),
                      SYNCEDMEM_OUT_OF_RANGE);
    }
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_UNINITIALIZED);
    cr_assert(home_is_open(buffer));
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}

Test(lease_ends, null_arguments)
{
    syncedmem_buffer *buffer = created(SIZE);
    void *pointer = &pointer;
    syncedmem_token_t token = 1;
    const syncedmem_mode_t mode = SYNCEDMEM_READ;
    assert_status(syncedmem_begin(NULL, sim(0), mode, 0, 1, NULL, &pointer, NULL, &token),
                  SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert(pointer == NULL && token == 0);
    token = 1;
    assert_status(syncedmem_begin(buffer, NULL, mode, 0, 1, NULL, &pointer, NULL, &token),
                  SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_eq(token, 0);
    assert_status(syncedmem_begin(buffer, sim(0), mode, 0, 1, NULL, NULL, NULL, &token),
                  SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_begin(buffer, sim(0), mode, 0, 1, NULL, &pointer, NULL, NULL),
                  SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_end(NULL, 1), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_LEASES), 0);
    syncedmem_release(buffer);
}

Test(lease_ends, size_0)
{
    for (syncedmem_mode_t mode = SYNCEDMEM_READ; mode <= SYNCEDMEM_READ_WRITE; mode++) {
        syncedmem_buffer *buffer = created(0);
        void *host, *device;
        const void *plain;
        const syncedmem_token_t one = begun(buffer, syncedmem_host(), mode, NULL, &host);
        cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
        cr_assert_not_null(host);
        assert_ok(syncedmem_end(buffer, one));
        const syncedmem_token_t two = begun(buffer, sim(0), mode, NULL, &device);
        cr_assert_null(device);
        assert_ok(syncedmem_end(buffer, two));
        assert_ok(syncedmem_cpu_data(buffer, &plain));
        cr_assert_eq(plain, host);
        cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_HOST_ALLOCATIONS), 0);
        cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS), 0);
        syncedmem_release(buffer);
    }
}

/* ---- What a lease keeps alive ---- */

Test(lease_ends, through_any_handle_while_it_holds_the_memory)
{
    const uint64_t host_bytes = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    const uint64_t leases = stat_of(NULL, SYNCEDMEM_STAT_LEASES);
    syncedmem_buffer *buffer = created(SIZE), *view, *inner;
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_view(buffer, 100, 1000, &view));
    assert_ok(syncedmem_view(view, 10, 0, &inner));
    const syncedmem_token_t of_buffer =
        begun(buffer, syncedmem_host(), SYNCEDMEM_READ, NULL, &pointer);
    syncedmem_release(buffer);
    const syncedmem_token_t of_view = begun(view, syncedmem_host(), SYNCEDMEM_READ, NULL, &pointer);
    syncedmem_release(view);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_LEASES), leases + 2);
    cr_assert(pattern_is(pointer, 1000, 0));
    /* An empty view of elsewhere: a handle on the same memory all the same. */
    assert_ok(syncedmem_end(inner, of_buffer));
    assert_ok(syncedmem_end(inner, of_view));
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_LEASES), leases);
    assert_ok(syncedmem_cpu_data(inner, &reading));
    syncedmem_release(inner);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host_bytes);
}

/* The handle of the whole is part of the memory that the leases hold. */
Test(lease_ends, after_the_last_release)
{
    const uint64_t host_bytes = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    syncedmem_buffer *buffer = created(SIZE);
    void *one, *two;
    const syncedmem_token_t first = begun(buffer, syncedmem_host(), SYNCEDMEM_READ, NULL, &one);
    const syncedmem_token_t second = begun(buffer, sim(0), SYNCEDMEM_READ, NULL, &two);
    syncedmem_release(buffer);
    cr_assert(pattern_is(one, SIZE, 0));
    cr_assert(device_pattern_is(0, two, SIZE, 0));
    assert_ok(syncedmem_end(buffer, first));
    cr_assert(device_pattern_is(0, two, SIZE, 0));
    assert_status(syncedmem_end(buffer, first), SYNCEDMEM_INVALID_LEASE);
    assert_ok(syncedmem_end(buffer, second));
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host_bytes);
}

/* ---- Streams ---- */

struct streams {
    syncedmem_buffer *buffer;
    syncedmem_stream *one, *two;
    struct gate gate;
};

static void streams_make(struct streams *streams)
{
    streams->buffer = created(SIZE);
    assert_ok(syncedmem_stream_create(sim(0), &streams->one));
    assert_ok(syncedmem_stream_create(sim(0), &streams->two));
    gate_put(&streams->gate, streams->one);
}

static void streams_end(struct streams *streams)
{
    gate_join(&streams->gate);
    syncedmem_stream_wait(streams->one);
    syncedmem_release(streams->buffer);
    syncedmem_stream_release(streams->one);
    syncedmem_stream_release(streams->two);
}

/* A kernel that writes, behind the gate; the lease has ended. */
static void write_late(struct streams *streams, unsigned seed)
{
    void *pointer;
    const syncedmem_token_t token =
        begun(streams->buffer, sim(0), SYNCEDMEM_WRITE, streams->one, &pointer);
    cr_assert(stream_pattern_write(streams->one, pointer, SIZE, seed));
    assert_ok(syncedmem_end(streams->buffer, token));
    cr_assert(!gate_is_open(&streams->gate));
    gate_open_later(&streams->gate, LATER);
}

static void check_seen_by(struct streams *streams, syncedmem_stream *stream)
{
    static unsigned char seen[SIZE];
    void *pointer;
    const syncedmem_token_t token =
        begun(streams->buffer, sim(0), SYNCEDMEM_READ, stream, &pointer);
    cr_assert(stream_read(stream, pointer, seen, SIZE));
    assert_ok(syncedmem_end(streams->buffer, token));
    assert_ok(syncedmem_stream_wait(stream));
    cr_assert(pattern_is(seen, SIZE, 5));
}

Test(lease_ends, work_is_seen_on_every_stream)
{
    for (int which = 0; which < 3; which++) {
        struct streams streams;
        syncedmem_stream *third;
        assert_ok(syncedmem_stream_default(sim(0), &third));
        streams_make(&streams);
        write_late(&streams, 5);
        syncedmem_stream *const all[] = {streams.one, streams.two, third};
        check_seen_by(&streams, all[which]);
        streams_end(&streams);
        syncedmem_stream_release(third);
    }
}

Test(lease_ends, work_is_seen_by_plain_calls)
{
    struct streams streams;
    const void *pointer;
    streams_make(&streams);
    write_late(&streams, 6);
    assert_ok(syncedmem_cpu_data(streams.buffer, &pointer));
    cr_assert(gate_is_open(&streams.gate));
    cr_assert(pattern_is(pointer, SIZE, 6));
    assert_ok(syncedmem_gpu_data(streams.buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, 6));
    streams_end(&streams);
}

/* The stream is released, and the buffer, while the work has not begun. */
Test(lease_ends, streams_may_go_after_end)
{
    struct streams streams;
    const uint64_t free_before = device_memory_free(0);
    const void *pointer;
    streams_make(&streams);
    write_late(&streams, 7);
    syncedmem_stream_release(streams.one);
    streams.one = NULL;
    assert_ok(syncedmem_cpu_data(streams.buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, 7));
    streams_end(&streams);
    streams_make(&streams);
    write_late(&streams, 8);
    syncedmem_stream_release(streams.one);
    syncedmem_release(streams.buffer);
    streams.one = NULL;
    streams.buffer = NULL;
    streams_end(&streams);
    cr_assert(device_memory_gets_free(0, free_before));
}

/* A reader whose kernel waits sees the old bytes, whoever overwrites them. */
Test(lease_ends, later_writers_come_after_readers)
{
    static unsigned char seen[SIZE];
    for (int writer = 0; writer < 3; writer++) {
        struct streams streams;
        void *pointer;
        const void *reading;
        streams_make(&streams);
        const syncedmem_token_t filled =
            begun(streams.buffer, sim(0), SYNCEDMEM_WRITE, streams.two, &pointer);
        cr_assert(stream_pattern_write(streams.two, pointer, SIZE, 3));
        assert_ok(syncedmem_end(streams.buffer, filled));
        const syncedmem_token_t token =
            begun(streams.buffer, sim(0), SYNCEDMEM_READ, streams.one, &pointer);
        cr_assert(stream_read(streams.one, pointer, seen, SIZE));
        assert_ok(syncedmem_end(streams.buffer, token));
        gate_open_later(&streams.gate, LATER);
        if (writer == 0) {
            assert_ok(syncedmem_fill(streams.buffer, 0, SIZE, 9));
        } else {
            const syncedmem_token_t host =
                begun(streams.buffer, syncedmem_host(), SYNCEDMEM_WRITE, NULL, &pointer);
            memset(pointer, 9, SIZE);
            assert_ok(syncedmem_end(streams.buffer, host));
            assert_ok(writer == 1 ? syncedmem_gpu_data(streams.buffer, &reading)
                                  : syncedmem_drop(streams.buffer, syncedmem_host()));
        }
        assert_ok(syncedmem_stream_wait(streams.one));
        cr_assert(pattern_is(seen, SIZE, 3), "writer %d", writer);
        streams_end(&streams);
    }
}

/* A writer whose kernel waits does not overtake what was saved into the place meanwhile. */
Test(lease_ends, a_late_writer_does_not_undo_a_drop)
{
    struct streams streams;
    void *pointer;
    const void *reading;
    streams_make(&streams);
    write_late(&streams, 4);
    const syncedmem_token_t token =
        begun(streams.buffer, syncedmem_host(), SYNCEDMEM_WRITE, NULL, &pointer);
    pattern_write(pointer, SIZE, 5);
    assert_ok(syncedmem_end(streams.buffer, token));
    assert_ok(syncedmem_drop(streams.buffer, syncedmem_host()));
    assert_ok(syncedmem_stream_wait(streams.one));
    assert_ok(syncedmem_cpu_data(streams.buffer, &reading));
    cr_assert(pattern_is(reading, SIZE, 5));
    streams_end(&streams);
}

/* Kernels put on the default stream through a plain pointer come before a lease's on another. */
Test(lease_ends, plain_kernels_come_before)
{
    struct streams streams;
    syncedmem_stream *plain;
    void *pointer;
    const void *reading;
    struct gate gate;
    streams_make(&streams);
    gate_open_later(&streams.gate, 0);
    assert_ok(syncedmem_stream_default(sim(0), &plain));
    assert_ok(syncedmem_mutable_gpu_data(streams.buffer, &pointer));
    gate_put(&gate, plain);
    cr_assert(stream_pattern_write(plain, pointer, SIZE, 2));
    const syncedmem_token_t token =
        begun(streams.buffer, sim(0), SYNCEDMEM_READ_WRITE, streams.two, &pointer);
    cr_assert(stream_pattern_write(streams.two, pointer, SIZE, 3));
    assert_ok(syncedmem_end(streams.buffer, token));
    gate_open_later(&gate, LATER);
    assert_ok(syncedmem_cpu_data(streams.buffer, &reading));
    cr_assert(pattern_is(reading, SIZE, 3));
    gate_join(&gate);
    syncedmem_stream_release(plain);
    streams_end(&streams);
}
