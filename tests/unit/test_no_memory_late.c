/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No host memory in a call that finds work which failed, was lost with its device, or still runs:
 * the call says OUT_OF_HOST_MEMORY, the work stays listed, and from then on everything happens as
 * if that call had not been.
 */
/* link: wrap-alloc */
#include <stdlib.h>

#include "core/root.h"
#include "support.h"
#include "wrap_alloc.h"

TestSuite(no_memory_late, .init = sim_setup, .timeout = 240);

enum { SIZE = 20000, BEFORE = 3, AFTER = 4, AGAIN = 3, ROUNDS_MOST = 100, OPEN_AFTER = 2 };

/* An island that only the host has, and the part of it that the work is about. */
enum { ISLAND = 1000, ISLAND_END = 3000, PART = 1500, PART_END = 2500, CROWD = 5000 };

enum scene {
    FAILED,      /* an upload that fails */
    CHAIN,       /* the same, written at the device, and copied back */
    CHAIN_CUT,   /* the same, and copied to another device, where the middle was written since */
    LOST_UPLOAD, /* an upload that has not run when the device is lost */
    LOST_PULL,   /* the same of the only newest bytes on their way to the host */
    CUT,         /* an upload of all, some of which was written since */
    SCENES
};

enum call {
    CPU_DATA,
    MUTABLE_CPU_DATA,
    GPU_DATA,
    READ_DEVICE,
    WRITE_DEVICE,
    READ_OTHER_DEVICE,
    PREFETCH,
    FILL,
    MARK_MODIFIED,
    MARK_ALL,
    DROP_HOST,
    DROP_DEVICE,
    COPY_FROM,
    COPY_ALL_FROM,
    COPY_TO,
    SET_CPU_DATA,
    VALID_BYTES,
    WAIT,
    CALLS
};

struct world {
    syncedmem_buffer *buffer;
    syncedmem_buffer *other;
    syncedmem_stream *stream;
    syncedmem_stream *beside;
    syncedmem_stream *elsewhere; /* on the other device */
    struct gate gate;
    bool has_fired;
    unsigned char adopted[SIZE];
};

/* What calls say one after the other, and what is there in the end. */
struct story {
    syncedmem_status_t said[AGAIN];
    syncedmem_status_t waiting;
    syncedmem_status_t reading;
    unsigned char bytes[SIZE];
    uint64_t host_bytes, device_bytes;
};

/* ---- The world ---- */

static void lease(struct world *world, syncedmem_place *place, syncedmem_mode_t mode, size_t from,
                  size_t to, syncedmem_stream *stream)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(world->buffer, place, mode, from, to - from, stream, &pointer, NULL,
                              &token));
    assert_ok(syncedmem_end(world->buffer, token));
}

/* The bytes stay what they were. */
static void make_newest_at_host(struct world *world, size_t from, size_t to)
{
    lease(world, syncedmem_host(), SYNCEDMEM_READ_WRITE, from, to, NULL);
}

/* The next change that may cut the map twice needs memory. */
static void crowd_map(struct world *world)
{
    const struct map *map = &world->buffer->root->body->map;
    for (size_t at = CROWD; map->count + 2 <= map->capacity; at += 32) {
        cr_assert_lt(at, SIZE - 32);
        make_newest_at_host(world, at, at + 16);
    }
}

/* Whoever takes the copy back has two pieces to cut out, which takes memory. */
static void copy_on_and_write(struct world *world)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_prefetch(world->buffer, sim(1), PART, PART_END - PART, world->elsewhere));
    assert_ok(syncedmem_begin(world->buffer, sim(1), SYNCEDMEM_WRITE, PART + 300, 100,
                              world->elsewhere, &pointer, NULL, &token));
    cr_assert(stream_pattern_write(world->elsewhere, pointer, 100, AFTER));
    assert_ok(syncedmem_end(world->buffer, token));
}

