/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles, plain calls, adoption. */
#include <string.h>

#include "world.h"

static unsigned char scratch[SIZE_LARGEST];

static void step_create(const struct op *op)
{
    static const size_t sizes[] = {0, 1, 10, 63, 64, 65, 100, 255, 256, 300, 500, 1000, 3000};
    const size_t count = sizeof sizes / sizeof sizes[0];
    struct root *root = root_free_slot();
    struct handle *handle = handle_free_slot();
    if (root == NULL || handle == NULL) {
        return;
    }
    size_t size = op->variant % 2 == 0 ? sizes[op->a % count] : op->a % 400;
    size = op->variant == 1 ? SIZE_LARGEST - op->a % 1000 : size;
    size = op->variant < 8 && op->variant > 1 ? op->a % 3001 : size;
    *root = (struct root){.live = true};
    EXPECT(model_open(&root->model, size, world.places), "no memory for the test");
    *handle = (struct handle){NULL, root, {0, size}, 1, false};
    syncedmem_status_t status;
    TRACE("create(%zu) -> h%u of root %u", size, number_of_handle(handle), number_of_root(root));
    ATTEMPT(status, syncedmem_create(size, &handle->buffer),
            EXPECT(handle->buffer == NULL, "an out parameter is left"));
    expect_status(status, MAY_OK, "create");
    root->handles = 1;
    if (op->seed % 4 == 0) {
        status = syncedmem_set_host_policy(handle->buffer, SYNCEDMEM_PINNED);
        expect_status(status, MAY_OK, "set_host_policy");
    }
    check_root(root);
}

static void step_view(const struct op *op)
{
    struct handle *parent = handle_pick(op->handle);
    struct handle *view = handle_free_slot();
    if (parent == NULL || view == NULL) {
        return;
    }
    const struct part part =
        part_pick(parent->range.to - parent->range.from, op->a, op->b, op->variant);
    syncedmem_buffer *buffer = parent->buffer;
    syncedmem_status_t status;
    TRACE("view(h%u, %zu, %zu) -> h%u", number_of_handle(parent), part.offset, part.length,
          number_of_handle(view));
    ATTEMPT(status, syncedmem_view(parent->buffer, part.offset, part.length, &buffer),
            recover(parent->root));
    expect_status(status, part.inside ? MAY_OK : STATUS(SYNCEDMEM_OUT_OF_RANGE), "view");
    EXPECT(part.inside == (buffer != NULL), "the out parameter of view()");
    if (!part.inside) {
        return;
    }
    const size_t from = parent->range.from + part.offset;
    *view = (struct handle){buffer, parent->root, {from, from + part.length}, 1, true};
    parent->root->handles++;
    check_root(parent->root);
}

static void step_retain(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle != NULL) {
        TRACE("retain(h%u)", number_of_handle(handle));
        EXPECT(syncedmem_retain(handle->buffer) == handle->buffer, "another handle");
        handle->references++;
    }
}

static void step_release(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle != NULL) {
        struct root *root = handle->root;
        handle_drop(handle);
        if (root->live) {
            check_root(root);
        }
    }
}

/* ---- Plain calls ---- */

static int home_of(const struct root *root)
{
    return root->model.home == NO_PLACE ? 1 : root->model.home;
}

static syncedmem_status_t plain_call(enum op_kind kind, syncedmem_buffer *buffer, void **pointer)
{
    const void *to_read = NULL;
    syncedmem_status_t status;
    switch (kind) {
    case OP_CPU_DATA:
        status = syncedmem_cpu_data(buffer, &to_read);
        *pointer = (void *)(uintptr_t)to_read;
        return status;
    case OP_GPU_DATA:
        status = syncedmem_gpu_data(buffer, &to_read);
        *pointer = (void *)(uintptr_t)to_read;
        return status;
    case OP_MUTABLE_CPU_DATA:
        return syncedmem_mutable_cpu_data(buffer, pointer);
    default:
        return syncedmem_mutable_gpu_data(buffer, pointer);
    }
}

/* Bytes of the user's, written through a pointer to a range: by the host or by a kernel. */
static void write_range(struct root *root, int place, unsigned stream, unsigned char *pointer,
                        struct range range, unsigned seed)
{
    const size_t length = range.to - range.from;
    pattern_fill(scratch, length, seed);
    TRACE("  writes %zu bytes from %zu at place %d, seed %u", length, range.from, place, seed);
    if (place == PLACE_HOST) {
        memcpy(pointer, scratch, length);
    } else {
        EXPECT(device_write(place, stream, pointer, scratch, length), "a kernel: %s",
               syncedmem_last_error());
    }
    model_write(&root->model, place, range.from, scratch, length);
}

