/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers in many states, and calls on ranges of them: what test_range_failures.c makes fail.
 *
 * A world knows the bytes that its buffers have to hold. Its actions are on [AT, AT + LENGTH), and
 * copy from FROM on.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_RANGE_WORLD_H
#define SYNCEDMEM_TESTS_UNIT_RANGE_WORLD_H

#include "core/map.h"
#include "support.h"

enum { SIZE = 6000, AT = 900, LENGTH = 2100, FROM = 2500 };

/* ---- A world for each trial ---- */

enum state {
    FRESH,
    AT_HOST,
    AT_DEVICE,
    SPLIT,
    SPLIT_DEVICE,
    READ_ONLY,
    READ_ONLY_DEVICE,
    CROWDED,
    WORLD_STATES
};

struct world {
    syncedmem_buffer *buffer, *other;
    syncedmem_stream *stream;
    void *device_block;
    unsigned char host_block[SIZE];
    unsigned char bytes[SIZE], others[SIZE];
    syncedmem_token_t token; /* of a lease that the action ends, or has begun */
    void *to_write;          /* by the holder of that lease */
    bool to_write_at_device;
    int calls, adoptions;
};

static inline void on_release(void *user)
{
    ++*(int *)user;
}

static inline void put(struct world *world, syncedmem_place *place, size_t from, size_t length,
                       unsigned char value)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(world->buffer, place, SYNCEDMEM_WRITE, from, length, NULL, &pointer,
                              NULL, &token));
    memset(world->bytes + from, value, length);
    if (place == syncedmem_host()) {
        memset(pointer, value, length);
    } else {
        device_write(0, pointer, world->bytes + from, length);
    }
    assert_ok(syncedmem_end(world->buffer, token));
}

static inline void put_pieces(struct world *world, syncedmem_place *place, size_t pieces)
{
    const size_t step = SIZE / pieces;
    for (size_t i = 0; i < pieces; i++) {
        put(world, place, i * step + 1, step / 3, (unsigned char)(i + 1));
    }
}

static inline void give(struct world *world, bool device)
{
    assert_ok(syncedmem_adopt(world->buffer, device ? sim(0) : syncedmem_host(),
                              device ? world->device_block : world->host_block, SIZE,
                              SYNCEDMEM_ADOPT_READ_ONLY, NULL, on_release, &world->calls));
    world->adoptions++;
    pattern_write(world->bytes, SIZE, device ? 3 : 2);
}

static inline void bring_to_state(struct world *world, enum state state)
{
    if (state == AT_HOST || state == SPLIT) {
        put(world, syncedmem_host(), 0, SIZE, 9);
    }
    if (state == AT_DEVICE || state == SPLIT_DEVICE || state == CROWDED) {
        put(world, sim(0), 0, SIZE, 8);
    }
    if (state == SPLIT) {
        put_pieces(world, sim(0), 6);
    }
    if (state == SPLIT_DEVICE) {
        put_pieces(world, syncedmem_host(), 6);
    }
    if (state == READ_ONLY) {
        give(world, false);
        put_pieces(world, sim(0), 3);
    }
    if (state == READ_ONLY_DEVICE) {
        give(world, true);
        put_pieces(world, syncedmem_host(), 3);
    }
    if (state == CROWDED) {
        put_pieces(world, syncedmem_host(), (MAP_LIMIT - 1) / 2);
    }
    assert_ok(syncedmem_wait(world->buffer));
}

static inline void world_make(struct world *world, enum state state)
{
    memset(world, 0, sizeof *world);
    assert_ok(syncedmem_create(SIZE, &world->buffer));
    assert_ok(syncedmem_create(SIZE, &world->other));
    assert_ok(syncedmem_stream_create(sim(0), &world->stream));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &world->device_block));
    pattern_write(world->host_block, SIZE, 2);
    device_pattern_write(0, world->device_block, SIZE, 3);
    bring_to_state(world, state);
}

static inline void world_end(struct world *world)
{
    syncedmem_release(world->buffer);
    syncedmem_release(world->other);
    syncedmem_stream_release(world->stream);
    assert_ok(syncedmem_sim_free(sim(0), world->device_block));
    cr_assert_eq(world->calls, world->adoptions);
}

