/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases and verbs. */
#include <string.h>

#include "world.h"

static unsigned char scratch[SIZE_LARGEST], before[SIZE_LARGEST];

static struct range in_root(const struct handle *handle, struct part part)
{
    const size_t from = handle->range.from + part.offset;
    return (struct range){from, from + part.length};
}

static size_t size_of(const struct handle *handle)
{
    return handle->range.to - handle->range.from;
}

/* The byte that a root of size 0 does not have moves by its own handle only. */
static bool has_effect(const struct handle *handle)
{
    return handle->root->model.size > 0 || !handle->view;
}

/* ---- Leases ---- */

static struct lease *lease_slot(const struct root *root)
{
    if (model_open_leases(&root->model) == LEASES_MOST) {
        return NULL;
    }
    for (unsigned i = 0; i < LEASES; i++) {
        if (!world.lease[i].open) {
            return &world.lease[i];
        }
    }
    return NULL;
}

static void look_through_lease(const struct lease *lease)
{
    if (lease->place == PLACE_HOST) {
        expect_host_bytes(lease->root, lease->pointer, lease->range);
    } else {
        sight_take(lease->root, lease->place, lease->stream, lease->pointer, lease->range);
    }
}

static void expect_new_token(const struct lease *lease)
{
    EXPECT(lease->token != 0 && lease->token != world.ended_token, "token %llu",
           (unsigned long long)lease->token);
    for (unsigned i = 0; i < LEASES; i++) {
        const struct lease *other = &world.lease[i];
        EXPECT(other == lease || !other->open || other->token != lease->token,
               "a token was given out twice");
    }
}

static void model_lease(struct model *model, const struct lease *lease)
{
    if (lease->mode == SYNCEDMEM_WRITE) {
        model_overwrite(model, lease->place, lease->range);
        return;
    }
    model_bring(model, lease->place, lease->range);
    if (lease->mode == SYNCEDMEM_READ_WRITE) {
        model_own(model, lease->place, lease->range);
    }
}

static void lease_opened(struct lease *lease, const struct handle *handle)
{
    struct root *root = lease->root;
    expect_new_token(lease);
    lease->open = true;
    if (has_effect(handle)) {
        model_lease(&root->model, lease);
    }
    lease->number =
        model_begin(&root->model, lease->place, lease->mode != SYNCEDMEM_READ, lease->range);
    check_root(root);
    if (!range_is_empty(lease->range)) {
        expect_pointer(root, lease->place, lease->pointer,
                       (struct range){lease->range.from, lease->range.to});
        if (lease->mode != SYNCEDMEM_WRITE) {
            look_through_lease(lease);
        }
    }
}

struct beginning {
    struct handle *handle;
    struct part part;
    syncedmem_place *place;
    syncedmem_mode_t mode;
    syncedmem_stream *stream;
    bool offset_wanted;
    status_set errors;
};

static syncedmem_status_t begin_call(const struct beginning *b, struct lease *lease)
{
    size_t offset = 1;
    void *pointer = &pointer;
    lease->token = 1;
    const syncedmem_status_t status =
        syncedmem_begin(b->handle->buffer, b->place, b->mode, b->part.offset, b->part.length,
                        b->stream, &pointer, b->offset_wanted ? &offset : NULL, &lease->token);
    EXPECT(!b->offset_wanted || offset == 0, "the offset is %zu", offset);
    EXPECT(status == SYNCEDMEM_OK || (pointer == NULL && lease->token == 0),
           "out parameters are left");
    lease->pointer = pointer;
    return status;
}

static void spoil_beginning(struct beginning *b, unsigned variant)
{
    if (!b->part.inside) {
        b->errors |= STATUS(SYNCEDMEM_OUT_OF_RANGE);
    }
    if (variant / 16 == 0) {
        b->place = NULL;
    } else if (variant / 16 == 1) {
        b->mode = variant % 2 == 0 ? 0 : 4;
    } else if (variant / 16 != 2 || b->place != world.place[PLACE_HOST]) {
        return;
    } else {
        b->stream = world.stream[1][1]; /* no stream is the host's */
    }
    b->errors |= STATUS(SYNCEDMEM_INVALID_ARGUMENT);
}

