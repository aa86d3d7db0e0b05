/* SPDX-License-Identifier: BSD-2-Clause */
/* What is compared, and what is asked of the library where its choice is free. */
#include <stdlib.h>
#include <string.h>

#include "world.h"

static unsigned char scratch[SIZE_LARGEST], wanted_bytes[SIZE_LARGEST];

static uint64_t stat_of(const struct root *root, syncedmem_key_t key)
{
    uint64_t figure = UINT64_MAX;
    const struct handle *handle = handle_of(root, 0);
    if (handle != NULL) {
        syncedmem_stat(handle->buffer, key, &figure);
    }
    return figure;
}

/* ---- Bytes ---- */

bool model_read(const struct model *model, struct range range, unsigned char *bytes)
{
    bool certain = true;
    for (size_t i = range.from; i < range.to; i++) {
        bytes[i - range.from] = model_byte(model, i);
        certain = certain && model->loose[i] == 0;
    }
    return certain;
}

void expect_host_bytes(const struct root *root, const unsigned char *pointer, struct range range)
{
    const struct model *model = &root->model;
    for (size_t i = range.from; i < range.to; i++) {
        EXPECT(model->loose[i] != 0 || pointer[i - range.from] == model_byte(model, i),
               "byte %zu of root %u on the host is %02x instead of %02x", i, number_of_root(root),
               pointer[i - range.from], model_byte(model, i));
    }
}

void expect_pointer(struct root *root, int place, const void *pointer, struct range range)
{
    unsigned char *address = (unsigned char *)(uintptr_t)pointer;
    if (root->model.size == 0 || range_is_empty(range)) {
        EXPECT((address == NULL) == (place != PLACE_HOST), "size 0: the pointer is %p", pointer);
        EXPECT(place != PLACE_HOST || (uintptr_t)pointer % 64 == 0 || root->block[place] != NULL,
               "size 0: the pointer is not aligned");
        return;
    }
    address -= range.from;
    if (root->block[place] != NULL && root->model.copy[place].adopted) {
        root->base[place] = root->block[place]->pointer;
    } else if (root->base[place] == NULL) {
        EXPECT((uintptr_t)address % 64 == 0, "the memory at place %d is not aligned", place);
        root->base[place] = address;
    }
    EXPECT(root->base[place] == address, "the memory at place %d is at %p instead of %p", place,
           (void *)address, (void *)root->base[place]);
}

/* ---- Device bytes that are on their way ---- */

static struct sight *sight_slot(void)
{
    for (unsigned i = 0; i < SIGHTS; i++) {
        if (!world.sight[i].used) {
            return &world.sight[i];
        }
    }
    sights_collect();
    return &world.sight[0];
}

void sight_take(struct root *root, int place, unsigned stream, const unsigned char *pointer,
                struct range range)
{
    const size_t length = range.to - range.from;
    if (length == 0) {
        return;
    }
    struct sight *sight = sight_slot();
    unsigned char *bytes = malloc(2 * length);
    EXPECT(bytes != NULL, "no memory for the test");
    if (!model_read(&root->model, range, bytes)) {
        free(bytes);
        return;
    }
    *sight = (struct sight){true, place, stream, length, world.step, bytes + length, bytes};
    EXPECT(device_read(place, stream, pointer, sight->seen, length), "a kernel: %s",
           syncedmem_last_error());
}

bool stream_has_sights(int place, unsigned stream)
{
    for (unsigned i = 0; i < SIGHTS; i++) {
        const struct sight *sight = &world.sight[i];
        if (sight->used && sight->place == place && sight->stream == stream) {
            return true;
        }
    }
    return false;
}

void sights_collect(void)
{
    device_wait_all();
    for (unsigned i = 0; i < SIGHTS; i++) {
        struct sight *sight = &world.sight[i];
        if (!sight->used) {
            continue;
        }
        for (size_t at = 0; at < sight->length; at++) {
            EXPECT(sight->seen[at] == sight->wanted[at],
                   "a kernel of operation %u on stream %u of place %d saw %02x instead of %02x as "
                   "its byte %zu of %zu",
                   sight->step, sight->stream, sight->place, sight->seen[at], sight->wanted[at], at,
                   sight->length);
        }
        free(sight->wanted);
        sight->used = false;
    }
}

/* ---- Places of bytes ---- */