/* ---- Actions ---- */

static inline syncedmem_status_t begin(struct world *world, bool device, syncedmem_mode_t mode)
{
    void *pointer;
    const syncedmem_status_t status =
        syncedmem_begin(world->buffer, device ? sim(0) : syncedmem_host(), mode, AT, LENGTH,
                        device ? world->stream : NULL, &pointer, NULL, &world->token);
    cr_assert_eq(pointer != NULL, status == SYNCEDMEM_OK);
    cr_assert_eq(world->token != 0, status == SYNCEDMEM_OK);
    if (status == SYNCEDMEM_OK && mode == SYNCEDMEM_WRITE) {
        world->to_write = pointer;
        world->to_write_at_device = device;
    }
    return status;
}

/* What the holder of a WRITE lease has to do. Apart from begin(), as it allocates itself. */
static inline void write_leased(struct world *world)
{
    if (world->to_write == NULL) {
        return;
    }
    memset(world->bytes + AT, 0x44, LENGTH);
    if (world->to_write_at_device) {
        device_write(0, world->to_write, world->bytes + AT, LENGTH);
    } else {
        memset(world->to_write, 0x44, LENGTH);
    }
    world->to_write = NULL;
}

#define BEGIN(name, device, mode)                                                                  \
    static inline syncedmem_status_t begin_##name(struct world *world)                             \
    {                                                                                              \
        return begin(world, device, mode);                                                         \
    }
BEGIN(host_read, false, SYNCEDMEM_READ)
BEGIN(host_write, false, SYNCEDMEM_WRITE)
BEGIN(host_both, false, SYNCEDMEM_READ_WRITE)
BEGIN(device_read, true, SYNCEDMEM_READ)
BEGIN(device_write, true, SYNCEDMEM_WRITE)
BEGIN(device_both, true, SYNCEDMEM_READ_WRITE)

static inline void prepare_end(struct world *world)
{
    assert_ok(begin(world, true, SYNCEDMEM_WRITE));
    write_leased(world);
}

static inline syncedmem_status_t end(struct world *world)
{
    const syncedmem_status_t status = syncedmem_end(world->buffer, world->token);
    world->token = status == SYNCEDMEM_OK ? 0 : world->token;
    return status;
}

/* A second lease: the first one's record costs no allocation. */
static inline void prepare_second(struct world *world)
{
    put(world, syncedmem_host(), SIZE - 1, 1, 1);
    void *pointer;
    assert_ok(syncedmem_begin(world->buffer, syncedmem_host(), SYNCEDMEM_READ, 0, 10, NULL,
                              &pointer, NULL, &world->token));
}

static inline syncedmem_status_t begin_second(struct world *world)
{
    void *pointer;
    syncedmem_token_t token;
    syncedmem_status_t status = syncedmem_begin(world->buffer, sim(0), SYNCEDMEM_READ, 5, 100, NULL,
                                                &pointer, NULL, &token);
    if (status == SYNCEDMEM_OK) {
        status = syncedmem_end(world->buffer, token);
        if (status != SYNCEDMEM_OK) {
            assert_ok(syncedmem_end(world->buffer, token));
        }
    }
    return status;
}

/* A third place, whose record has to be made. */
static inline syncedmem_status_t begin_elsewhere(struct world *world)
{
    void *pointer;
    syncedmem_token_t token;
    const syncedmem_status_t status =
        syncedmem_begin(world->buffer, sim(1), SYNCEDMEM_READ, 0, 0, NULL, &pointer, NULL, &token);
    return status == SYNCEDMEM_OK ? syncedmem_end(world->buffer, token) : status;
}

static inline syncedmem_status_t adopt(struct world *world, bool device)
{
    const syncedmem_status_t status =
        syncedmem_adopt(world->buffer, device ? sim(0) : syncedmem_host(),
                        device ? world->device_block : world->host_block, SIZE, 0,
                        device ? world->stream : NULL, on_release, &world->calls);
    if (status == SYNCEDMEM_OK) {
        world->adoptions++;
        pattern_write(world->bytes, SIZE, device ? 3 : 2);
    }
    return status;
}