static struct lease lease_wanted(const struct handle *handle, const struct beginning *b,
                                 const struct op *op)
{
    return (struct lease){
        .root = handle->root,
        .place = (int)op->place % world.places,
        .mode = b->mode,
        .range = in_root(handle, b->part),
        .stream = op->stream % STREAMS,
    };
}

static struct beginning beginning_wanted(struct handle *handle, const struct op *op)
{
    const int place = (int)op->place % world.places;
    struct beginning b = {
        .handle = handle,
        .part = part_pick(size_of(handle), op->a, op->b, op->variant),
        .place = world.place[place],
        .mode = 1 + (syncedmem_mode_t)op->mode % 3,
        .offset_wanted = op->seed % 2 == 0,
    };
    if (place != PLACE_HOST && op->stream != 3) {
        b.stream = world.stream[place][op->stream];
    }
    spoil_beginning(&b, op->variant);
    return b;
}

void step_begin(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    struct lease *lease = handle == NULL ? NULL : lease_slot(handle->root);
    if (lease == NULL) {
        return;
    }
    const struct beginning b = beginning_wanted(handle, op);
    struct root *root = handle->root;
    struct lease wanted = lease_wanted(handle, &b, op);
    syncedmem_status_t status;
    TRACE("begin(h%u, place %d, mode %d, %zu, %zu, stream %u)", number_of_handle(handle),
          b.place == NULL ? -1 : wanted.place, b.mode, b.part.offset, b.part.length, op->stream);
    ATTEMPT(status, begin_call(&b, &wanted), recover(root));
    if (status == SYNCEDMEM_OK && !arrives(handle)) { /* on a device nothing is waited for */
        EXPECT(syncedmem_end(handle->buffer, wanted.token) == SYNCEDMEM_OK, "end of a lease");
        recover(root);
        status = begin_call(&b, &wanted);
    }
    status_set may = b.errors;
    if (b.part.inside) {
        may |= may_access(&root->model, wanted.place, wanted.range, b.mode != SYNCEDMEM_READ);
    }
    expect_status(status, b.errors == 0 ? may : may & ~MAY_OK, "begin");
    if (status == SYNCEDMEM_OK) {
        wanted.stream = op->stream == 3 || wanted.place == PLACE_HOST ? 0 : wanted.stream;
        *lease = wanted;
        TRACE("  token %llu", (unsigned long long)lease->token);
        lease_opened(lease, handle);
    } else {
        check_root(root);
    }
}

static struct lease *lease_pick(unsigned number)
{
    for (unsigned i = 0; i < LEASES; i++) {
        struct lease *lease = &world.lease[(number + i) % LEASES];
        if (lease->open) {
            return lease;
        }
    }
    return NULL;
}

static void lease_write(struct lease *lease, struct range part, unsigned seed)
{
    unsigned char *pointer = lease->pointer + (part.from - lease->range.from);
    const size_t length = part.to - part.from;
    pattern_fill(scratch, length, seed);
    TRACE("  writes %zu bytes from %zu at place %d, seed %u", length, part.from, lease->place,
          seed);
    if (lease->place == PLACE_HOST) {
        memcpy(pointer, scratch, length);
    } else {
        EXPECT(device_write(lease->place, lease->stream, pointer, scratch, length), "a kernel: %s",
               syncedmem_last_error());
    }
    model_write(&lease->root->model, lease->place, part.from, scratch, length);
}

void step_write(const struct op *op)
{
    struct lease *lease = lease_pick(op->handle);
    if (lease == NULL || range_is_empty(lease->range)) {
        return;
    }
    TRACE("through the lease %llu", (unsigned long long)lease->token);
    if (lease->mode == SYNCEDMEM_READ) {
        look_through_lease(lease);
        return;
    }
    const struct part part =
        part_pick(lease->range.to - lease->range.from, op->a, op->b, 1 + op->variant % 15);
    const size_t from = lease->range.from + part.offset;
    lease_write(lease, (struct range){from, from + part.length}, op->seed);
}