static void start(struct world *world, enum scene scene)
{
    syncedmem_place *device = sim(0);
    if (scene == LOST_PULL) {
        lease(world, device, SYNCEDMEM_READ_WRITE, ISLAND, ISLAND_END, world->stream);
        gate_put(&world->gate, world->stream);
        assert_ok(syncedmem_prefetch(world->buffer, syncedmem_host(), PART, PART_END - PART,
                                     world->stream));
        return;
    }
    make_newest_at_host(world, ISLAND, ISLAND_END);
    gate_put(&world->gate, world->stream);
    if (scene == FAILED || scene == CHAIN || scene == CHAIN_CUT)
        assert_ok(syncedmem_sim_fail(device, SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_prefetch(world->buffer, device, PART, PART_END - PART, world->stream));
    if (scene != CHAIN && scene != CHAIN_CUT)
        return;
    lease(world, device, SYNCEDMEM_READ_WRITE, PART, PART_END, world->stream);
    if (scene == CHAIN_CUT) {
        copy_on_and_write(world);
        return;
    }
    assert_ok(
        syncedmem_prefetch(world->buffer, syncedmem_host(), PART, PART_END - PART, world->stream));
}

static void start_cut(struct world *world)
{
    gate_put(&world->gate, world->stream);
    assert_ok(syncedmem_prefetch(world->buffer, sim(0), 0, SIZE, world->stream));
    lease(world, sim(0), SYNCEDMEM_WRITE, ISLAND, PART, world->stream);
}

/* `is_over`: the work has ended before the call, else it does so while the call waits. */
static void world_make(struct world *world, enum scene scene, bool is_over)
{
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &world->buffer));
    assert_ok(syncedmem_create(SIZE, &world->other));
    assert_ok(syncedmem_set_home(world->buffer, sim(0)));
    assert_ok(syncedmem_stream_create(sim(0), &world->stream));
    assert_ok(syncedmem_stream_create(sim(0), &world->beside));
    assert_ok(syncedmem_stream_create(sim(1), &world->elsewhere));
    pattern_write(world->adopted, SIZE, AFTER);
    assert_ok(syncedmem_fill(world->other, 0, SIZE, AFTER));
    assert_ok(syncedmem_mutable_cpu_data(world->buffer, &pointer));
    pattern_write(pointer, SIZE, BEFORE);
    if (scene == CUT) {
        start_cut(world);
    } else {
        lease(world, sim(0), SYNCEDMEM_READ, 0, SIZE, NULL);
        assert_ok(syncedmem_wait(world->buffer));
        start(world, scene);
        crowd_map(world);
    }
    if (scene == LOST_UPLOAD || scene == LOST_PULL)
        assert_ok(syncedmem_sim_lose(sim(0)));
    if (is_over) {
        gate_open(&world->gate);
        (void)syncedmem_stream_wait(world->stream);
    }
}

static void world_end(struct world *world, enum scene scene)
{
    gate_open(&world->gate);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 0));
    if (scene == LOST_UPLOAD || scene == LOST_PULL)
        assert_ok(syncedmem_sim_restore(sim(0)));
    syncedmem_release(world->buffer);
    syncedmem_release(world->other);
    syncedmem_stream_release(world->stream);
    syncedmem_stream_release(world->beside);
    syncedmem_stream_release(world->elsewhere);
}

/* ---- The calls ---- */

static void disarm(struct world *world)
{
    world->has_fired |= wrap_fired();
    wrap_fail_nth(0);
}

static syncedmem_status_t use_at(struct world *world, unsigned device, syncedmem_mode_t mode,
                                 syncedmem_stream *stream)
{
    void *pointer = NULL;
    syncedmem_token_t token;
    const syncedmem_status_t status = syncedmem_begin(world->buffer, sim(device), mode, PART + 100,
                                                      100, stream, &pointer, NULL, &token);
    disarm(world); /* a lease can always be ended: without memory its end waits */
    if (status != SYNCEDMEM_OK)
        return status;
    const bool is_written =
        mode != SYNCEDMEM_WRITE || stream_pattern_write(stream, pointer, 100, AFTER);
    const syncedmem_status_t ended = syncedmem_end(world->buffer, token);
    return is_written ? ended : SYNCEDMEM_DEVICE_ERROR;
}

