/* SPDX-License-Identifier: BSD-2-Clause */
/* The world's beginning and end, its handles, and memory of the caller's. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wrap_alloc.h"

struct world world;

/* ---- Differences ---- */

void differ(const char *format, ...)
{
    va_list arguments;
    char what[640];
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(world.message, sizeof world.message, "operation %u (%s): %s", world.step,
             op_name(world.doing), what);
    longjmp(world.out, 1);
}

void trace(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%4u ", world.step);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static void list_statuses(status_set set, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < 64 && used < size; i++) {
        if ((set >> i & 1) != 0) {
            used += (size_t)snprintf(text + used, size - used, "%s%s", used == 0 ? "" : " or ",
                                     syncedmem_status_name(-i));
        }
    }
}

void expect_status(syncedmem_status_t status, status_set may, const char *what)
{
    char wanted[200];
    if (status != SYNCEDMEM_OK) {
        TRACE("  %s: %s", syncedmem_status_name(status), syncedmem_last_error());
    }
    if (status > 0 || status < -63 || (may & STATUS(status)) == 0) {
        list_statuses(may, wanted, sizeof wanted);
        differ("%s: %s instead of %s (%s)", what, syncedmem_status_name(status), wanted,
               status == SYNCEDMEM_OK ? "" : syncedmem_last_error());
    }
}

/* ---- Faults ---- */

void fault_arm(void)
{
    if (world.fault == FAULT_HOST_ALLOC) {
        wrap_fail_nth(world.fault_nth);
    } else if (world.fault != 0) {
        for (int place = 1; place < world.places; place++) {
            syncedmem_sim_fail(world.place[place], world.fault, world.fault_nth);
        }
    }
}

static bool is_fault(syncedmem_status_t status)
{
    return status == SYNCEDMEM_OUT_OF_HOST_MEMORY || status == SYNCEDMEM_OUT_OF_DEVICE_MEMORY ||
           status == SYNCEDMEM_DEVICE_ERROR;
}

syncedmem_status_t fault_disarm(syncedmem_status_t status)
{
    const int fault = world.fault;
    world.late = fault == SYNCEDMEM_SIM_FAIL_COPY_LATE;
    world.struck = fault != 0 && is_fault(status);
    world.fault = 0;
    if (fault == FAULT_HOST_ALLOC) {
        wrap_fail_nth(0);
    } else if (fault != 0) {
        for (int place = 1; place < world.places; place++) {
            syncedmem_sim_fail(world.place[place], fault, 0);
        }
    }
    return status;
}

/* ---- Beginning and end ---- */

static bool setup_place(int place)
{
    char name[16];
    snprintf(name, sizeof name, "sim:%d", place - 1);
    bool good = syncedmem_device_find(name, &world.place[place]) == SYNCEDMEM_OK;
    good = good &&
           syncedmem_stream_default(world.place[place], &world.stream[place][0]) == SYNCEDMEM_OK;
    for (int i = 1; i < STREAMS; i++) {
        good = good &&
               syncedmem_stream_create(world.place[place], &world.stream[place][i]) == SYNCEDMEM_OK;
    }
    return good && syncedmem_sim_alloc(world.place[place], SIZE_LARGEST, &world.foreign[place]) ==
                       SYNCEDMEM_OK;
}

bool world_setup(int devices)
{
    char specification[48];
    unsetenv("SYNCEDMEM_SIM");
    unsetenv("SYNCEDMEM_DEVICE");
    snprintf(specification, sizeof specification, "devices=%d,memory=64m", devices);
    bool good = syncedmem_sim_configure(specification) == SYNCEDMEM_OK;
    world.places = 1 + devices;
    world.place[PLACE_HOST] = syncedmem_host();
    world.foreign[PLACE_HOST] = calloc(1, SIZE_LARGEST);
    for (int place = 1; place < world.places; place++) {
        good = good && setup_place(place);
    }
    return good && world.foreign[PLACE_HOST] != NULL &&
           syncedmem_device_set_current(world.place[1]) == SYNCEDMEM_OK;
}

static uint64_t process_stat(syncedmem_key_t key)
{
    uint64_t figure = UINT64_MAX;
    syncedmem_stat(NULL, key, &figure);
    return figure;
}

