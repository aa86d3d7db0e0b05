/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/check.h"
#include "api/range.h"
#include "core/access.h"
#include "core/adopt.h"
#include "core/move.h"

/* ---- Adoption ---- */

static syncedmem_status_t check_adopt(const syncedmem_buffer *buffer, const syncedmem_place *place,
                                      syncedmem_adopt_flags_t flags, const syncedmem_stream *stream)
{
    syncedmem_status_t status = require_whole(buffer, "adopt");
    if (status == SYNCEDMEM_OK && flags & ~(syncedmem_adopt_flags_t)SYNCEDMEM_ADOPT_READ_ONLY)
        status = syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "0x%x has bits that are no flags",
                                 (unsigned)flags);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_require_stream_at(stream, place);
    return status;
}

syncedmem_status_t syncedmem_adopt(syncedmem_buffer *buffer, syncedmem_place *place, void *pointer,
                                   size_t length, syncedmem_adopt_flags_t flags,
                                   syncedmem_stream *stream, syncedmem_release_fn release,
                                   void *user)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    REQUIRE_ARGUMENT(place);
    syncedmem_status_t status = check_adopt(buffer, place, flags, stream);
    if (status != SYNCEDMEM_OK)
        return status;
    const struct adopt adopt = {.place = place,
                                .memory = pointer,
                                .length = length,
                                .read_only = (flags & SYNCEDMEM_ADOPT_READ_ONLY) != 0,
                                .stream = stream ? stream->stream : NULL,
                                .release = release,
                                .user = user};
    syncedmem_root_lock(buffer->root);
    status = syncedmem_adopt_memory(buffer->root, &adopt);
    syncedmem_root_unlock(buffer->root);
    return status;
}

/* ---- One range of one buffer ---- */

/* On the host the stream is the giving device's. */
static syncedmem_status_t check_prefetch(const syncedmem_stream *stream,
                                         const syncedmem_place *place)
{
    return place_is_host(place) ? SYNCEDMEM_OK : syncedmem_require_stream_at(stream, place);
}

syncedmem_status_t syncedmem_prefetch(syncedmem_buffer *buffer, syncedmem_place *place,
                                      size_t offset, size_t length, syncedmem_stream *stream)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    REQUIRE_ARGUMENT(place);
    syncedmem_status_t status = range_in_root(buffer, &offset, length);
    if (status == SYNCEDMEM_OK)
        status = check_prefetch(stream, place);
    const size_t end = range_end(buffer, offset, length);
    if (status != SYNCEDMEM_OK || offset == end)
        return status;
    struct access access = {
        .place = place, .mode = ACCESS_READ, .from = offset, .to = end, .asynchronous = true};
    if (stream)
        access.choice = (struct stream_choice){stream->place, stream->stream};
    unsigned slot;
    syncedmem_root_lock(buffer->root);
    status = syncedmem_access(buffer->root, &access, &slot);
    syncedmem_root_unlock(buffer->root);
    return status;
}

syncedmem_status_t syncedmem_mark_modified(syncedmem_buffer *buffer, syncedmem_place *place,
                                           size_t offset, size_t length)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    REQUIRE_ARGUMENT(place);
    syncedmem_status_t status = range_in_root(buffer, &offset, length);
    const size_t end = range_end(buffer, offset, length);
    if (status != SYNCEDMEM_OK || offset == end)
        return status;
    syncedmem_root_lock(buffer->root);
    status = syncedmem_move_mark(buffer->root, place, offset, end);
    syncedmem_root_unlock(buffer->root);
    return status;
}

syncedmem_status_t syncedmem_fill(syncedmem_buffer *buffer, size_t offset, size_t length,
                                  uint8_t value)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    syncedmem_status_t status = range_in_root(buffer, &offset, length);
    if (status != SYNCEDMEM_OK || length == 0)
        return status;
    syncedmem_root_lock(buffer->root);
    status = syncedmem_move_fill(buffer->root, offset, offset + length, value);
    syncedmem_root_unlock(buffer->root);
    return status;
}

syncedmem_status_t syncedmem_drop(syncedmem_buffer *buffer, syncedmem_place *place)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    REQUIRE_ARGUMENT(place);
    syncedmem_status_t status = require_whole(buffer, "drop");
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_root_lock(buffer->root);
    status = syncedmem_move_drop(buffer->root, place);
    syncedmem_root_unlock(buffer->root);
    return status;
}

/* ---- Two buffers: locked in the order of their addresses, so that no two calls wait for each
 * other ---- */

static void lock_both(struct root *one, struct root *other)
{
    struct root *first = (uintptr_t)one < (uintptr_t)other ? one : other;
    struct root *second = first == one ? other : one;
    syncedmem_root_lock(first);
    if (second != first)
        syncedmem_root_lock(second);
}

static void unlock_both(struct root *one, struct root *other)
{
    struct adoption *of_other = other != one ? syncedmem_root_unlock_only(other) : NULL;
    syncedmem_root_unlock(one);
    syncedmem_adoptions_tell(of_other);
}

syncedmem_status_t syncedmem_copy(syncedmem_buffer *to, size_t to_offset, syncedmem_buffer *from,
                                  size_t from_offset, size_t length)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(to);
    REQUIRE_ARGUMENT(from);
    syncedmem_status_t status = range_in_root(to, &to_offset, length);
    if (status == SYNCEDMEM_OK)
        status = range_in_root(from, &from_offset, length);
    if (status != SYNCEDMEM_OK || length == 0)
        return status;
    lock_both(to->root, from->root);
    status = syncedmem_move_copy(to->root, to_offset, from->root, from_offset, length);
    unlock_both(to->root, from->root);
    return status;
}

/* ---- Looking ---- */

static size_t valid_bytes(const struct root *root, const syncedmem_place *place, size_t from,
                          size_t to)
{
    unsigned slot;
    if (!root->body || !syncedmem_copy_find(root->body, place, &slot))
        return 0;
    return syncedmem_map_valid_bytes(&root->body->map, from, to, slot_bit(slot));
}

syncedmem_status_t syncedmem_valid_bytes(const syncedmem_buffer *buffer, syncedmem_place *place,
                                         size_t offset, size_t length, size_t *out_bytes)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_bytes);
    REQUIRE_ARGUMENT(buffer);
    REQUIRE_ARGUMENT(place);
    const syncedmem_status_t status = range_in_root(buffer, &offset, length);
    if (status != SYNCEDMEM_OK || length == 0)
        return status;
    syncedmem_root_lock(buffer->root);
    *out_bytes = valid_bytes(buffer->root, place, offset, offset + length);
    syncedmem_root_unlock(buffer->root);
    return SYNCEDMEM_OK;
}
