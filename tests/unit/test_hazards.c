/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each earlier use of bytes, held up by a gate, and each later one: the later comes after the earlier
 * where they share bytes, and is not held up where they share none. Calls that put their work on a
 * stream return while the gate is closed.
 */
#include "support.h"

TestSuite(hazards, .init = sim_setup, .timeout = 240);

enum { SIZE = 4096, HALF = 2000, OPEN_AFTER = 5 };

enum earlier { READS, WRITES, READS_AND_WRITES, PUSH, PREFETCH, PULL, EARLIER_KINDS };

enum later {
    LEASE_READ,
    LEASE_WRITE,
    LEASE_READ_WRITE,
    OTHER_DEVICE_READ,
    OTHER_DEVICE_WRITE,
    OTHER_DEVICE_READ_WRITE,
    OTHER_DEVICE_PREFETCH,
    HOST_READ, /* from here on calls may have to wait */
    HOST_WRITE,
    PLAIN_WRITE,
    FILL,
    LATER_KINDS
};

struct scene {
    syncedmem_buffer *buffer;
    syncedmem_stream *gated;
    syncedmem_stream *beside;
    syncedmem_stream *other; /* of the other device */
    struct gate gate;
    bool has_seen;
    unsigned char seen[SIZE]; /* by the earlier use's kernel */
    bool has_got;
    unsigned char got[SIZE]; /* by the later one's */
    unsigned char bytes[SIZE];
};

/* ---- The scene ---- */

static void write_whole(syncedmem_buffer *buffer, unsigned seed)
{
    void *pointer;
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, seed);
}

/* Where the bytes are at the beginning: pushes start from the host, pulls from the device. */
static void scene_make(struct scene *scene, enum earlier earlier)
{
    memset(scene, 0, sizeof *scene);
    assert_ok(syncedmem_create(SIZE, &scene->buffer));
    assert_ok(syncedmem_set_home(scene->buffer, sim(0)));
    write_whole(scene->buffer, 1);
    pattern_write(scene->bytes, SIZE, 1);
    if (earlier != PUSH && earlier != PREFETCH) {
        assert_ok(syncedmem_prefetch(scene->buffer, sim(0), 0, SIZE, NULL));
        assert_ok(syncedmem_wait(scene->buffer));
    }
    if (earlier == PULL) {
        assert_ok(syncedmem_drop(scene->buffer, syncedmem_host()));
    }
    assert_ok(syncedmem_stream_create(sim(0), &scene->gated));
    assert_ok(syncedmem_stream_create(sim(0), &scene->beside));
    assert_ok(syncedmem_stream_create(sim(1), &scene->other));
    gate_put(&scene->gate, scene->gated);
}

static void scene_end(struct scene *scene)
{
    syncedmem_stream_release(scene->gated);
    syncedmem_stream_release(scene->beside);
    syncedmem_stream_release(scene->other);
    syncedmem_release(scene->buffer);
}

static void lease_on(struct scene *scene, syncedmem_stream *stream, syncedmem_mode_t mode,
                     size_t from, size_t to, unsigned char *read, unsigned seed)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(scene->buffer, syncedmem_stream_place(stream), mode, from, to - from,
                              stream, &pointer, NULL, &token));
    if (mode != SYNCEDMEM_WRITE) {
        cr_assert(stream_read(stream, pointer, read, to - from));
    }
    if (mode != SYNCEDMEM_READ) {
        cr_assert(stream_pattern_write(stream, pointer, to - from, seed));
    }
    assert_ok(syncedmem_end(scene->buffer, token));
}

static void use_earlier(struct scene *scene, enum earlier earlier)
{
    syncedmem_buffer *view;
    switch (earlier) {
    case PUSH:
        assert_ok(syncedmem_view(scene->buffer, 0, HALF, &view));
        assert_ok(syncedmem_async_gpu_push(view, scene->gated));
        syncedmem_release(view);
        return;
    case PREFETCH:
        assert_ok(syncedmem_prefetch(scene->buffer, sim(0), 0, HALF, scene->gated));
        return;
    case PULL:
        assert_ok(syncedmem_prefetch(scene->buffer, syncedmem_host(), 0, HALF, scene->gated));
        return;
    default:
        lease_on(scene, scene->gated, (syncedmem_mode_t)earlier + SYNCEDMEM_READ, 0, HALF,
                 scene->seen, 2);
        scene->has_seen = earlier != WRITES;
        if (earlier != READS) {
            pattern_write(scene->bytes, HALF, 2);
        }
    }
}

/* ---- The later use ---- */

static void lease_on_host(struct scene *scene, syncedmem_mode_t mode, size_t from, size_t to)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(scene->buffer, syncedmem_host(), mode, from, to - from, NULL,
                              &pointer, NULL, &token));
    if (mode == SYNCEDMEM_READ) {
        cr_assert_arr_eq(pointer, scene->bytes + from, to - from);
    } else {
        pattern_write(pointer, to - from, 3);
    }
    assert_ok(syncedmem_end(scene->buffer, token));
}

