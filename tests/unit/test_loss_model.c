/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device is lost at each of the operations of a program, one after the other, and the
 * program goes on. No call may say anything but OK, DEVICE_LOST or DATA_LOST, and what is read
 * with OK is right.
 *
 * The model knows, for each byte, the value it should have and those it may have instead: after
 * a copy or fill that failed the old one too.
 */
#include <stdlib.h>

#include "support.h"

enum { BUFFERS = 3, SIZE = 192, STEPS = 120, DEVICE_KERNEL_READ = 256 };

struct cell {
    unsigned char now;
    bool may[256];
};

struct item {
    syncedmem_buffer *buffer;
    struct cell cells[SIZE];
};

struct world {
    struct item items[BUFFERS];
    syncedmem_stream *stream;
    uint64_t random;
    unsigned char next_value;
    bool lost; /* at some time */
    bool restores;
    int adopted, told;
    int step;
    unsigned seed, nth; /* to find the step again */
};

static struct world world;

static unsigned dice(unsigned sides)
{
    world.random = world.random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(world.random >> 33) % sides;
}

/* ---- The model ---- */

static void set_cell(struct cell *cell, unsigned char value)
{
    *cell = (struct cell){.now = value};
    cell->may[value] = true;
}

static void may_be(struct cell *cell, unsigned char value)
{
    cell->now = value;
    cell->may[value] = true;
}

static void set_range(struct item *item, size_t from, size_t length, unsigned char value)
{
    for (size_t i = from; i < from + length; i++) {
        set_cell(&item->cells[i], value);
    }
}

/* True for a call that did it. A loss is noted, and no other failure is allowed. */
static bool did(const char *call, syncedmem_status_t status)
{
    if (status == SYNCEDMEM_DEVICE_LOST || status == SYNCEDMEM_DATA_LOST) {
        world.lost = true;
    } else {
        cr_assert_eq(status, SYNCEDMEM_OK, "seed %u, operation %u, step %d: %s: %s (%s)",
                     world.seed, world.nth, world.step, call, syncedmem_status_name(status),
                     syncedmem_last_error());
    }
    return status == SYNCEDMEM_OK;
}

#define DID(call) did(#call, (call))

/* What was read, with OK. */
static void check(struct item *item, const unsigned char *bytes, size_t from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        struct cell *cell = &item->cells[from + i];
        cr_assert(world.lost ? cell->may[bytes[i]] : cell->now == bytes[i],
                  "seed %u, operation %u, step %d: byte %zu is %u, not %u", world.seed, world.nth,
                  world.step, from + i, bytes[i], cell->now);
        set_cell(cell, bytes[i]);
    }
}

/* ---- Kernels ---- */

struct setting {
    size_t length;
    unsigned char value;
    unsigned char *read_to; /* instead of writing */
};

static void kernel_set(void *arguments, void *const *addresses, size_t count)
{
    const struct setting *setting = arguments;
    (void)count;
    if (setting->read_to != NULL) {
        memcpy(setting->read_to, addresses[0], setting->length);
    } else {
        memset(addresses[0], setting->value, setting->length);
    }
}

static bool launch(syncedmem_stream *stream, const void *address, struct setting setting)
{
    return DID(syncedmem_sim_launch(stream, kernel_set, &setting, sizeof setting, &address, 1));
}