/* Bytes that the lease should have written and did not: on a device what is there now counts. On the
 * host that may be memory never written, which valgrind does not let one look at: write it. */
static void take_what_is_there(struct lease *lease)
{
    struct model *model = &lease->root->model;
    const struct range range = lease->range;
    const size_t length = range.to - range.from;
    if (lease->mode != SYNCEDMEM_WRITE || model_read(model, range, scratch)) {
        return;
    }
    if (lease->place != PLACE_HOST) {
        EXPECT(device_read(lease->place, lease->stream, lease->pointer, scratch, length),
               "a kernel: %s", syncedmem_last_error());
        device_wait(lease->place, lease->stream);
    }
    for (size_t i = range.from; i < range.to; i++) {
        const unsigned char byte = scratch[i - range.from];
        if (model->loose[i] != 0 && lease->place == PLACE_HOST) {
            lease->pointer[i - range.from] = byte;
        }
        if (model->loose[i] != 0) {
            model_write(model, lease->place, i, &byte, 1);
        }
    }
}

void lease_end(struct lease *lease, struct handle *handle)
{
    struct root *root = lease->root;
    syncedmem_status_t status;
    take_what_is_there(lease);
    TRACE("end(h%u, %llu)", number_of_handle(handle), (unsigned long long)lease->token);
    ATTEMPT(status, syncedmem_end(handle->buffer, lease->token), recover(root));
    expect_status(status, MAY_OK, "end");
    model_end(&root->model, lease->number);
    lease->open = false;
    world.ended_token = lease->token;
    check_root(root);
}

void end_leases_of(struct root *root)
{
    for (unsigned i = 0; i < LEASES; i++) {
        if (world.lease[i].open && world.lease[i].root == root) {
            lease_end(&world.lease[i], handle_of(root, i));
        }
    }
}

/* Tokens that are of no open lease of the handle's root. */
static void end_wrongly(const struct op *op)
{
    const struct handle *handle = handle_pick(op->other);
    const struct lease *lease = lease_pick(op->handle);
    syncedmem_token_t token = world.ended_token;
    if (handle == NULL) {
        return;
    }
    if (op->variant % 8 == 0) {
        token = 0;
    } else if (op->variant % 8 == 1) {
        token = UINT64_MAX - op->a;
    } else if (lease != NULL && lease->root != handle->root) {
        token = lease->token;
    }
    TRACE("end(h%u, %llu), which is none of its", number_of_handle(handle),
          (unsigned long long)token);
    expect_status(syncedmem_end(handle->buffer, token), STATUS(SYNCEDMEM_INVALID_LEASE), "end");
    check_root(handle->root);
}

void step_end(const struct op *op)
{
    struct lease *lease = lease_pick(op->handle);
    if (op->variant % 8 < 3) {
        end_wrongly(op);
    } else if (lease != NULL) {
        lease_end(lease, handle_of(lease->root, op->other));
    }
}

/* ---- Prefetch, mark_modified ---- */

static int device_of(int place)
{
    return place == PLACE_HOST ? 1 : place;
}

void step_prefetch(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const int place = (int)op->place % world.places;
    const struct part part = part_pick(size_of(handle), op->a, op->b, op->variant);
    syncedmem_stream *stream = op->stream == 3 ? NULL : world.stream[device_of(place)][op->stream];
    syncedmem_status_t status;
    TRACE("prefetch(h%u, place %d, %zu, %zu, stream %u)", number_of_handle(handle), place,
          part.offset, part.length, op->stream);
#define CALL                                                                                       \
    syncedmem_prefetch(handle->buffer, world.place[place], part.offset, part.length, stream)
    ATTEMPT(status, CALL, recover(root));
    if (status == SYNCEDMEM_OK && !arrives(handle)) {
        recover(root);
        status = CALL;
    }
#undef CALL
    const struct range range = in_root(handle, part);
    expect_status(status,
                  part.inside ? may_access(&root->model, place, range, false)
                              : STATUS(SYNCEDMEM_OUT_OF_RANGE),
                  "prefetch");
    if (status == SYNCEDMEM_OK && has_effect(handle)) {
        model_bring(&root->model, place, range);
    }
    check_root(root);
}

