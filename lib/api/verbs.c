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
                                .stream = stream ? stream->ref : (struct stream_ref){0},
                                .release = release,
                                .user = user};
    status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = syncedmem_adopt_memory(buffer->root, &adopt);
    syncedmem_root_unlock(buffer->root);
    return status;
}

/* ---- One range of one buffer ---- */

/* On the host the stream is the giving device's. */
static syncedmem_status_t choose_prefetch_stream(const syncedmem_stream *stream,
                                                 const syncedmem_place *place,
                                                 struct stream_choice *choice)
{
    if (place_is_host(place)) {
        if (stream)
            *choice = (struct stream_choice){.place = stream->place, .ref = stream->ref};
        return SYNCEDMEM_OK;
    }
    const syncedmem_status_t status = syncedmem_require_stream_at(stream, place);
    choice->place = place;
    return status == SYNCEDMEM_OK ? syncedmem_stream_ref(stream, place, &choice->ref) : status;
}

syncedmem_status_t syncedmem_prefetch(syncedmem_buffer *buffer, syncedmem_place *place,
                                      size_t offset, size_t length, syncedmem_stream *stream)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    REQUIRE_ARGUMENT(place);
    struct stream_choice choice = {0};
    syncedmem_status_t status = range_in_root(buffer, &offset, length);
    if (status == SYNCEDMEM_OK)
        status = choose_prefetch_stream(stream, place, &choice);
    const size_t end = range_end(buffer, offset, length);
    if (status != SYNCEDMEM_OK || offset == end)
        return status;
    const struct access access = {.place = place,
                                  .mode = ACCESS_READ,
                                  .from = offset,
                                  .to = end,
                                  .choice = choice,
                                  .ordered = true};
    unsigned slot;
    status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
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
    status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
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
    status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
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
    status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = syncedmem_move_drop(buffer->root, place);
    syncedmem_root_unlock(buffer->root);
    return status;
}

/* ---- Two buffers: locked in the order of their addresses, so that no two calls wait for each
 * other ---- */

static syncedmem_status_t lock_both(struct root *one, struct root *other)
{
    struct root *first = (uintptr_t)one < (uintptr_t)other ? one : other;
    struct root *second = first == one ? other : one;
    syncedmem_status_t status = syncedmem_root_lock(first);
    if (status != SYNCEDMEM_OK || second == first)
        return status;
    status = syncedmem_root_lock(second);
    if (status != SYNCEDMEM_OK)
        syncedmem_root_unlock(first);
    return status;
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
    status = lock_both(to->root, from->root);
    if (status != SYNCEDMEM_OK)
        return status;
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
    syncedmem_status_t status = range_in_root(buffer, &offset, length);
    if (status != SYNCEDMEM_OK || length == 0)
        return status;
    status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    *out_bytes = valid_bytes(buffer->root, place, offset, offset + length);
    syncedmem_root_unlock(buffer->root);
    return SYNCEDMEM_OK;
}