static syncedmem_status_t call(struct world *world, enum call which)
{
    syncedmem_buffer *buffer = world->buffer;
    const void *reading;
    void *writing;
    size_t bytes;
    switch (which) {
    case CPU_DATA:
        return syncedmem_cpu_data(buffer, &reading);
    case MUTABLE_CPU_DATA:
        return syncedmem_mutable_cpu_data(buffer, &writing);
    case GPU_DATA:
        return syncedmem_gpu_data(buffer, &reading);
    case READ_DEVICE:
        return use_at(world, 0, SYNCEDMEM_READ, world->beside);
    case WRITE_DEVICE:
        return use_at(world, 0, SYNCEDMEM_WRITE, world->beside);
    case READ_OTHER_DEVICE:
        return use_at(world, 1, SYNCEDMEM_READ, world->elsewhere);
    case PREFETCH:
        return syncedmem_prefetch(buffer, sim(0), 10, SIZE - 20, world->beside);
    case FILL:
        return syncedmem_fill(buffer, PART + 10, 100, AFTER);
    case MARK_MODIFIED:
        return syncedmem_mark_modified(buffer, syncedmem_host(), PART, 10);
    case MARK_ALL:
        return syncedmem_mark_modified(buffer, syncedmem_host(), 0, SIZE);
    case DROP_HOST:
        return syncedmem_drop(buffer, syncedmem_host());
    case DROP_DEVICE:
        return syncedmem_drop(buffer, sim(0));
    case COPY_FROM:
        return syncedmem_copy(world->other, 0, buffer, PART + 10, 100);
    case COPY_ALL_FROM:
        return syncedmem_copy(world->other, 0, buffer, 0, SIZE);
    case COPY_TO:
        return syncedmem_copy(buffer, PART + 10, world->other, 0, 100);
    case SET_CPU_DATA:
        return syncedmem_set_cpu_data(buffer, world->adopted, SIZE);
    case VALID_BYTES:
        return syncedmem_valid_bytes(buffer, sim(0), 0, SIZE, &bytes);
    default:
        return syncedmem_wait(buffer);
    }
}

/* Calls that wait for nothing: the work runs until all of them have returned. */
static bool is_quick(enum scene scene, enum call which)
{
    static const bool quick[CALLS] = {
        [READ_DEVICE] = true, [WRITE_DEVICE] = true, [READ_OTHER_DEVICE] = true,
        [PREFETCH] = true,    [SET_CPU_DATA] = true, [VALID_BYTES] = true};
    const bool reads_host = which == CPU_DATA || which == COPY_FROM || which == COPY_ALL_FROM;
    return quick[which] || scene == LOST_UPLOAD || scene == LOST_PULL ||
           (scene == FAILED && reads_host); /* as does the upload */
}

/* ---- The story ---- */

/* The same call again and again, from `first` on. */
static void tell(struct world *world, enum call which, unsigned first, struct story *story)
{
    const void *pointer;
    for (unsigned i = first; i < AGAIN; i++)
        story->said[i] = call(world, which);
    gate_open(&world->gate);
    story->waiting = syncedmem_wait(world->buffer);
    memset(story->bytes, 0, SIZE);
    story->reading = syncedmem_cpu_data(world->buffer, &pointer);
    if (story->reading == SYNCEDMEM_OK)
        memcpy(story->bytes, pointer, SIZE);
    story->host_bytes = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    story->device_bytes = stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES);
}

static void compare(const struct story *story, const struct story *wanted, const char *what)
{
    for (unsigned i = 0; i < AGAIN; i++)
        cr_assert_eq(story->said[i], wanted->said[i], "%s: call %u says %s instead of %s", what, i,
                     syncedmem_status_name(story->said[i]), syncedmem_status_name(wanted->said[i]));
    cr_assert_eq(story->waiting, wanted->waiting, "%s: waiting", what);
    cr_assert_eq(story->reading, wanted->reading, "%s: reading", what);
    cr_assert(memcmp(story->bytes, wanted->bytes, SIZE) == 0, "%s: bytes", what);
    cr_assert_eq(story->host_bytes, wanted->host_bytes, "%s: host bytes", what);
    cr_assert_eq(story->device_bytes, wanted->device_bytes, "%s: device bytes", what);
}