static struct range part_of_range(struct range range, const struct op *op)
{
    const struct part part = part_pick(range.to - range.from, op->a, op->b, 4 + op->seed % 12);
    return (struct range){range.from + part.offset, range.from + part.offset + part.length};
}

static void after_plain(const struct op *op, struct handle *handle, int place, bool writes,
                        unsigned char *pointer)
{
    struct root *root = handle->root;
    const struct range range = handle->range;
    if (root->model.size > 0 || !handle->view) {
        model_bring(&root->model, place, range);
        if (writes) {
            model_own(&root->model, place, range);
        }
    }
    check_root(root);
    expect_pointer(root, place, pointer, range);
    root->exposed[place] = root->exposed[place] || !range_is_empty(range);
    if (place == PLACE_HOST) {
        expect_host_bytes(root, pointer, range);
    } else {
        sight_take(root, place, 0, pointer, range);
    }
    if (writes && !range_is_empty(range) && op->variant % 4 != 0) {
        const struct range part = part_of_range(range, op);
        write_range(root, place, 0, pointer + (part.from - range.from), part, op->seed);
    }
}

void step_plain(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const bool host = op->kind == OP_CPU_DATA || op->kind == OP_MUTABLE_CPU_DATA;
    const bool writes = op->kind == OP_MUTABLE_CPU_DATA || op->kind == OP_MUTABLE_GPU_DATA;
    const int place = host ? PLACE_HOST : home_of(root);
    void *pointer = &pointer;
    syncedmem_status_t status;
    TRACE("%s(h%u)", op_name(op->kind), number_of_handle(handle));
    ATTEMPT(status, plain_call(op->kind, handle->buffer, &pointer), recover(root));
    const status_set may = may_access(&root->model, place, handle->range, writes);
    expect_status(status, may, "the call");
    if (status == SYNCEDMEM_OK) {
        after_plain(op, handle, place, writes, pointer);
    } else {
        EXPECT(pointer == NULL, "an out parameter is left");
        check_root(root);
    }
}

void step_push(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const int place = home_of(root);
    const unsigned stream = op->stream % STREAMS;
    syncedmem_stream *where = op->stream == 3 ? NULL : world.stream[place][stream];
    syncedmem_status_t status;
    TRACE("async_gpu_push(h%u, stream %u)", number_of_handle(handle), op->stream);
    ATTEMPT(status, syncedmem_async_gpu_push(handle->buffer, where), recover(root));
    if (status == SYNCEDMEM_OK && !arrives(handle)) {
        recover(root);
        status = syncedmem_async_gpu_push(handle->buffer, where);
    }
    status_set may = may_push(&root->model, place, handle->range);
    if (root->model.size == 0 && handle->view) {
        may = STATUS(SYNCEDMEM_WRONG_STATE);
    }
    expect_status(status, may, "async_gpu_push");
    if (status == SYNCEDMEM_OK) {
        model_bring(&root->model, place, handle->range);
        if (root->base[place] != NULL && root->block[place] == NULL && op->variant % 2 == 0) {
            sight_take(root, place, stream, root->base[place] + handle->range.from, handle->range);
            device_wait(place, stream); /* later calls know nothing of that kernel */
        }
    }
    check_root(root);
}

/* ---- Adoption ---- */

enum adoption {
    SHORT,
    LONGER,
    NOTHING,
    WRONG_MEMORY,
    OWN_MEMORY,
    BAD_FLAGS,
    NO_PLACE_AT_ALL,
    GOOD
};

struct request {
    struct handle *handle;
    int place;
    enum adoption kind;
    enum op_kind call;
    struct block *block;
    void *pointer;
    size_t length;
    syncedmem_adopt_flags_t flags;
    syncedmem_stream *stream;
    syncedmem_place *where;
};

static enum adoption adoption_kind(const struct request *request, unsigned variant)
{
    const struct root *root = request->handle->root;
    const struct model_copy *copy = &root->model.copy[request->place];
    const enum adoption kind = variant % 16 < GOOD ? (enum adoption)(variant % 16) : GOOD;
    const bool needs_size = kind == SHORT || kind == WRONG_MEMORY || kind == OWN_MEMORY;
    const bool needs_adopt = kind == BAD_FLAGS || kind == NO_PLACE_AT_ALL;
    if ((needs_size && root->model.size == 0) || (needs_adopt && request->call != OP_ADOPT) ||
        (kind == OWN_MEMORY && (root->base[request->place] == NULL || copy->adopted))) {
        return GOOD;
    }
    return kind;
}