static size_t valid_bytes(const struct root *root, int place, struct range range)
{
    const struct handle *handle = handle_of(root, 0);
    for (unsigned i = 0; i < HANDLES; i++) {
        const struct handle *other = &world.handle[i];
        if (other->buffer != NULL && other->root == root && other->range.from <= range.from &&
            range.to <= other->range.to) {
            handle = other;
        }
    }
    size_t bytes = SIZE_MAX;
    const syncedmem_status_t status =
        syncedmem_valid_bytes(handle->buffer, world.place[place], range.from - handle->range.from,
                              range.to - range.from, &bytes);
    expect_status(status, MAY_OK, "valid_bytes");
    return bytes;
}

static void ask(const struct root *root, int place, struct range range, uint8_t *places)
{
    const size_t length = range.to - range.from;
    const size_t bytes = length == 0 ? 0 : valid_bytes(root, place, range);
    EXPECT(bytes <= length, "valid_bytes says %zu of %zu", bytes, length);
    if (bytes == 0) {
        return;
    }
    if (bytes == length) {
        for (size_t i = range.from; i < range.to; i++) {
            places[i] |= (uint8_t)(1u << place);
        }
        return;
    }
    const size_t middle = range.from + length / 2;
    ask(root, place, (struct range){range.from, middle}, places);
    ask(root, place, (struct range){middle, range.to}, places);
}

/* For what handles can reach: a root may have lost the handle on the whole. */
void settle_range(struct root *root, struct range range)
{
    static uint8_t places[SIZE_LARGEST];
    for (unsigned n = 0; n < HANDLES; n++) {
        const struct handle *handle = &world.handle[n];
        if (handle->buffer == NULL || handle->root != root) {
            continue;
        }
        struct range part = handle->range;
        part.from = part.from < range.from ? range.from : part.from;
        part.to = part.to > range.to ? range.to : part.to;
        if (part.from >= part.to) {
            continue;
        }
        memset(places + part.from, 0, part.to - part.from);
        for (int place = 0; place < world.places; place++) {
            ask(root, place, part, places);
        }
        for (size_t i = part.from; i < part.to; i++) {
            EXPECT(model_settle(&root->model, i, places[i]),
                   "byte %zu of root %u has been written and is valid nowhere", i,
                   number_of_root(root));
        }
    }
}

static void settle_figures(struct root *root)
{
    struct model *model = &root->model;
    model->bytes_to_device = stat_of(root, SYNCEDMEM_STAT_BYTES_TO_DEVICE);
    model->bytes_to_host = stat_of(root, SYNCEDMEM_STAT_BYTES_TO_HOST);
    model->to_device = stat_of(root, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE);
    model->to_host = stat_of(root, SYNCEDMEM_STAT_TRANSFERS_TO_HOST);
}

/* With one device the figures say where the library has memory. */
static bool library_has_memory(const struct root *root, int place)
{
    return stat_of(root, place == PLACE_HOST ? SYNCEDMEM_STAT_HOST_BYTES
                                             : SYNCEDMEM_STAT_DEVICE_BYTES) > 0;
}

static void settle_memory(struct root *root)
{
    for (int place = 0; place < world.places && world.places == 2; place++) {
        struct model_copy *copy = &root->model.copy[place];
        const bool own = library_has_memory(root, place);
        if (own && copy->adopted) {
            EXPECT(copy->read_only, "adopted memory that is not read-only was left");
            copy->adopted = false;
            copy->read_only = false;
            copy->ended++;
        }
        copy->memory = own || copy->adopted;
    }
}

void settle(struct root *root)
{
    if (handle_of(root, 0) == NULL) {
        return;
    }
    settle_memory(root);
    settle_range(root, (struct range){0, root->model.size});
    settle_figures(root);
}

/* The byte that is not there has the places that the head says. */
static void settle_phantom(struct root *root)
{
    static const uint8_t places[] = {0, 1, 2, 3};
    for (unsigned i = 0; i < HANDLES; i++) {
        const struct handle *handle = &world.handle[i];
        if (handle->buffer != NULL && handle->root == root && !handle->view) {
            const syncedmem_head_t head = syncedmem_head(handle->buffer);
            EXPECT(head >= 0 && head <= SYNCEDMEM_SYNCED, "size 0: the head is %d", (int)head);
            root->model.phantom = places[head];
        }
    }
}

/* ---- Comparing ---- */