/* Everything that the work and the call are not about is as it was; and no status but these. */
static void check_story(const struct story *story, enum call which, const char *what)
{
    if (story->reading != SYNCEDMEM_OK) {
        cr_assert_eq(story->reading, SYNCEDMEM_DATA_LOST, "%s", what);
        return;
    }
    const unsigned seed =
        which == SET_CPU_DATA && story->said[AGAIN - 1] == SYNCEDMEM_OK ? AFTER : BEFORE;
    for (size_t i = 0; i < SIZE; i++)
        cr_assert((i >= PART && i < PART_END) || story->bytes[i] == pattern_at(seed, i),
                  "%s: byte %zu", what, i);
}

static bool try_at(enum scene scene, bool is_over, enum call which, unsigned n,
                   const struct story *wanted, const char *what)
{
    static struct world world;
    static struct story story;
    world_make(&world, scene, is_over);
    const bool is_awaited = !is_over && !is_quick(scene, which);
    if (is_awaited)
        gate_open_later(&world.gate, OPEN_AFTER);
    world.has_fired = false;
    wrap_fail_nth(n);
    story.said[0] = call(&world, which);
    disarm(&world);
    const bool fired = world.has_fired;
    const bool is_missing = story.said[0] == SYNCEDMEM_OUT_OF_HOST_MEMORY;
    cr_assert(fired || !is_missing);
    cr_assert(!is_missing || is_one_line(syncedmem_last_error()));
    tell(&world, which, is_missing ? 0 : 1, &story);
    compare(&story, wanted, what);
    if (is_awaited)
        gate_join(&world.gate);
    world_end(&world, scene);
    return fired;
}

static void try_call(enum scene scene, bool is_over, enum call which)
{
    static struct world world;
    static struct story wanted;
    char what[80];
    const uint64_t free_before = device_memory_free(0);
    world_make(&world, scene, is_over);
    if (!is_over && !is_quick(scene, which))
        gate_open(&world.gate);
    tell(&world, which, 0, &wanted);
    world_end(&world, scene);
    unsigned n = 1;
    do {
        snprintf(what, sizeof what, "scene %d, %s, call %d, allocation %u", (int)scene,
                 is_over ? "over" : "running", (int)which, n);
        check_story(&wanted, which, what);
        cr_assert_lt(n, ROUNDS_MOST, "%s", what);
    } while (try_at(scene, is_over, which, n++, &wanted, what));
    cr_assert(device_memory_gets_free(0, free_before), "%s: device memory", what);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_LEASES), 0, "%s", what);
}

static void try_scene(enum scene scene)
{
    for (int is_over = 0; is_over < 2; is_over++)
        for (enum call which = 0; which < CALLS; which++)
            if (is_over || which != SET_CPU_DATA) /* waits for what runs only without memory */
                try_call(scene, is_over, which);
}

Test(no_memory_late, an_upload_that_fails)
{
    try_scene(FAILED);
}

Test(no_memory_late, and_was_copied_back)
{
    try_scene(CHAIN);
}

Test(no_memory_late, and_was_copied_on)
{
    try_scene(CHAIN_CUT);
}

Test(no_memory_late, an_upload_that_is_lost)
{
    try_scene(LOST_UPLOAD);
}

Test(no_memory_late, a_pull_that_is_lost)
{
    try_scene(LOST_PULL);
}

/* The gate stays closed for the calls that are ordered by streams. */
Test(no_memory_late, an_upload_that_is_written_over)
{
    static const enum call ordered[] = {READ_DEVICE, WRITE_DEVICE, PREFETCH};
    for (size_t i = 0; i < sizeof ordered / sizeof ordered[0]; i++)
        try_call(CUT, false, ordered[i]);
}