static bool device_set(const void *address, size_t length, unsigned char value)
{
    syncedmem_stream *stream;
    if (!DID(syncedmem_stream_default(sim(0), &stream))) {
        return false;
    }
    const bool done = launch(stream, address, (struct setting){length, value, NULL}) &&
                      DID(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
    return done;
}

/* ---- Steps ---- */

struct part {
    struct item *item;
    size_t from, length;
    unsigned char value;
};

static void step_cpu_read(const struct part *part)
{
    const void *pointer;
    if (DID(syncedmem_cpu_data(part->item->buffer, &pointer))) {
        check(part->item, pointer, 0, SIZE);
    }
}

static void step_cpu_write(const struct part *part)
{
    void *pointer;
    if (DID(syncedmem_mutable_cpu_data(part->item->buffer, &pointer))) {
        check(part->item, pointer, 0, SIZE);
        memset((unsigned char *)pointer + part->from, part->value, part->length);
        set_range(part->item, part->from, part->length, part->value);
    }
}

static void step_gpu_read(const struct part *part)
{
    static unsigned char bytes[DEVICE_KERNEL_READ];
    const void *pointer;
    syncedmem_stream *stream;
    if (!DID(syncedmem_gpu_data(part->item->buffer, &pointer)) ||
        !DID(syncedmem_stream_default(sim(0), &stream))) {
        return;
    }
    if (launch(stream, pointer, (struct setting){SIZE, 0, bytes}) &&
        DID(syncedmem_stream_wait(stream))) {
        check(part->item, bytes, 0, SIZE);
    }
    syncedmem_stream_release(stream);
}

/* Where the kernel did not run the bytes are lost, for the device held them alone. */
static void step_gpu_write(const struct part *part)
{
    void *pointer;
    if (DID(syncedmem_mutable_gpu_data(part->item->buffer, &pointer))) {
        (void)device_set((unsigned char *)pointer + part->from, part->length, part->value);
        set_range(part->item, part->from, part->length, part->value);
    }
}

static void step_view(const struct part *part)
{
    syncedmem_buffer *view;
    void *pointer;
    if (!DID(syncedmem_view(part->item->buffer, part->from, part->length, &view))) {
        return;
    }
    if (dice(2) == 0) {
        if (DID(syncedmem_mutable_cpu_data(view, &pointer))) {
            check(part->item, pointer, part->from, part->length);
            memset(pointer, part->value, part->length);
            set_range(part->item, part->from, part->length, part->value);
        }
    } else if (DID(syncedmem_mutable_gpu_data(view, &pointer))) {
        (void)device_set(pointer, part->length, part->value);
        set_range(part->item, part->from, part->length, part->value);
    }
    syncedmem_release(view);
}

static void step_host_lease(const struct part *part)
{
    syncedmem_token_t token;
    void *pointer;
    const syncedmem_mode_t mode = (syncedmem_mode_t)(1 + dice(3));
    syncedmem_buffer *buffer = part->item->buffer;
    if (!DID(syncedmem_begin(buffer, syncedmem_host(), mode, part->from, part->length, NULL,
                             &pointer, NULL, &token))) {
        return;
    }
    if (mode != SYNCEDMEM_WRITE) {
        check(part->item, pointer, part->from, part->length);
    }
    if (mode != SYNCEDMEM_READ) {
        memset(pointer, part->value, part->length);
        set_range(part->item, part->from, part->length, part->value);
    }
    cr_assert(syncedmem_end(buffer, token) == SYNCEDMEM_OK);
}

/* What is read and written is as before where the device is lost before the bytes arrived there. */
static void write_at_device(const struct part *part, syncedmem_mode_t mode)
{
    for (size_t i = part->from; i < part->from + part->length; i++) {
        if (mode == SYNCEDMEM_WRITE) {
            set_cell(&part->item->cells[i], part->value);
        } else {
            may_be(&part->item->cells[i], part->value);
        }
    }
}

/* Nothing is waited for. */
static void step_device_lease(const struct part *part)
{
    syncedmem_token_t token;
    void *pointer;
    const syncedmem_mode_t mode = (syncedmem_mode_t)(1 + dice(3));
    syncedmem_buffer *buffer = part->item->buffer;
    if (!DID(syncedmem_begin(buffer, sim(0), mode, part->from, part->length, world.stream, &pointer,
                             NULL, &token))) {
        return;
    }
    if (mode != SYNCEDMEM_READ) {
        (void)launch(world.stream, pointer, (struct setting){part->length, part->value, NULL});
        write_at_device(part, mode);
    }
    cr_assert(syncedmem_end(buffer, token) == SYNCEDMEM_OK);
}

static void step_prefetch(const struct part *part)
{
    syncedmem_place *place = dice(2) == 0 ? syncedmem_host() : sim(0);
    (void)DID(syncedmem_prefetch(part->item->buffer, place, part->from, part->length,
                                 dice(3) == 0 ? NULL : world.stream));
}

static void step_push(const struct part *part)
{
    if (syncedmem_head(part->item->buffer) == SYNCEDMEM_HEAD_AT_CPU) {
        const syncedmem_status_t status =
            syncedmem_async_gpu_push(part->item->buffer, dice(2) == 0 ? NULL : world.stream);
        if (status != SYNCEDMEM_WRONG_STATE) { /* a loss may have come in between */
            (void)did("push", status);
        }
    }
}

static void step_fill(const struct part *part)
{
    const bool done =
        DID(syncedmem_fill(part->item->buffer, part->from, part->length, part->value));
    for (size_t i = part->from; i < part->from + part->length; i++) {
        if (done) {
            set_cell(&part->item->cells[i], part->value);
        } else {
            may_be(&part->item->cells[i], part->value);
        }
    }
}

static void step_copy(const struct part *part)
{
    struct item *source = &world.items[dice(BUFFERS)];
    const size_t at = dice((unsigned)(SIZE - part->length + 1));
    static struct cell cells[SIZE];
    memcpy(cells, source->cells, sizeof cells);
    const bool done =
        DID(syncedmem_copy(part->item->buffer, part->from, source->buffer, at, part->length));
    for (size_t i = 0; i < part->length; i++) {
        struct cell *cell = &part->item->cells[part->from + i];
        const struct cell *from = &cells[at + i];
        for (unsigned value = 0; value < 256; value++) {
            cell->may[value] = (!done && cell->may[value]) || from->may[value];
        }
        cell->now = from->now;
    }
}

static void step_drop(const struct part *part)
{
    (void)DID(syncedmem_drop(part->item->buffer, dice(2) == 0 ? syncedmem_host() : sim(0)));
}

static void step_wait(const struct part *part)
{
    (void)DID(syncedmem_wait(part->item->buffer));
}

static void count_release(void *user)
{
    (void)user;
    world.told++;
}

static void step_adopt(const struct part *part)
{
    static unsigned char blocks[BUFFERS][SIZE];
    const size_t index = (size_t)(part->item - world.items);
    const syncedmem_status_t dropped = syncedmem_drop(part->item->buffer, syncedmem_host());
    if (!did("drop", dropped)) {
        return; /* the block may be the buffer's */
    }
    memset(blocks[index], part->value, SIZE);
    if (DID(syncedmem_adopt(part->item->buffer, syncedmem_host(), blocks[index], SIZE,
                            dice(2) == 0 ? SYNCEDMEM_ADOPT_READ_ONLY : 0, NULL, count_release,
                            NULL))) {
        world.adopted++;
        set_range(part->item, 0, SIZE, part->value);
    }
}

/* The block is freed when the device lets go of it. */
static void free_block(void *block)
{
    world.told++;
    cr_assert(syncedmem_sim_free(sim(0), block) != SYNCEDMEM_INVALID_ARGUMENT);
}

static void step_adopt_device(const struct part *part)
{
    void *block;
    if (!DID(syncedmem_sim_alloc(sim(0), SIZE, &block))) {
        return;
    }
    if (!device_set(block, SIZE, part->value) ||
        !DID(
            syncedmem_adopt(part->item->buffer, sim(0), block, SIZE, 0, NULL, free_block, block))) {
        (void)syncedmem_sim_free(sim(0), block);
        return;
    }
    world.adopted++;
    set_range(part->item, 0, SIZE, part->value);
}

static void step_again(const struct part *part)
{
    syncedmem_release(part->item->buffer);
    assert_ok(syncedmem_create(SIZE, &part->item->buffer));
    if (dice(2) == 0) {
        assert_ok(syncedmem_set_host_policy(part->item->buffer, SYNCEDMEM_PINNED));
    }
    set_range(part->item, 0, SIZE, 0);
}

static void (*const steps[])(const struct part *) = {
    step_cpu_read,     step_cpu_write,    step_gpu_read,  step_gpu_write, step_view,
    step_host_lease,   step_device_lease, step_prefetch,  step_push,      step_fill,
    step_copy,         step_drop,         step_wait,      step_adopt,     step_adopt_device,
    step_device_lease, step_prefetch,     step_cpu_write, step_again};

/* ---- The program ---- */

static void renew_stream(void)
{
    syncedmem_stream *stream;
    if (DID(syncedmem_stream_create(sim(0), &stream))) {
        syncedmem_stream_release(world.stream);
        world.stream = stream;
    }
}

static void one_step(void)
{
    struct part part = {.item = &world.items[dice(BUFFERS)]};
    part.from = dice(4) == 0 ? 0 : dice(SIZE);
    part.length = dice(4) == 0 ? SIZE - part.from : 1 + dice((unsigned)(SIZE - part.from));
    world.next_value = (unsigned char)(world.next_value % 255 + 1);
    part.value = world.next_value;
    steps[dice(sizeof steps / sizeof steps[0])](&part);
    if (world.lost && world.restores && syncedmem_sim_restore(sim(0)) == SYNCEDMEM_OK) {
        renew_stream();
    }
}

/* Lost bytes are lost until they are written, and then all is well. */
static void finish(struct item *item)
{
    const void *pointer;
    for (int i = 0; i < 3; i++) {
        if (DID(syncedmem_cpu_data(item->buffer, &pointer))) {
            check(item, pointer, 0, SIZE);
        }
    }
    for (int i = 0; !DID(syncedmem_fill(item->buffer, 0, SIZE, 201)); i++) {
        cr_assert_lt(i, 2);
    }
    assert_ok(syncedmem_cpu_data(item->buffer, &pointer));
    set_range(item, 0, SIZE, 201);
    check(item, pointer, 0, SIZE);
    syncedmem_release(item->buffer);
}

/* Blocks that work still used when they were given up are freed by those who look for memory. */
static uint64_t device_bytes_in_the_end(void)
{
    for (int i = 0; i < 2000 && stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES) != 0; i++) {
        syncedmem_buffer *probe;
        const void *pointer;
        assert_ok(syncedmem_create(1, &probe));
        assert_ok(syncedmem_gpu_data(probe, &pointer));
        syncedmem_release(probe);
        sleep_ms(1); /* for the device; right at any speed */
    }
    return stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES);
}

