/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases, verbs and adoption fail at their n-th allocation or copy, for every n and from several
 * states: a status, bytes and figures as before, nothing leaked, and the same call works again.
 */
/* link: wrap-alloc */
#include "failing.h"
#include "range_world.h"

/* Both devices are in use already: how that fails is test_failures_first.c's. */
static void setup(void)
{
    syncedmem_stream *stream;
    sim_setup();
    for (unsigned device = 0; device < 2; device++) {
        assert_ok(syncedmem_stream_default(sim(device), &stream));
        syncedmem_stream_release(stream);
    }
}

TestSuite(range_failures, .init = setup, .timeout = 240);

enum { ROUNDS_MOST = 200 };

/* ---- Trials ---- */

static syncedmem_status_t take(const struct action *action, struct world *world)
{
    const syncedmem_status_t status = action->take(world);
    return status == SYNCEDMEM_OK ? syncedmem_wait(world->buffer) : status;
}

/* The byte that a failed action may have left in its range. */
static unsigned char new_byte(const struct world *world, const struct action *action, size_t index)
{
    return action->take == fill ? 0x33 : world->bytes[index + FROM - AT];
}

/* Read by a lease. `failed`: an action whose range may hold old and new bytes. */
static void check_place(struct world *world, syncedmem_buffer *buffer, bool device,
                        const unsigned char *wanted, const struct action *failed, const char *what)
{
    unsigned char copy[SIZE];
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(buffer, device ? sim(0) : syncedmem_host(), SYNCEDMEM_READ, 0, SIZE,
                              NULL, &pointer, NULL, &token));
    if (device) {
        device_read(0, pointer, copy, SIZE);
        pointer = copy;
    }
    for (size_t i = 0; i < SIZE; i++) {
        const unsigned char found = ((unsigned char *)pointer)[i];
        const bool may_be_new = failed != NULL && i >= AT && i < AT + LENGTH;
        cr_assert(found == wanted[i] || (may_be_new && found == new_byte(world, failed, i)),
                  "%s: byte %zu, device %d", what, i, device);
    }
    assert_ok(syncedmem_end(buffer, token));
}

static void check_unchanged(const struct action *action, struct world *world, const char *what)
{
    const struct action *failed = action->old_or_new ? action : NULL;
    if (action->prepare == NULL) {
        check_place(world, world->buffer, false, world->bytes, failed, what);
        check_place(world, world->buffer, true, world->bytes, failed, what);
    }
}

struct held {
    uint64_t host, device, free;
};

static struct held held_now(void)
{
    return (struct held){stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES),
                         stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES), device_memory_free(0)};
}

static void check_failed(const struct action *action, struct world *world,
                         syncedmem_head_t head_before, bool asynchronous, const char *what)
{
    cr_assert(is_one_line(syncedmem_last_error()), "%s", what);
    cr_assert_eq(stat_of(world->buffer, SYNCEDMEM_STAT_LEASES), action->prepare != NULL, "%s",
                 what);
    cr_assert_eq(syncedmem_head(world->other), SYNCEDMEM_UNINITIALIZED, "%s", what);
    if (!action->old_or_new && !asynchronous) {
        cr_assert(syncedmem_head(world->buffer) == head_before || action->take == copy_out ||
                      action->take == begin_second || action->take == drop_host ||
                      action->take == drop_device,
                  "%s: head", what);
    }
}

static void finish(const struct action *action, struct world *world, const char *what)
{
    write_leased(world);
    if (world->token != 0) {
        assert_ok(syncedmem_end(world->buffer, world->token));
    }
    if (!action->unspecified) {
        check_place(world, world->buffer, false, world->bytes, NULL, what);
        check_place(world, world->buffer, true, world->bytes, NULL, what);
    }
    check_place(world, world->other, false, world->others, NULL, what);
    world_end(world);
}

/* One trial; false when the n-th failure was not reached. `look`: between failure and retry. */
static bool try_action(const struct action *action, enum state state, enum failing failing,
                       unsigned n, bool look)
{
    static struct world world;
    char what[96];
    /* It does not wait for its transfers, and so does not see them fail. */
    if (failing == LATE_COPY && strstr(action->name, "begin") && strstr(action->name, "device")) {
        return false;
    }
    const struct held before = held_now();
    snprintf(what, sizeof what, "%s in state %d, %s %u", action->name, (int)state,
             failings[failing].name, n);
    world_make(&world, state);
    if (action->prepare != NULL) {
        action->prepare(&world);
    }
    const syncedmem_head_t head = syncedmem_head(world.buffer);
    arm(failing, n);
    const syncedmem_status_t status = take(action, &world);
    const bool fired = failing == HOST_ALLOCATION ? wrap_fired() : status != SYNCEDMEM_OK;
    arm(failing, 0);
    if (status != SYNCEDMEM_OK) {
        cr_assert_eq(status, failings[failing].status, "%s: %s (%s)", what,
                     syncedmem_status_name(status), syncedmem_last_error());
        check_failed(action, &world, head, failing == LATE_COPY, what);
        if (look) {
            check_unchanged(action, &world, what);
        }
        cr_assert_eq(take(action, &world), SYNCEDMEM_OK, "%s: again", what);
    }
    finish(action, &world, what);
    const struct held after = held_now();
    cr_assert(after.host == before.host && after.device == before.device, "%s: leaked", what);
    cr_assert_eq(after.free, before.free, "%s: leaked", what);
    return fired;
}

static void try_all(enum failing failing)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        for (int state = 0; state < WORLD_STATES; state++) {
            unsigned n = 1;
            while (n < ROUNDS_MOST &&
                   try_action(&actions[i], (enum state)state, failing, n, true) &&
                   try_action(&actions[i], (enum state)state, failing, n, false)) {
                n++;
            }
            cr_assert_lt(n, ROUNDS_MOST);
        }
    }
}

Test(range_failures, host_allocation)
{
    try_all(HOST_ALLOCATION);
}

Test(range_failures, device_allocation)
{
    try_all(DEVICE_ALLOCATION);
}

Test(range_failures, copy)
{
    try_all(COPY);
}

Test(range_failures, late_copy)
{
    try_all(LATE_COPY);
}