static uint64_t memory_free(int place)
{
    uint64_t figure = UINT64_MAX;
    syncedmem_device_number(world.place[place], SYNCEDMEM_PLACE_MEMORY_FREE, &figure);
    return figure;
}

void world_begin(void)
{
    memset(world.root, 0, sizeof world.root);
    memset(world.handle, 0, sizeof world.handle);
    memset(world.lease, 0, sizeof world.lease);
    world.ended_token = 0;
    world.scattered = 0;
    world.fault = 0;
    world.struck = world.late = false;
    world.complaint = NULL;
    world.host_bytes = process_stat(SYNCEDMEM_STAT_HOST_BYTES);
    world.device_bytes = process_stat(SYNCEDMEM_STAT_DEVICE_BYTES);
    world.open_leases = process_stat(SYNCEDMEM_STAT_LEASES);
    for (int place = 1; place < world.places; place++) {
        world.memory_free[place] = memory_free(place);
    }
}

/* Reads everything at every place, for what has never been looked at. */
static void read_whole(struct handle *handle)
{
    const void *pointer;
    struct root *root = handle->root;
    syncedmem_status_t status = syncedmem_cpu_data(handle->buffer, &pointer);
    expect_status(status, MAY_OK, "cpu_data at the end");
    model_bring(&root->model, PLACE_HOST, handle->range);
    check_root(root);
    expect_host_bytes(root, pointer, handle->range);
    status = syncedmem_gpu_data(handle->buffer, &pointer);
    expect_status(status, MAY_OK, "gpu_data at the end");
    const int home = root->model.home == NO_PLACE ? 1 : root->model.home;
    model_bring(&root->model, home, handle->range);
    check_root(root);
    sight_take(root, home, 0, pointer, handle->range);
    sights_collect();
}

void world_end(void)
{
    world.fault = 0;
    for (unsigned i = 0; i < ROOTS; i++) {
        end_leases_of(&world.root[i]);
    }
    for (unsigned i = 0; i < HANDLES; i++) {
        struct handle *handle = &world.handle[i];
        if (handle->buffer != NULL) {
            check_bytes(handle->root);
            read_whole(handle);
        }
        while (handle->buffer != NULL) {
            handle_drop(handle);
        }
    }
    sights_collect();
    device_wait_all(); /* blocks that unfinished work uses are given back after it */
    EXPECT(process_stat(SYNCEDMEM_STAT_HOST_BYTES) == world.host_bytes, "host bytes leaked");
    EXPECT(process_stat(SYNCEDMEM_STAT_DEVICE_BYTES) == world.device_bytes, "device bytes leaked");
    EXPECT(process_stat(SYNCEDMEM_STAT_LEASES) == world.open_leases, "leases left open");
    for (int place = 1; place < world.places; place++) {
        EXPECT(memory_free(place) == world.memory_free[place], "device memory leaked");
    }
}

/* ---- Handles ---- */

struct handle *handle_pick(unsigned number)
{
    for (unsigned i = 0; i < HANDLES; i++) {
        struct handle *handle = &world.handle[(number + i) % HANDLES];
        if (handle->buffer != NULL) {
            return handle;
        }
    }
    return NULL;
}

struct handle *handle_of(const struct root *root, unsigned number)
{
    for (unsigned i = 0; i < HANDLES; i++) {
        struct handle *handle = &world.handle[(number + i) % HANDLES];
        if (handle->buffer != NULL && handle->root == root) {
            return handle;
        }
    }
    return NULL;
}

struct handle *handle_free_slot(void)
{
    for (unsigned i = 0; i < HANDLES; i++) {
        if (world.handle[i].buffer == NULL) {
            return &world.handle[i];
        }
    }
    return NULL;
}

struct root *root_free_slot(void)
{
    for (unsigned i = 0; i < ROOTS; i++) {
        if (!world.root[i].live) {
            return &world.root[i];
        }
    }
    return NULL;
}

unsigned number_of_handle(const struct handle *handle)
{
    return (unsigned)(handle - world.handle);
}

unsigned number_of_root(const struct root *root)
{
    return (unsigned)(root - world.root);
}

/* Gives one reference back; with the last one of the last handle the root goes. */
void handle_drop(struct handle *handle)
{
    struct root *root = handle->root;
    const bool last = handle->references == 1 && root->handles == 1;
    if (last) {
        end_leases_of(root);
    }
    TRACE("release(h%u)", number_of_handle(handle));
    syncedmem_release(handle->buffer);
    if (--handle->references > 0) {
        return;
    }
    handle->buffer = NULL;
    root->handles--;
    if (last) {
        model_release(&root->model);
        check_root(root);
        model_close(&root->model);
        root->live = false;
    }
}