static void write_plainly(struct scene *scene, size_t from, size_t to)
{
    syncedmem_buffer *view;
    void *pointer;
    assert_ok(syncedmem_view(scene->buffer, from, to - from, &view));
    assert_ok(syncedmem_mutable_cpu_data(view, &pointer));
    cr_assert_arr_eq(pointer, scene->bytes + from, to - from);
    pattern_write(pointer, to - from, 3);
    syncedmem_release(view);
}

static void use_on_device(struct scene *scene, enum later later, size_t from, size_t to)
{
    const bool other = later >= OTHER_DEVICE_READ;
    const syncedmem_mode_t mode =
        (syncedmem_mode_t)(later - (other ? OTHER_DEVICE_READ : LEASE_READ)) + SYNCEDMEM_READ;
    lease_on(scene, other ? scene->other : scene->beside, mode, from, to, scene->got, 3);
    scene->has_got = mode != SYNCEDMEM_WRITE;
}

static void use_later(struct scene *scene, enum later later, size_t from, size_t to)
{
    switch (later) {
    case OTHER_DEVICE_PREFETCH:
        assert_ok(syncedmem_prefetch(scene->buffer, sim(1), from, to - from, scene->other));
        return;
    case HOST_READ:
        lease_on_host(scene, SYNCEDMEM_READ, from, to);
        return;
    case HOST_WRITE:
        lease_on_host(scene, SYNCEDMEM_WRITE, from, to);
        return;
    case PLAIN_WRITE:
        write_plainly(scene, from, to);
        return;
    case FILL:
        assert_ok(syncedmem_fill(scene->buffer, from, to - from, 3));
        return;
    default:
        use_on_device(scene, later, from, to);
    }
}

static bool writes(enum later later)
{
    return later != LEASE_READ && later != OTHER_DEVICE_READ && later != OTHER_DEVICE_PREFETCH &&
           later != HOST_READ;
}

/* ---- Both ---- */

/* Without the gate being opened: a call that waits behind it ends in the test's timeout. */
static void take_both(struct scene *scene, enum later later, size_t from, size_t to)
{
    const bool is_apart = from >= HALF;
    const bool opens = later >= HOST_READ && !is_apart;
    const uint64_t waits = stat_of(scene->buffer, SYNCEDMEM_STAT_WAITS);
    const uint64_t stream_waits = stat_of(scene->buffer, SYNCEDMEM_STAT_STREAM_WAITS);
    if (opens) {
        gate_open_later(&scene->gate, OPEN_AFTER);
    }
    use_later(scene, later, from, to);
    if (opens) {
        gate_join(&scene->gate);
        return;
    }
    cr_assert(!gate_is_open(&scene->gate));
    cr_assert_eq(stat_of(scene->buffer, SYNCEDMEM_STAT_WAITS), waits);
    if (is_apart) {
        cr_assert_eq(stat_of(scene->buffer, SYNCEDMEM_STAT_STREAM_WAITS), stream_waits);
    }
    gate_open(&scene->gate);
}

static void check_pair(enum earlier earlier, enum later later, size_t from, size_t to)
{
    struct scene scene;
    const void *pointer;
    unsigned char before[SIZE];
    pattern_write(before, SIZE, 1);
    scene_make(&scene, earlier);
    use_earlier(&scene, earlier);
    take_both(&scene, later, from, to);
    assert_ok(syncedmem_wait(scene.buffer));
    cr_assert(!scene.has_seen || memcmp(scene.seen, before, HALF) == 0, "%d %d %zu: earlier",
              (int)earlier, (int)later, from);
    cr_assert(!scene.has_got || memcmp(scene.got, scene.bytes + from, to - from) == 0,
              "%d %d %zu: later", (int)earlier, (int)later, from);
    if (later == FILL) {
        memset(scene.bytes + from, 3, to - from);
    } else if (writes(later)) {
        pattern_write(scene.bytes + from, to - from, 3);
    }
    assert_ok(syncedmem_cpu_data(scene.buffer, &pointer));
    cr_assert_arr_eq(pointer, scene.bytes, SIZE, "%d %d %zu", (int)earlier, (int)later, from);
    scene_end(&scene);
}

static void check_all(size_t from, size_t to)
{
    for (int earlier = 0; earlier < EARLIER_KINDS; earlier++) {
        for (int later = 0; later < LATER_KINDS; later++) {
            check_pair((enum earlier)earlier, (enum later)later, from, to);
        }
    }
}

Test(hazards, same_range)
{
    check_all(0, HALF);
}

Test(hazards, overlapping_ranges)
{
    check_all(1000, 3000);
}

