/* SPDX-License-Identifier: BSD-2-Clause */
/* A program drawn from a seed, from its first step to what must be true at its end. */
#include <stdio.h>
#include <string.h>

#include "world.h"

enum { STEPS_MOST = 80 };

/* ---- What steps are taken on ---- */

const char *place_name(int place)
{
    static const char *const names[PLACES] = {"host", "sim:0", "sim:1"};
    return names[place];
}

static void make_buffer(struct buffer *buffer)
{
    *buffer = (struct buffer){.identity = world.identities++,
                              .size = 1 + below(chance(30) ? 16 : SIZE_MOST)};
    say("create buffer %d of %zu bytes", buffer->identity, buffer->size);
    for (size_t i = 0; i < buffer->size; i++) {
        model_set(&buffer->bytes[i], 0);
    }
    EXPECT_OK(syncedmem_create(buffer->size, &buffer->handle));
    if (chance(50)) {
        EXPECT_OK(syncedmem_set_home(buffer->handle, world.places[1 + below(2)]));
    }
    if (chance(20)) {
        EXPECT_OK(syncedmem_set_host_policy(buffer->handle, SYNCEDMEM_PINNED));
    }
    for (int i = 0; i < VIEWS; i++) {
        struct view *view = &buffer->views[i];
        view->offset = below(buffer->size);
        view->length = 1 + below(buffer->size - view->offset);
        EXPECT_OK(syncedmem_view(buffer->handle, view->offset, view->length, &view->handle));
    }
}

/* With work in flight, and the caller's memory in use up to then. */
static void release_buffer(struct buffer *buffer)
{
    end_leases_of(buffer);
    say("release buffer %d", buffer->identity);
    for (int i = 0; i < VIEWS; i++) {
        syncedmem_release(buffer->views[i].handle);
    }
    syncedmem_release(buffer->handle);
    forget_failures(buffer);
    for (int place = 0; place < PLACES; place++) {
        block_end(&buffer->blocks[place]);
    }
    buffer->handle = NULL;
}

struct buffer *some_buffer(void)
{
    struct buffer *buffer = &world.buffers[below(BUFFERS)];
    if (buffer->handle == NULL) {
        make_buffer(buffer);
    }
    return buffer;
}

struct stream *some_stream(int place)
{
    struct stream *stream = &world.streams[below(STREAMS)];
    if (stream->handle == NULL) {
        say("create stream %td at %s", stream - world.streams, place_name(place));
        EXPECT_OK(syncedmem_stream_create(world.places[place], &stream->handle));
        stream->place = place;
    }
    return stream->place == place ? stream : NULL;
}

struct range some_range(struct buffer *buffer)
{
    struct range range = {.buffer = buffer, .handle = buffer->handle, .length_all = buffer->size};
    if (chance(40)) {
        const struct view *view = &buffer->views[below(VIEWS)];
        range.handle = view->handle;
        range.base = view->offset;
        range.length_all = view->length;
    }
    range.from = range.base;
    range.to = range.base + range.length_all;
    if (chance(60)) {
        range.from += below(range.length_all);
        range.to = range.from + 1 + below(range.to - range.from);
    }
    return range;
}

/* ---- Steps on no buffer's bytes ---- */

static bool has_lease(const struct stream *stream)
{
    for (const struct lease *lease = world.leases; lease < world.leases + LEASES; lease++) {
        if (lease->buffer != NULL && lease->stream == stream) {
            return true;
        }
    }
    return false;
}

static void step_release_stream(void)
{
    struct stream *stream = &world.streams[below(STREAMS)];
    if (stream->handle != NULL && !has_lease(stream)) {
        say("release stream %td", stream - world.streams);
        syncedmem_stream_release(stream->handle);
        stream->handle = NULL;
    }
}

static void step_wait_for_stream(void)
{
    const struct stream *stream = &world.streams[below(STREAMS)];
    if (stream->handle != NULL) {
        say("wait for stream %td", stream - world.streams);
        EXPECT_OK(syncedmem_stream_wait(stream->handle));
    }
}

static void step_release_buffer(void)
{
    struct buffer *buffer = &world.buffers[below(BUFFERS)];
    if (buffer->handle != NULL && world.identities < IDENTITIES_MOST - BUFFERS) {
        release_buffer(buffer);
    }
}

static void step_fail(void)
{
    const int place = 1 + (int)below(2);
    const uint64_t nth = 1 + below(3);
    if (world.fails) {
        world.armed++;
        say("copy %u of %s will fail late", (unsigned)nth, place_name(place));
        EXPECT_OK(syncedmem_sim_fail(world.places[place], SYNCEDMEM_SIM_FAIL_COPY_LATE, nth));
    }
}