static inline syncedmem_status_t adopt_host(struct world *world)
{
    return adopt(world, false);
}

static inline syncedmem_status_t adopt_device(struct world *world)
{
    return adopt(world, true);
}

static inline syncedmem_status_t prefetch_host(struct world *world)
{
    return syncedmem_prefetch(world->buffer, syncedmem_host(), AT, LENGTH, world->stream);
}

static inline syncedmem_status_t prefetch_device(struct world *world)
{
    return syncedmem_prefetch(world->buffer, sim(0), AT, LENGTH, world->stream);
}

static inline syncedmem_status_t fill(struct world *world)
{
    const syncedmem_status_t status = syncedmem_fill(world->buffer, AT, LENGTH, 0x33);
    if (status == SYNCEDMEM_OK) {
        memset(world->bytes + AT, 0x33, LENGTH);
    }
    return status;
}

static inline syncedmem_status_t copy_within(struct world *world)
{
    const syncedmem_status_t status =
        syncedmem_copy(world->buffer, AT, world->buffer, FROM, LENGTH);
    if (status == SYNCEDMEM_OK) {
        memmove(world->bytes + AT, world->bytes + FROM, LENGTH);
    }
    return status;
}

static inline syncedmem_status_t copy_out(struct world *world)
{
    const syncedmem_status_t status = syncedmem_copy(world->other, AT, world->buffer, FROM, LENGTH);
    if (status == SYNCEDMEM_OK) {
        memcpy(world->others + AT, world->bytes + FROM, LENGTH);
    }
    return status;
}

static inline syncedmem_status_t drop_host(struct world *world)
{
    return syncedmem_drop(world->buffer, syncedmem_host());
}

static inline syncedmem_status_t drop_device(struct world *world)
{
    return syncedmem_drop(world->buffer, sim(0));
}

static inline syncedmem_status_t mark(struct world *world)
{
    const syncedmem_status_t status =
        syncedmem_mark_modified(world->buffer, syncedmem_host(), AT, LENGTH);
    return status == SYNCEDMEM_WRONG_STATE ? SYNCEDMEM_OK : status;
}

static inline syncedmem_status_t view(struct world *world)
{
    syncedmem_buffer *made = world->buffer;
    const syncedmem_status_t status = syncedmem_view(world->buffer, AT, LENGTH, &made);
    cr_assert_eq(made != NULL, status == SYNCEDMEM_OK);
    syncedmem_release(made);
    return status;
}

static const struct action {
    const char *name;
    syncedmem_status_t (*take)(struct world *world);
    void (*prepare)(struct world *world);
    bool old_or_new; /* of [AT, AT + LENGTH), after a failure */
    bool unspecified;
} actions[] = {
    {"begin READ at host", begin_host_read, NULL, false, false},
    {"begin WRITE at host", begin_host_write, NULL, false, false},
    {"begin READ_WRITE at host", begin_host_both, NULL, false, false},
    {"begin READ at device", begin_device_read, NULL, false, false},
    {"begin WRITE at device", begin_device_write, NULL, false, false},
    {"begin READ_WRITE at device", begin_device_both, NULL, false, false},
    {"end", end, prepare_end, false, false},
    {"begin a second", begin_second, prepare_second, false, false},
    {"begin at a third place", begin_elsewhere, NULL, false, false},
    {"adopt at host", adopt_host, NULL, false, false},
    {"adopt at device", adopt_device, NULL, false, false},
    {"prefetch to host", prefetch_host, NULL, false, false},
    {"prefetch to device", prefetch_device, NULL, false, false},
    {"fill", fill, NULL, true, false},
    {"copy within", copy_within, NULL, true, false},
    {"copy out", copy_out, NULL, false, false},
    {"drop host", drop_host, NULL, false, false},
    {"drop device", drop_device, NULL, false, false},
    {"mark_modified", mark, NULL, false, true},
    {"view", view, NULL, false, false},
};

#endif