static void check_handle(const struct handle *handle)
{
    const struct model *model = &handle->root->model;
    const bool nothing = handle->view && range_is_empty(handle->range);
    const syncedmem_head_t wanted =
        nothing ? SYNCEDMEM_UNINITIALIZED : model_head(model, handle->range);
    const syncedmem_head_t head = syncedmem_head(handle->buffer);
    EXPECT(head == wanted, "the head of h%u is %d instead of %d", number_of_handle(handle),
           (int)head, (int)wanted);
    EXPECT(syncedmem_size(handle->buffer) == handle->range.to - handle->range.from,
           "the size of h%u", number_of_handle(handle));
    for (int place = 0; place < world.places; place++) {
        size_t bytes = SIZE_MAX;
        const syncedmem_status_t status = syncedmem_valid_bytes(
            handle->buffer, world.place[place], 0, handle->range.to - handle->range.from, &bytes);
        expect_status(status, MAY_OK, "valid_bytes");
        const size_t right = model_valid_bytes(model, place, handle->range);
        EXPECT(bytes == right, "h%u has %zu valid bytes at place %d instead of %zu",
               number_of_handle(handle), bytes, place, right);
    }
}

static void check_figure(const struct root *root, syncedmem_key_t key, uint64_t wanted)
{
    const uint64_t figure = stat_of(root, key);
    EXPECT(figure == wanted, "root %u: %s is %llu instead of %llu", number_of_root(root),
           syncedmem_stat_name(key), (unsigned long long)figure, (unsigned long long)wanted);
}

static void check_figures(struct root *root, bool was_inexact)
{
    const struct model *model = &root->model;
    check_figure(root, SYNCEDMEM_STAT_BYTES_TO_DEVICE, model->bytes_to_device);
    check_figure(root, SYNCEDMEM_STAT_BYTES_TO_HOST, model->bytes_to_host);
    check_figure(root, SYNCEDMEM_STAT_LEASES, model_open_leases(model));
    if (model->size > 0) {
        check_figure(root, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE, model->to_device);
        check_figure(root, SYNCEDMEM_STAT_TRANSFERS_TO_HOST, model->to_host);
        check_figure(root, SYNCEDMEM_STAT_TRANSFERS, model->to_device + model->to_host);
    }
    const uint64_t merges = stat_of(root, SYNCEDMEM_STAT_MERGES);
    EXPECT(root->inexact || was_inexact || merges == root->merges,
           "segments were merged, and there were few");
    root->merges = merges;
}

/* With one device. */
static void check_memory(const struct root *root)
{
    for (int place = 0; place < world.places && world.places == 2; place++) {
        const struct model_copy *copy = &root->model.copy[place];
        const bool wanted = copy->memory && !copy->adopted && root->model.size > 0;
        EXPECT(library_has_memory(root, place) == wanted,
               "root %u: the library has %s memory at place %d", number_of_root(root),
               wanted ? "no" : "some", place);
    }
}

/* Uses of adopted memory that ended. True when the library chose to move somewhere. */
static bool look_after_blocks(struct root *root)
{
    bool moved = false;
    for (int place = 0; place < world.places; place++) {
        struct block *block = root->block[place];
        if (root->model.copy[place].ended == root->ended[place]) {
            EXPECT(block == NULL || block->released == 0,
                   "a release function was called while the memory is used");
            continue;
        }
        root->ended[place] = root->model.copy[place].ended;
        if (block != NULL) {
            root->block[place] = NULL;
            root->base[place] = NULL;
            root->exposed[place] = false;
            moved = true;
            block_end(block, true);
        }
    }
    EXPECT(world.complaint == NULL, "%s", world.complaint);
    return moved;
}

/* Where no handle reaches, the library cannot be asked and the model may be behind. */
static bool whole_in_reach(const struct root *root)
{
    for (unsigned i = 0; i < HANDLES; i++) {
        const struct handle *handle = &world.handle[i];
        if (handle->buffer != NULL && handle->root == root && handle->range.from == 0 &&
            handle->range.to == root->model.size) {
            return true;
        }
    }
    return false;
}