static void spoil_request(struct request *request, unsigned seed)
{
    const struct root *root = request->handle->root;
    switch (request->kind) {
    case SHORT:
        request->length = root->model.size - 1;
        break;
    case LONGER:
        request->length = root->model.size + seed % 8;
        break;
    case NOTHING:
        request->pointer = NULL;
        break;
    case WRONG_MEMORY:
        request->pointer = world.foreign[request->place == PLACE_HOST ? 1 : PLACE_HOST];
        break;
    case OWN_MEMORY:
        request->pointer = root->base[request->place] + seed % root->model.size;
        break;
    case BAD_FLAGS:
        request->flags |= 1u << 7;
        break;
    case NO_PLACE_AT_ALL:
        request->where = NULL;
        break;
    case GOOD:
        break;
    }
}

static status_set may_request(const struct request *request)
{
    const struct model *model = &request->handle->root->model;
    status_set set = may_adopt(model);
    status_set errors = set & ~MAY_OK;
    if (request->handle->view) {
        errors |= STATUS(SYNCEDMEM_UNSUPPORTED);
        set = 0;
    }
    switch (request->kind) {
    case SHORT:
        return errors | STATUS(SYNCEDMEM_OUT_OF_RANGE);
    case NOTHING:
        return model->size > 0 ? errors | STATUS(SYNCEDMEM_INVALID_ARGUMENT) : set | errors;
    case WRONG_MEMORY:
        return errors | STATUS(SYNCEDMEM_WRONG_MEMORY);
    case OWN_MEMORY:
    case BAD_FLAGS:
    case NO_PLACE_AT_ALL:
        return errors | STATUS(SYNCEDMEM_INVALID_ARGUMENT);
    default:
        return set | errors;
    }
}

static syncedmem_status_t request_call(const struct request *request)
{
    syncedmem_buffer *buffer = request->handle->buffer;
    switch (request->call) {
    case OP_SET_CPU_DATA:
        return syncedmem_set_cpu_data(buffer, request->pointer, request->length);
    case OP_SET_GPU_DATA:
        return syncedmem_set_gpu_data(buffer, request->pointer, request->length);
    default:
        return syncedmem_adopt(buffer, request->where, request->pointer, request->length,
                               request->flags, request->stream,
                               request->block->has_release ? block_release : NULL, request->block);
    }
}

/* The bytes of the block, which may be on their way by a kernel on a stream. */
static void give_bytes(struct request *request, const struct op *op)
{
    const size_t size = request->handle->root->model.size;
    struct block *block = request->block;
    pattern_fill(scratch, size, op->seed);
    if (block->place == PLACE_HOST) {
        memcpy(block->pointer, scratch, size);
        return;
    }
    const unsigned stream = request->call == OP_ADOPT ? op->stream % STREAMS : 0;
    EXPECT(device_write(block->place, stream, block->pointer, scratch, size), "a kernel: %s",
           syncedmem_last_error());
    if (request->call == OP_ADOPT && op->mode % 2 == 0) {
        request->stream = world.stream[block->place][stream];
    } else if (request->call == OP_ADOPT) {
        device_wait(block->place, stream);
    }
}

static void after_adoption(struct request *request, unsigned seed)
{
    struct root *root = request->handle->root;
    const int place = request->place;
    const bool read_only = (request->flags & SYNCEDMEM_ADOPT_READ_ONLY) != 0;
    pattern_fill(scratch, root->model.size, seed);
    model_adopt(&root->model, place, scratch, read_only);
    check_root(root);
    EXPECT(root->block[place] == NULL, "the former use of the memory has not ended");
    root->block[place] = request->block;
    root->base[place] = request->block->pointer;
    root->exposed[place] = false;
    if (read_only) {
        block_read_only(request->block, scratch);
    }
}

void step_adopt(const struct op *op)
{
    struct request request = {.handle = handle_pick(op->handle), .call = op->kind};
    if (request.handle == NULL) {
        return;
    }
    struct root *root = request.handle->root;
    const size_t size = root->model.size;
    request.place = op->kind == OP_SET_CPU_DATA   ? PLACE_HOST
                    : op->kind == OP_SET_GPU_DATA ? home_of(root)
                                                  : (int)op->place % world.places;
    request.kind = adoption_kind(&request, op->variant);
    request.block = block_make(request.place, size, op->variant & 16 ? 64 : 0, op->seed,
                               op->kind == OP_ADOPT && op->mode != 7);
    request.pointer = request.block->pointer;
    request.length = size;
    request.where = world.place[request.place];
    request.flags = op->kind == OP_ADOPT && (op->variant & 32) != 0 ? SYNCEDMEM_ADOPT_READ_ONLY : 0;
    give_bytes(&request, op);
    spoil_request(&request, op->seed);
    syncedmem_status_t status;
    TRACE("%s(h%u, place %d, %p, %zu, flags %u, %s, %s)", op_name(op->kind),
          number_of_handle(request.handle), request.where == NULL ? -1 : request.place,
          request.pointer, request.length, request.flags,
          request.stream == NULL ? "no stream" : "stream",
          request.block->has_release ? "release" : "no release");
    ATTEMPT(status, request_call(&request), recover(root));
    expect_status(status, may_request(&request), "the adoption");
    if (status == SYNCEDMEM_OK) {
        after_adoption(&request, op->seed);
    } else {
        device_wait_all();
        block_end(request.block, false);
    }
    check_root(root);
}