/* ---- Memory of the caller's ---- */

unsigned char pattern_byte(unsigned seed, size_t index)
{
    return (unsigned char)(seed * 89 + 1 + index * 31 + (index >> 8) * 7);
}

void pattern_fill(unsigned char *bytes, size_t length, unsigned seed)
{
    for (size_t i = 0; i < length; i++) {
        bytes[i] = pattern_byte(seed, i);
    }
}

struct block *block_make(int place, size_t size, size_t slack, unsigned seed, bool has_release)
{
    struct block *block = world.block;
    while (block->used) {
        block++;
        EXPECT(block < world.block + BLOCKS, "the test has too few blocks");
    }
    *block = (struct block){.used = true, .place = place, .size = size, .has_release = has_release};
    if (place == PLACE_HOST) {
        block->start = malloc(size + slack + 8);
    } else {
        syncedmem_sim_alloc(world.place[place], size + slack + 8, &block->start);
    }
    EXPECT(block->start != NULL, "no memory for the test");
    block->pointer = (unsigned char *)block->start + (slack == 0 ? 0 : seed % slack);
    return block;
}

void block_read_only(struct block *block, const unsigned char *bytes)
{
    block->original = malloc(block->size + 1);
    EXPECT(block->original != NULL, "no memory for the test");
    memcpy(block->original, bytes, block->size);
}

/* Memory that was adopted as read-only is as it was; false else. */
static bool block_unchanged(const struct block *block)
{
    static unsigned char seen[SIZE_LARGEST];
    if (block->original == NULL) {
        return true;
    }
    if (block->place == PLACE_HOST) {
        return memcmp(block->pointer, block->original, block->size) == 0;
    }
    if (!device_read(block->place, 0, block->pointer, seen, block->size) ||
        syncedmem_stream_wait(world.stream[block->place][0]) != SYNCEDMEM_OK) {
        return false;
    }
    return memcmp(seen, block->original, block->size) == 0;
}

static void block_free(struct block *block)
{
    if (!block_unchanged(block)) {
        world.complaint = "memory adopted as read-only was written";
    }
    if (block->place == PLACE_HOST) {
        memset(block->start, 0xDD, block->size);
        free(block->start);
    } else if (syncedmem_sim_free(world.place[block->place], block->start) != SYNCEDMEM_OK) {
        world.complaint = "the device does not know adopted memory any more";
    }
    block->start = NULL;
    free(block->original);
    block->original = NULL;
}

/* No lock is held here, so any call works. */
static bool library_works(void)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    char text[16];
    size_t needed;
    if (syncedmem_create(10, &buffer) != SYNCEDMEM_OK) {
        return false;
    }
    const bool good = syncedmem_cpu_data(buffer, &pointer) == SYNCEDMEM_OK &&
                      syncedmem_gpu_data(buffer, &pointer) == SYNCEDMEM_OK;
    syncedmem_release(buffer);
    for (unsigned i = 0; i < HANDLES; i++) {
        const struct handle *handle = &world.handle[i];
        if (handle->buffer != NULL && handle->root->handles > 1) {
            syncedmem_head(handle->buffer);
            syncedmem_describe(handle->buffer, text, sizeof text, &needed);
        }
    }
    return good;
}

void block_release(void *user)
{
    struct block *block = user;
    wrap_fail_nth(0); /* a failure that has not come is not for what is done here */
    block->released++;
    if (block->released > 1) {
        world.complaint = "a release function was called twice";
        return;
    }
    block_free(block);
    const bool good = library_works();
    if (!good && world.fault == 0) {
        world.complaint = "the library does not work in a release function";
    }
}

/* The use has ended, or never began. */
void block_end(struct block *block, bool was_adopted)
{
    const unsigned wanted = was_adopted && block->has_release ? 1 : 0;
    EXPECT(block->released == wanted, "a release function was called %u times instead of %u",
           block->released, wanted);
    if (wanted == 0) {
        block_free(block);
    }
    block->used = false;
    EXPECT(world.complaint == NULL, "%s", world.complaint);
}