/* Writes all of the range through a pointer that a plain call gave out, if that may be. */
static bool write_kept(struct root *root, int place, struct range range, unsigned seed)
{
    struct model *model = &root->model;
    if (model->copy[place].read_only || !root->exposed[place] || root->base[place] == NULL) {
        return false;
    }
    const size_t length = range.to - range.from;
    unsigned char *pointer = root->base[place] + range.from;
    device_wait_all();
    expect_status(syncedmem_wait(handle_of(root, 0)->buffer), MAY_OK, "wait");
    pattern_fill(scratch, length, seed);
    if (place == PLACE_HOST) {
        memcpy(pointer, scratch, length);
        return true;
    }
    EXPECT(device_write(place, 0, pointer, scratch, length), "a kernel: %s",
           syncedmem_last_error());
    return true;
}

void step_mark(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const int place = (int)op->place % world.places;
    const struct part part = part_pick(size_of(handle), op->a, op->b, op->variant);
    const struct range range = in_root(handle, part);
    const size_t length = part.inside ? part.length : 0;
    const bool can = part.inside && may_mark(&root->model, place, range) == MAY_OK;
    const bool written = can && length > 0 && write_kept(root, place, range, op->seed);
    if (can && !written && model_valid_bytes(&root->model, place, range) < length) {
        return; /* one may not say that what is stale is the newest */
    }
    TRACE("mark_modified(h%u, place %d, %zu, %zu), %s", number_of_handle(handle), place,
          part.offset, part.length, written ? "written" : "not written");
    /* Until it succeeds the bytes are neither here nor there. */
    if (written) {
        memset(root->model.loose + range.from, 1, length);
    }
    syncedmem_status_t status;
    ATTEMPT(status,
            syncedmem_mark_modified(handle->buffer, world.place[place], part.offset, part.length),
            recover(root));
    expect_status(
        status, part.inside ? may_mark(&root->model, place, range) : STATUS(SYNCEDMEM_OUT_OF_RANGE),
        "mark_modified");
    if (status == SYNCEDMEM_OK && length > 0) {
        model_mark(&root->model, place, range);
        pattern_fill(scratch, length, op->seed);
        if (written) {
            model_write(&root->model, place, range.from, scratch, length);
        }
    }
    check_root(root);
}

/* ---- Fill, drop ---- */

/* The one place where the range is valid after a verb has written it; NO_PLACE: none. */
static int place_written(const struct handle *handle, struct part part)
{
    int found = NO_PLACE;
    for (int place = 0; place < world.places; place++) {
        size_t bytes = SIZE_MAX;
        expect_status(syncedmem_valid_bytes(handle->buffer, world.place[place], part.offset,
                                            part.length, &bytes),
                      MAY_OK, "valid_bytes");
        if (bytes > 0) {
            EXPECT(found == NO_PLACE, "what was written is valid at two places");
            found = place;
        }
    }
    return found;
}

static bool some_read_only(const struct model *model)
{
    bool some = false;
    for (int place = 0; place < world.places; place++) {
        some = some || model->copy[place].read_only;
    }
    return some;
}

/* It was done where the bytes were, or on the host. */
static void expect_done_there(const struct model *model, int place, uint8_t holders)
{
    const uint8_t allowed = holders == 0 ? 1u << PLACE_HOST : holders;
    EXPECT(some_read_only(model) || (allowed >> place & 1) != 0,
           "it was done at place %d and the bytes were at the places %x", place, allowed);
}

static void filled(struct handle *handle, struct part part, unsigned char value)
{
    struct model *model = &handle->root->model;
    const struct range range = in_root(handle, part);
    if (part.length == 0) {
        return;
    }
    const int place = place_written(handle, part);
    EXPECT(place != NO_PLACE, "what was filled is valid nowhere");
    expect_done_there(model, place, model_holders(model, range));
    model_own(model, place, range);
    memset(scratch, value, part.length);
    model_write(model, place, range.from, scratch, part.length);
    memset(model->loose + range.from, 0, part.length);
}