/* ---- The program ---- */

static const struct {
    unsigned weight;
    void (*take)(void);
} steps[] = {
    {22, step_begin},
    {5, step_work},
    {6, step_end},
    {6, step_read_host},
    {6, step_write_host},
    {5, step_read_device},
    {5, step_write_device},
    {7, step_push},
    {12, step_prefetch},
    {4, step_fill},
    {5, step_copy},
    {3, step_mark},
    {4, step_drop},
    {6, step_adopt},
    {2, step_wait},
    {3, step_release_stream},
    {1, step_wait_for_stream},
    {3, step_release_buffer},
    {6, step_fail},
};

static void take_step(void)
{
    const size_t count = sizeof steps / sizeof steps[0];
    unsigned all = 0;
    for (size_t i = 0; i < count; i++) {
        all += steps[i].weight;
    }
    size_t thrown = below(all), i = 0;
    while (thrown >= steps[i].weight) {
        thrown -= steps[i++].weight;
    }
    steps[i].take();
    blocks_sweep();
}

static void set_up(uint64_t seed)
{
    char specification[80];
    snprintf(specification, sizeof specification, "devices=2,memory=4m,seed=%llu",
             (unsigned long long)seed);
    EXPECT_OK(syncedmem_sim_configure(specification));
    world.places[HOST] = syncedmem_host();
    EXPECT_OK(syncedmem_device_find("sim:0", &world.places[1]));
    EXPECT_OK(syncedmem_device_find("sim:1", &world.places[2]));
    EXPECT_OK(syncedmem_device_set_current(world.places[1]));
}

/* A failure is told once, or twice when both a work's own and another's came to be known. */
static void read_at_the_end(struct buffer *buffer)
{
    const void *pointer;
    end_leases_of(buffer);
    took(buffer, "wait", syncedmem_wait(buffer->handle), false);
    const bool lost =
        !took(buffer, "cpu_data", syncedmem_cpu_data(buffer->handle, &pointer), false);
    if (!lost) {
        read_host(buffer, pointer, 0, buffer->size, "at the end");
    }
}

static void check_memory_is_back(void)
{
    for (int place = 1; place < PLACES; place++) {
        syncedmem_stream *stream;
        syncedmem_buffer *buffer;
        const void *pointer;
        uint64_t faults;
        EXPECT_OK(syncedmem_stream_default(world.places[place], &stream));
        EXPECT_OK(syncedmem_stream_wait(stream));
        syncedmem_stream_release(stream);
        EXPECT_OK(syncedmem_create(1, &buffer));
        EXPECT_OK(syncedmem_set_home(buffer, world.places[place]));
        EXPECT_OK(syncedmem_gpu_data(buffer, &pointer));
        EXPECT_OK(syncedmem_drop(buffer, world.places[place]));
        syncedmem_release(buffer);
        EXPECT_OK(syncedmem_stream_default(world.places[place], &stream));
        EXPECT_OK(syncedmem_stream_wait(stream));
        syncedmem_stream_release(stream);
        EXPECT_OK(syncedmem_sim_faults(world.places[place], &faults));
        EXPECT(faults == 0, "%u times freed memory of %s was touched", (unsigned)faults,
               place_name(place));
    }
}

static void finish(void)
{
    for (int place = 1; place < PLACES; place++) {
        EXPECT_OK(syncedmem_sim_fail(world.places[place], SYNCEDMEM_SIM_FAIL_COPY_LATE, 0));
    }
    for (int i = 0; i < BUFFERS; i++) {
        if (world.buffers[i].handle != NULL && chance(80)) {
            read_at_the_end(&world.buffers[i]);
        }
    }
    for (int i = 0; i < BUFFERS; i++) {
        if (world.buffers[i].handle != NULL) {
            release_buffer(&world.buffers[i]);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        if (world.streams[i].handle != NULL) {
            EXPECT_OK(syncedmem_stream_wait(world.streams[i].handle));
            syncedmem_stream_release(world.streams[i].handle);
        }
    }
    check_memory_is_back();
    check_kernels();
    blocks_check();
}

const char *program_run(uint64_t seed, bool fails, bool trace)
{
    world.dice = seed * 2 + fails;
    world.fails = fails;
    world.trace = trace;
    if (setjmp(world.out) != 0) {
        return world.message;
    }
    set_up(seed);
    const unsigned steps_wanted = 10 + (unsigned)below(STEPS_MOST - 10);
    for (world.step = 1; world.step <= steps_wanted; world.step++) {
        take_step();
    }
    finish();
    return NULL;
}
