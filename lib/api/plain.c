/* SPDX-License-Identifier: BSD-2-Clause */
/* Caffe's calls. The four accessors have a hot path that needs no lock; see core/root.h. */
#include "api/check.h"
#include "api/range.h"
#include "core/access.h"
#include "core/adopt.h"
#include "core/move.h"

/* ---- Hot path ---- */

static inline bool is_hot(const syncedmem_buffer *buffer, uint64_t bit)
{
    const uint64_t stamp = atomic_load_explicit(&buffer->stamp, memory_order_acquire);
    const uint64_t version = atomic_load_explicit(&buffer->root->version, memory_order_acquire);
    const uint64_t epoch = atomic_load_explicit(&syncedmem_epoch, memory_order_relaxed);
    const uint64_t difference = stamp ^ version ^ epoch;
    return (difference & (~(uint64_t)HOT_BITS | bit)) == 0;
}

static inline void *hot_pointer(const syncedmem_buffer *buffer, enum side side)
{
    return atomic_load_explicit(&buffer->pointers[side], memory_order_relaxed);
}

/* ---- Slow path ---- */

static syncedmem_status_t place_of_side(const struct root *root, enum side side,
                                        syncedmem_place **out_place)
{
    if (side == DEVICE_SIDE)
        return syncedmem_root_home(root, out_place);
    *out_place = syncedmem_host();
    return SYNCEDMEM_OK;
}

/* Under the lock. An empty range has a fixed pointer, and a device must be there all the same. */
static syncedmem_status_t access_side(syncedmem_buffer *buffer, enum side side,
                                      enum access_mode mode, void **out_pointer)
{
    struct root *root = buffer->root;
    struct access access = {
        .mode = mode, .from = handle_from(buffer), .to = handle_to(buffer), .expose = true};
    unsigned slot = side == HOST_SIDE ? HOST_SLOT : HOST_SLOT + 1;
    syncedmem_status_t status = place_of_side(root, side, &access.place);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_root_touch(root);
    if (status == SYNCEDMEM_OK && access.from < access.to)
        status = syncedmem_access(root, &access, &slot);
    if (status != SYNCEDMEM_OK)
        return status;
    *out_pointer = syncedmem_copy_address(root, slot, buffer->offset, buffer->length);
    syncedmem_root_refresh_stamp(buffer);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t locked_access(syncedmem_buffer *buffer, enum side side,
                                        enum access_mode mode, void **out_pointer)
{
    REQUIRE_ARGUMENT(buffer);
    syncedmem_status_t status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = access_side(buffer, side, mode, out_pointer);
    syncedmem_root_unlock(buffer->root);
    return status;
}

static __attribute__((noinline)) syncedmem_status_t slow_read(syncedmem_buffer *buffer,
                                                              enum side side,
                                                              const void **out_pointer)
{
    PUBLIC_CALL_AS(side == HOST_SIDE ? "syncedmem_cpu_data" : "syncedmem_gpu_data");
    REQUIRE_OUT(out_pointer);
    void *pointer = NULL;
    const syncedmem_status_t status = locked_access(buffer, side, ACCESS_READ, &pointer);
    *out_pointer = pointer;
    return status;
}

static __attribute__((noinline)) syncedmem_status_t slow_write(syncedmem_buffer *buffer,
                                                               enum side side, void **out_pointer)
{
    PUBLIC_CALL_AS(side == HOST_SIDE ? "syncedmem_mutable_cpu_data" : "syncedmem_mutable_gpu_data");
    REQUIRE_OUT(out_pointer);
    return locked_access(buffer, side, ACCESS_READ_WRITE, out_pointer);
}

/* ---- Accessors ---- */

static inline syncedmem_status_t read_side(syncedmem_buffer *buffer, enum side side, uint64_t bit,
                                           const void **out_pointer)
{
    if (__builtin_expect(!buffer || !out_pointer || !is_hot(buffer, bit), 0))
        return slow_read(buffer, side, out_pointer);
    *out_pointer = hot_pointer(buffer, side);
    return SYNCEDMEM_OK;
}

static inline syncedmem_status_t write_side(syncedmem_buffer *buffer, enum side side, uint64_t bit,
                                            void **out_pointer)
{
    if (__builtin_expect(!buffer || !out_pointer || !is_hot(buffer, bit), 0))
        return slow_write(buffer, side, out_pointer);
    *out_pointer = hot_pointer(buffer, side);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_cpu_data(syncedmem_buffer *buffer, const void **out_pointer)
{
    return read_side(buffer, HOST_SIDE, HOT_CPU_READ, out_pointer);
}

syncedmem_status_t syncedmem_mutable_cpu_data(syncedmem_buffer *buffer, void **out_pointer)
{
    return write_side(buffer, HOST_SIDE, HOT_CPU_WRITE, out_pointer);
}

syncedmem_status_t syncedmem_gpu_data(syncedmem_buffer *buffer, const void **out_pointer)
{
    return read_side(buffer, DEVICE_SIDE, HOT_GPU_READ, out_pointer);
}

syncedmem_status_t syncedmem_mutable_gpu_data(syncedmem_buffer *buffer, void **out_pointer)
{
    return write_side(buffer, DEVICE_SIDE, HOT_GPU_WRITE, out_pointer);
}

/* ---- Adoption ---- */

static syncedmem_status_t adopt_side(syncedmem_buffer *buffer, enum side side, void *pointer,
                                     size_t length)
{
    struct root *root = buffer->root;
    struct adopt adopt = {.memory = pointer, .length = length, .expose = true};
    syncedmem_status_t status = syncedmem_root_lock(root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = place_of_side(root, side, &adopt.place);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_adopt_memory(root, &adopt);
    syncedmem_root_unlock(root);
    return status;
}

syncedmem_status_t syncedmem_set_cpu_data(syncedmem_buffer *buffer, void *pointer, size_t length)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    const syncedmem_status_t status = require_whole(buffer, "set_cpu_data");
    return status == SYNCEDMEM_OK ? adopt_side(buffer, HOST_SIDE, pointer, length) : status;
}

syncedmem_status_t syncedmem_set_gpu_data(syncedmem_buffer *buffer, void *pointer, size_t length)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    const syncedmem_status_t status = require_whole(buffer, "set_gpu_data");
    return status == SYNCEDMEM_OK ? adopt_side(buffer, DEVICE_SIDE, pointer, length) : status;
}

/* ---- Push ---- */

/* A stream names its device, which then is the home of a buffer that has none. */
static syncedmem_status_t place_of_push(const struct root *root, const syncedmem_stream *stream,
                                        syncedmem_place **out_place)
{
    if (!stream)
        return syncedmem_root_home(root, out_place);
    *out_place = stream->place;
    if (root->home && root->home != stream->place)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT,
                               "the stream is on %s and the buffer's home is %s",
                               stream->place->name, root->home->name);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_async_gpu_push(syncedmem_buffer *buffer, syncedmem_stream *stream)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    struct root *root = buffer->root;
    syncedmem_place *place;
    struct stream_ref ref;
    syncedmem_status_t status = syncedmem_root_lock(root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = place_of_push(root, stream, &place);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_stream_ref(stream, place, &ref);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_move_push(root, place, ref, handle_from(buffer), handle_to(buffer));
    syncedmem_root_unlock(root);
    return status;
}