void step_fill(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const struct part part = part_pick(size_of(handle), op->a, op->b, op->variant);
    const struct range range = in_root(handle, part);
    const unsigned char value = (unsigned char)op->seed;
    syncedmem_status_t status;
    TRACE("fill(h%u, %zu, %zu, %u)", number_of_handle(handle), part.offset, part.length, value);
    memset(before, value, part.inside ? part.length : 0);
    ATTEMPT(status, syncedmem_fill(handle->buffer, part.offset, part.length, value),
            part.inside ? recover_range(root, range, before) : recover(root));
    expect_status(status,
                  part.inside ? may_fill(&root->model, range) : STATUS(SYNCEDMEM_OUT_OF_RANGE),
                  "fill");
    if (status == SYNCEDMEM_OK) {
        filled(handle, part, value);
    }
    check_root(root);
}

void step_drop(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const int place = (int)op->place % world.places;
    syncedmem_place *where = op->variant == 0 ? NULL : world.place[place];
    syncedmem_status_t status;
    TRACE("drop(h%u, place %d)", number_of_handle(handle), where == NULL ? -1 : place);
    ATTEMPT(status, syncedmem_drop(handle->buffer, where), recover(root));
    status_set may = may_drop(&root->model, place);
    if (handle->view || where == NULL) {
        may &= ~MAY_OK;
        may |= handle->view ? STATUS(SYNCEDMEM_UNSUPPORTED) : 0;
        may |= where == NULL ? STATUS(SYNCEDMEM_INVALID_ARGUMENT) : 0;
    }
    expect_status(status, may, "drop");
    if (status == SYNCEDMEM_OK) {
        model_drop(&root->model, place);
        root->base[place] = NULL;
        root->exposed[place] = false;
    }
    check_root(root);
}

/* ---- Copy ---- */

struct copying {
    struct handle *to, *from;
    struct part to_part, from_part;
    struct range target, source;
};

static status_set may_copy(const struct copying *copying)
{
    const struct model *to = &copying->to->root->model;
    const struct model *from = &copying->from->root->model;
    if (!copying->to_part.inside || !copying->from_part.inside) {
        return STATUS(SYNCEDMEM_OUT_OF_RANGE);
    }
    if (model_leased(to, copying->target, false) || model_leased(from, copying->source, true)) {
        return STATUS(SYNCEDMEM_BUSY);
    }
    return MAY_OK | (may_fill(to, copying->target) & STATUS(SYNCEDMEM_BUSY)) |
           (may_fill(from, (struct range){0, 0}) & STATUS(SYNCEDMEM_BUSY));
}

static void copied(const struct copying *copying)
{
    struct root *to = copying->to->root;
    struct root *from = copying->from->root;
    const size_t length = copying->to_part.length;
    const struct range target = copying->target;
    if (length == 0) {
        return;
    }
    static uint8_t loose[SIZE_LARGEST];
    memcpy(loose, from->model.loose + copying->source.from, length);
    model_read(&from->model, copying->source, before);
    const int place = place_written(copying->to, copying->to_part);
    const uint8_t holders = model_holders(&from->model, copying->source);
    EXPECT(place != NO_PLACE, "what was copied is valid nowhere");
    if (holders != 0 && !some_read_only(&from->model)) {
        expect_done_there(&to->model, place, holders);
    }
    to->unsure = some_read_only(&to->model);
    from->unsure = some_read_only(&from->model);
    model_bring(&from->model, place, copying->source);
    model_own(&to->model, place, target);
    model_write(&to->model, place, target.from, before, length);
    memcpy(to->model.loose + target.from, loose, length);
}