/* False: the program was over before its n-th operation. */
static bool run_and_lose(uint64_t seed, uint64_t nth, bool restores)
{
    world = (struct world){
        .random = seed, .restores = restores, .seed = (unsigned)seed, .nth = (unsigned)nth};
    assert_ok(syncedmem_stream_create(sim(0), &world.stream));
    for (int i = 0; i < BUFFERS; i++) {
        assert_ok(syncedmem_create(SIZE, &world.items[i].buffer));
        set_range(&world.items[i], 0, SIZE, 0);
    }
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_DEVICE, nth));
    for (world.step = 0; world.step < STEPS; world.step++) {
        one_step();
    }
    for (int i = 0; i < BUFFERS; i++) {
        finish(&world.items[i]);
    }
    syncedmem_stream_release(world.stream);
    const bool was_lost = syncedmem_sim_restore(sim(0)) == SYNCEDMEM_OK || world.lost;
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_DEVICE, 0));
    cr_assert_eq(world.told, world.adopted, "%d of %d", world.told, world.adopted);
    cr_assert_eq(device_bytes_in_the_end(), 0, "seed %u, operation %u", world.seed, world.nth);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), 0);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_LEASES), 0);
    return was_lost;
}

static void lose_at_each(const char *specification, uint64_t seeds)
{
    sim_setup_with(specification);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t nth = 1;
        cr_assert_not(run_and_lose(seed, 0, false));
        while (run_and_lose(seed, nth, nth % 2 == 0)) {
            nth++;
        }
        cr_assert_gt(nth, 20, "the program has too little to lose");
    }
}

TestSuite(loss_model, .timeout = 280);

Test(loss_model, threads_of_the_device)
{
    lose_at_each("memory=4m", 8);
}

Test(loss_model, slow_transfers)
{
    lose_at_each("memory=4m,latency=20us", 3);
}

Test(loss_model, adversarial)
{
    lose_at_each("memory=4m,seed=7", 8);
}