void check_root(struct root *root)
{
    const bool inexact = root->inexact;
    if (root->unsure && handle_of(root, 0) != NULL) {
        settle_memory(root);
    }
    if (look_after_blocks(root)) {
        root->unsure = true;
    }
    if (handle_of(root, 0) == NULL) {
        return;
    }
    root->inexact = model_segments(&root->model) > SEGMENTS_SURE;
    if (root->unsure || inexact || root->inexact) {
        settle(root);
        root->unsure = false;
    }
    if (root->model.size == 0) {
        settle_phantom(root);
    }
    const size_t segments = model_segments(&root->model);
    root->grown = root->grown && segments > SEGMENTS_MOST;
    EXPECT(segments <= SEGMENTS_MOST || root->grown || !whole_in_reach(root), "%zu segments",
           segments);
    for (unsigned i = 0; i < HANDLES; i++) {
        if (world.handle[i].buffer != NULL && world.handle[i].root == root) {
            check_handle(&world.handle[i]);
        }
    }
    check_figures(root, inexact);
    check_memory(root);
}

static void check_bytes_at(struct root *root, int place)
{
    const struct model *model = &root->model;
    const unsigned char *bytes = root->base[place];
    const uint8_t here = (uint8_t)(1u << place);
    if (place != PLACE_HOST) {
        EXPECT(device_read(place, 0, bytes, scratch, model->size), "a kernel: %s",
               syncedmem_last_error());
        device_wait(place, 0);
        bytes = scratch;
    }
    for (size_t i = 0; i < model->size; i++) {
        if ((model->valid[i] & here) != 0 && model->loose[i] == 0) {
            EXPECT(bytes[i] == model->copy[place].bytes[i],
                   "byte %zu of root %u, valid at place %d, is %02x instead of %02x there", i,
                   number_of_root(root), place, bytes[i], model->copy[place].bytes[i]);
        }
    }
}

/* The places where pointers have been seen. */
void check_bytes(struct root *root)
{
    const struct handle *handle = handle_of(root, 0);
    if (!root->live || handle == NULL || root->model.size == 0) {
        return;
    }
    sights_collect();
    expect_status(syncedmem_wait(handle->buffer), MAY_OK, "wait");
    for (int place = 0; place < world.places; place++) {
        if (root->base[place] != NULL && root->model.copy[place].memory) {
            check_bytes_at(root, place);
        }
    }
}

/* ---- After a fault ---- */

/* A failure that comes later is found by wait(), once. False when there was one. */
bool arrives(const struct handle *handle)
{
    if (!world.late) {
        return true;
    }
    const syncedmem_status_t status = syncedmem_wait(handle->buffer);
    TRACE("  wait: %s", syncedmem_status_name(status));
    expect_status(status, MAY_OK | STATUS(SYNCEDMEM_DEVICE_ERROR), "wait after a late fault");
    expect_status(syncedmem_wait(handle->buffer), MAY_OK, "the wait after that");
    return status == SYNCEDMEM_OK;
}

void recover(struct root *root)
{
    root->unsure = true;
    check_root(root);
    check_bytes(root);
}

/* The bytes as they are now, by whatever way is open. */
static bool look_at(struct root *root, struct range range, unsigned char *bytes)
{
    void *pointer;
    syncedmem_token_t token;
    for (unsigned i = 0; i < HANDLES; i++) {
        const struct handle *handle = &world.handle[i];
        if (handle->buffer == NULL || handle->root != root || handle->range.from > range.from ||
            handle->range.to < range.to) {
            continue;
        }
        if (syncedmem_begin(handle->buffer, world.place[PLACE_HOST], SYNCEDMEM_READ,
                            range.from - handle->range.from, range.to - range.from, NULL, &pointer,
                            NULL, &token) != SYNCEDMEM_OK) {
            return false;
        }
        memcpy(bytes, pointer, range.to - range.from);
        expect_status(syncedmem_end(handle->buffer, token), MAY_OK, "end");
        return true;
    }
    return false;
}

void recover_range(struct root *root, struct range range, const unsigned char *wanted)
{
    settle(root);
    if (!range_is_empty(range) && look_at(root, range, wanted_bytes)) {
        model_bring(&root->model, PLACE_HOST, range);
        for (size_t i = range.from; i < range.to; i++) {
            const unsigned char byte = wanted_bytes[i - range.from];
            EXPECT(root->model.loose[i] != 0 || byte == model_byte(&root->model, i) ||
                       byte == wanted[i - range.from],
                   "after the failure byte %zu of root %u is %02x, neither the old %02x nor the "
                   "new %02x",
                   i, number_of_root(root), byte, model_byte(&root->model, i),
                   wanted[i - range.from]);
            for (int place = 0; place < world.places; place++) {
                root->model.copy[place].bytes[i] = byte;
            }
        }
    } else {
        memset(root->model.loose + range.from, 1, range.to - range.from);
    }
    recover(root);
}