Test(hazards, disjoint_ranges)
{
    check_all(HALF, SIZE);
}

/* A transfer that is started while a lease is open, around its range, has not ended when the lease's
 * work has. */
Test(hazards, started_while_a_lease_was_open)
{
    struct scene scene;
    void *pointer;
    syncedmem_token_t token;
    scene_make(&scene, PUSH);
    assert_ok(syncedmem_begin(scene.buffer, sim(0), SYNCEDMEM_READ, 1000, 500, scene.beside,
                              &pointer, NULL, &token));
    assert_ok(syncedmem_prefetch(scene.buffer, sim(0), 0, SIZE, scene.gated));
    assert_ok(syncedmem_end(scene.buffer, token));
    assert_ok(syncedmem_stream_wait(scene.beside));
    lease_on_host(&scene, SYNCEDMEM_READ, HALF, SIZE); /* looks after what has ended */
    gate_open_later(&scene.gate, OPEN_AFTER);
    write_plainly(&scene, HALF, SIZE);
    cr_assert(gate_is_open(&scene.gate));
    gate_join(&scene.gate);
    scene_end(&scene);
}

/* ---- Two threads ---- */

static void *wait_for_all(void *argument)
{
    const struct scene *scene = argument;
    return syncedmem_wait(scene->buffer) == SYNCEDMEM_OK ? argument : NULL;
}

static void *lease_at_host(void *argument)
{
    const struct scene *scene = argument;
    void *pointer;
    syncedmem_token_t token;
    if (syncedmem_begin(scene->buffer, syncedmem_host(), SYNCEDMEM_READ, 0, HALF, NULL, &pointer,
                        NULL, &token) != SYNCEDMEM_OK) {
        return NULL;
    }
    return syncedmem_end(scene->buffer, token) == SYNCEDMEM_OK ? argument : NULL;
}

static void *fill_half(void *argument)
{
    const struct scene *scene = argument;
    return syncedmem_fill(scene->buffer, 0, HALF, 5) == SYNCEDMEM_OK ? argument : NULL;
}

/* The lock is not held by the one that waits. */
Test(hazards, another_thread_goes_on_beside_one_that_waits)
{
    void *(*const waits[])(void *) = {wait_for_all, lease_at_host, fill_half};
    for (int i = 0; i < 3; i++) {
        struct scene scene;
        pthread_t waiting;
        void *answer;
        scene_make(&scene, READS);
        use_earlier(&scene, READS_AND_WRITES);
        const uint64_t before = stat_of(NULL, SYNCEDMEM_STAT_WAITS);
        cr_assert_eq(pthread_create(&waiting, NULL, waits[i], &scene), 0);
        while (stat_of(NULL, SYNCEDMEM_STAT_WAITS) == before) { /* takes no lock of the buffer's */
            sleep_ms(1);
        }
        lease_on_host(&scene, SYNCEDMEM_READ, HALF, SIZE);
        write_plainly(&scene, HALF, SIZE);
        cr_assert(!gate_is_open(&scene.gate));
        gate_open(&scene.gate);
        pthread_join(waiting, &answer);
        cr_assert_not_null(answer);
        scene_end(&scene);
    }
}

/* ---- Work that is no concern of the buffer's ---- */

static syncedmem_buffer *newest_at_device(void)
{
    syncedmem_buffer *buffer;
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(
        syncedmem_begin(buffer, sim(0), SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer, NULL, &token));
    device_pattern_write(0, pointer, SIZE, 1);
    assert_ok(syncedmem_end(buffer, token));
    assert_ok(syncedmem_wait(buffer));
    return buffer;
}

/* Kernels of others on the default stream are waited for only where a plain call gave a pointer out. */
Test(hazards, the_default_stream_is_for_plain_calls)
{
    syncedmem_buffer *leased = newest_at_device(), *filled = newest_at_device();
    syncedmem_buffer *source = newest_at_device(), *dropped = newest_at_device();
    syncedmem_stream *default_stream;
    struct scene scene = {.buffer = leased};
    const void *pointer;
    pattern_write(scene.bytes, SIZE, 1);
    assert_ok(syncedmem_stream_default(sim(0), &default_stream));
    gate_put(&scene.gate, default_stream);
    lease_on_host(&scene, SYNCEDMEM_READ, 0, HALF);
    assert_ok(syncedmem_fill(filled, 0, HALF, 5));
    assert_ok(syncedmem_copy(filled, HALF, source, 0, 100));
    assert_ok(syncedmem_drop(dropped, sim(0)));
    cr_assert(!gate_is_open(&scene.gate));
    gate_open_later(&scene.gate, OPEN_AFTER);
    assert_ok(syncedmem_cpu_data(source, &pointer));
    cr_assert(gate_is_open(&scene.gate));
    gate_join(&scene.gate);
    syncedmem_release(leased);
    syncedmem_release(filled);
    syncedmem_release(source);
    syncedmem_release(dropped);
    syncedmem_stream_release(default_stream);
}