static struct copying copying_wanted(const struct op *op)
{
    struct copying copying = {.to = handle_pick(op->handle), .from = handle_pick(op->other)};
    if (copying.to == NULL) {
        return copying;
    }
    const size_t to = size_of(copying.to);
    const size_t from = size_of(copying.from);
    copying.from_part = part_pick(from, op->a, op->b, op->variant);
    const size_t length = copying.from_part.length;
    copying.to_part = (struct part){op->c % (to + 1), length, true};
    if (copying.to_part.offset > to || length > to - copying.to_part.offset) {
        const size_t fits = to - copying.to_part.offset;
        copying.to_part.inside = op->seed % 8 != 0 && copying.from_part.inside;
        if (copying.to_part.inside) {
            copying.to_part.length = copying.from_part.length = fits;
        }
    }
    copying.target = in_root(copying.to, copying.to_part);
    copying.source = in_root(copying.from, copying.from_part);
    return copying;
}

static void recover_copy(const struct copying *copying)
{
    if (copying->to_part.inside && copying->from_part.inside) {
        model_read(&copying->from->root->model, copying->source, before);
        recover_range(copying->to->root, copying->target, before);
    }
    recover(copying->from->root);
}

void step_copy(const struct op *op)
{
    const struct copying copying = copying_wanted(op);
    if (copying.to == NULL) {
        return;
    }
    syncedmem_status_t status;
    TRACE("copy(h%u, %zu, h%u, %zu, %zu)", number_of_handle(copying.to), copying.to_part.offset,
          number_of_handle(copying.from), copying.from_part.offset, copying.from_part.length);
    ATTEMPT(status,
            syncedmem_copy(copying.to->buffer, copying.to_part.offset, copying.from->buffer,
                           copying.from_part.offset, copying.from_part.length),
            recover_copy(&copying));
    expect_status(status, may_copy(&copying), "copy");
    if (status == SYNCEDMEM_OK) {
        copied(&copying);
    }
    check_root(copying.to->root);
    check_root(copying.from->root);
}

/* ---- Scatter: more segments than the map holds apart ---- */

/* A write of one byte, unless it is BUSY. */
static void scatter_one(struct handle *handle, int place, size_t offset, unsigned seed,
                        bool *struck)
{
    struct root *root = handle->root;
    struct lease lease = {.root = root, .place = place, .mode = SYNCEDMEM_WRITE};
    const struct beginning b = {.handle = handle,
                                .part = {offset, 1, true},
                                .place = world.place[place],
                                .mode = SYNCEDMEM_WRITE};
    lease.range = in_root(handle, b.part);
    syncedmem_status_t status;
    ATTEMPT(status, begin_call(&b, &lease), (recover(root), *struck = true));
    expect_status(status, may_access(&root->model, place, lease.range, true), "begin");
    if (status != SYNCEDMEM_OK) {
        return;
    }
    model_overwrite(&root->model, place, lease.range);
    const bool trace = world.trace;
    world.trace = false; /* there are many */
    lease_write(&lease, lease.range, seed);
    world.trace = trace;
    expect_status(syncedmem_end(handle->buffer, lease.token), MAY_OK, "end");
    root->inexact = root->inexact || model_segments(&root->model) > SEGMENTS_SURE;
}

void step_scatter(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const int place = (int)op->place % world.places;
    const size_t stride = 2 + op->b % 4;
    /* Few large ones in a stream, for each takes as long as a thousand other steps. */
    const bool large = op->variant % 4 == 0 && world.scattered++ < SCATTERS_MOST;
    const size_t most = large ? 1500 : 40;
    size_t offset = op->a % (size_of(handle) + 1);
    TRACE("scatter(h%u, place %d) from %zu by %zu", number_of_handle(handle), place, offset,
          stride);
    root->unsure = some_read_only(&root->model);
    const int fault = world.fault;
    bool struck = false;
    root->grown = root->grown || fault == FAULT_HOST_ALLOC;
    for (size_t i = 0; i < most && offset < size_of(handle); i++, offset += stride) {
        world.fault = struck ? 0 : fault; /* until it comes, for merges are rare */
        scatter_one(handle, place, offset, op->seed + (unsigned)i, &struck);
    }
    check_root(root);
}