/* ---- All steps ---- */

static void step_wait(const struct op *op)
{
    struct handle *handle = handle_pick(op->handle);
    if (handle != NULL) {
        TRACE("wait(h%u)", number_of_handle(handle));
        expect_status(syncedmem_wait(handle->buffer), MAY_OK, "wait");
    }
}

static void step_slow(const struct op *op)
{
    const int place = 1 + (int)op->place % (world.places - 1);
    TRACE("slow kernel on stream %u", op->stream % STREAMS);
    device_slow(place, op->stream % STREAMS, 20 + (unsigned)op->a % 100);
}

static bool stream_is_leased(int place, unsigned stream)
{
    for (unsigned i = 0; i < LEASES; i++) {
        const struct lease *lease = &world.lease[i];
        if (lease->open && lease->place == place && lease->stream == stream) {
            return true;
        }
    }
    return false;
}

/* Waits for a stream, or leaves it behind with its work and takes a new one. */
static void step_stream(const struct op *op)
{
    const int place = 1 + (int)op->place % (world.places - 1);
    const unsigned stream = op->stream % STREAMS;
    if (op->variant % 2 == 0 || stream == 0 || stream_is_leased(place, stream) ||
        stream_has_sights(place, stream)) {
        TRACE("stream_wait(%u), and all others", stream);
        sights_collect();
        return;
    }
    syncedmem_stream *fresh;
    TRACE("stream_release(%u), stream_create", stream);
    expect_status(syncedmem_stream_create(world.place[place], &fresh), MAY_OK, "stream_create");
    syncedmem_stream_release(world.stream[place][stream]);
    world.stream[place][stream] = fresh;
}

static void step_check(const struct op *op)
{
    (void)op;
    TRACE("check");
    for (unsigned i = 0; i < ROOTS; i++) {
        check_bytes(&world.root[i]);
    }
}

static void step_fault(const struct op *op)
{
    static const int faults[] = {FAULT_HOST_ALLOC,
                                 FAULT_HOST_ALLOC,
                                 SYNCEDMEM_SIM_FAIL_ALLOC,
                                 SYNCEDMEM_SIM_FAIL_COPY,
                                 SYNCEDMEM_SIM_FAIL_COPY_LATE,
                                 SYNCEDMEM_SIM_FAIL_PIN};
    world.fault = faults[op->variant % 6];
    const bool host = world.fault == FAULT_HOST_ALLOC;
    world.fault_nth = host ? 1 + op->seed % 8 : 1 + (op->seed % 8) / 5;
    TRACE("fault: the %u. of kind %d", world.fault_nth, world.fault);
}

void step_take(const struct op *op)
{
    static void (*const steps[OP_KINDS])(const struct op *) = {
        [OP_CREATE] = step_create,
        [OP_VIEW] = step_view,
        [OP_RETAIN] = step_retain,
        [OP_RELEASE] = step_release,
        [OP_CPU_DATA] = step_plain,
        [OP_MUTABLE_CPU_DATA] = step_plain,
        [OP_GPU_DATA] = step_plain,
        [OP_MUTABLE_GPU_DATA] = step_plain,
        [OP_SET_CPU_DATA] = step_adopt,
        [OP_SET_GPU_DATA] = step_adopt,
        [OP_ADOPT] = step_adopt,
        [OP_PUSH] = step_push,
        [OP_BEGIN] = step_begin,
        [OP_WRITE] = step_write,
        [OP_END] = step_end,
        [OP_PREFETCH] = step_prefetch,
        [OP_MARK] = step_mark,
        [OP_COPY] = step_copy,
        [OP_FILL] = step_fill,
        [OP_DROP] = step_drop,
        [OP_WAIT] = step_wait,
        [OP_LOOK] = step_look,
        [OP_REFUSED] = step_refused,
        [OP_SLOW] = step_slow,
        [OP_STREAM] = step_stream,
        [OP_SCATTER] = step_scatter,
        [OP_CHECK] = step_check,
        [OP_FAULT] = step_fault,
    };
    world.doing = op->kind;
    steps[op->kind](op);
    if (op->kind != OP_FAULT) {
        world.fault = 0;
    }
}