/* ---- The end of memory ---- */

/* A device that is full of blocks in use has room when their work has ended. */
Test(hazards, released_memory_comes_back)
{
    enum { LARGE = 40 << 20 };
    const uint64_t free_before = device_memory_free(0);
    syncedmem_buffer *one, *other;
    syncedmem_stream *stream;
    struct gate gate;
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_create(LARGE, &one));
    assert_ok(syncedmem_create(LARGE, &other));
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    assert_ok(
        syncedmem_begin(one, sim(0), SYNCEDMEM_WRITE, 0, LARGE, stream, &pointer, NULL, &token));
    assert_ok(syncedmem_end(one, token));
    syncedmem_release(one);
    cr_assert(!gate_is_open(&gate));
    cr_assert_leq(device_memory_free(0), free_before - LARGE);
    gate_open_later(&gate, OPEN_AFTER);
    assert_ok(
        syncedmem_begin(other, sim(0), SYNCEDMEM_WRITE, 0, LARGE, NULL, &pointer, NULL, &token));
    cr_assert(gate_is_open(&gate));
    gate_join(&gate);
    assert_ok(syncedmem_end(other, token));
    syncedmem_release(other);
    syncedmem_stream_release(stream);
}

/* ---- On the simulator that does everything late ---- */

static void late_sim(void)
{
    assert_ok(syncedmem_sim_configure("seed=11,memory=64m"));
}

TestSuite(late_hazards, .init = late_sim, .timeout = 240);

/* BVLC/caffe PR 2998: a batch is pushed on one stream while another one is read. */
Test(late_hazards, batches_do_not_mix)
{
    enum { BATCH = 3000, ROUNDS = 1000 };
    static unsigned char got[ROUNDS][BATCH];
    syncedmem_buffer *batch[2];
    syncedmem_stream *pushing, *reading;
    void *pointer;
    syncedmem_token_t token;
    for (int i = 0; i < 2; i++) {
        assert_ok(syncedmem_create(BATCH, &batch[i]));
        assert_ok(syncedmem_set_home(batch[i], sim(0)));
    }
    assert_ok(syncedmem_stream_create(sim(0), &pushing));
    assert_ok(syncedmem_stream_create(sim(0), &reading));
    for (unsigned round = 0; round < ROUNDS; round++) {
        syncedmem_buffer *used = batch[round % 2];
        assert_ok(syncedmem_mutable_cpu_data(used, &pointer));
        pattern_write(pointer, BATCH, round + 1);
        assert_ok(syncedmem_async_gpu_push(used, pushing));
        assert_ok(syncedmem_begin(used, sim(0), SYNCEDMEM_READ, 0, BATCH, reading, &pointer, NULL,
                                  &token));
        cr_assert(stream_read(reading, pointer, got[round], BATCH));
        assert_ok(syncedmem_end(used, token));
    }
    assert_ok(syncedmem_stream_wait(reading));
    for (unsigned round = 0; round < ROUNDS; round++) {
        cr_assert(pattern_is(got[round], BATCH, round + 1), "round %u", round);
    }
    syncedmem_release(batch[0]);
    syncedmem_release(batch[1]);
    syncedmem_stream_release(pushing);
    syncedmem_stream_release(reading);
}

/* ninfer PR 38: a pageable copy that has not landed when a stream of its own reads it. */
Test(late_hazards, pageable_copies_land_before_they_are_read)
{
    enum { ROUNDS = 200, MEGABYTE = 1 << 20 };
    static unsigned char first[ROUNDS], last[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        const size_t size = (size_t)(1 + round % 16) * MEGABYTE;
        syncedmem_buffer *buffer;
        syncedmem_stream *stream;
        void *pointer;
        syncedmem_token_t token;
        assert_ok(syncedmem_create(size, &buffer));
        assert_ok(syncedmem_fill(buffer, 0, size, (uint8_t)(round + 1)));
        assert_ok(syncedmem_prefetch(buffer, sim(0), 0, size, NULL));
        assert_ok(syncedmem_stream_create(sim(0), &stream));
        assert_ok(syncedmem_begin(buffer, sim(0), SYNCEDMEM_READ, 0, size, stream, &pointer, NULL,
                                  &token));
        cr_assert(stream_read(stream, pointer, &first[round], 1));
        cr_assert(stream_read(stream, (char *)pointer + size - 1, &last[round], 1));
        assert_ok(syncedmem_end(buffer, token));
        assert_ok(syncedmem_stream_wait(stream));
        cr_assert(first[round] == round + 1 && last[round] == round + 1, "round %u", round);
        syncedmem_stream_release(stream);
        syncedmem_release(buffer);
    }
}
