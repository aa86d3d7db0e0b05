/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges that callers give, and what handles can be used for. */
#ifndef SYNCEDMEM_API_RANGE_H
#define SYNCEDMEM_API_RANGE_H

#include "base/error.h"
#include "core/root.h"

/* A range of a handle, of which `offset` becomes the one in the root. */
static inline syncedmem_status_t range_in_root(const syncedmem_buffer *buffer, size_t *offset,
                                               size_t length)
{
    if (*offset > buffer->length || length > buffer->length - *offset)
        return syncedmem_error(SYNCEDMEM_OUT_OF_RANGE,
                               "%zu bytes from %zu on do not lie in the %zu of the buffer", length,
                               *offset, buffer->length);
    *offset += buffer->offset;
    return SYNCEDMEM_OK;
}

/* The end, in the root's map, of a range of a handle that starts there: all of a buffer of size 0
 * is a byte that does not exist, so that its head moves as any other. Any other range of length 0
 * is empty. */
static inline size_t range_end(const syncedmem_buffer *buffer, size_t from, size_t length)
{
    const bool is_all_of_nothing = buffer->root->size == 0 && !handle_is_view(buffer);
    return from + (is_all_of_nothing ? 1 : length);
}

/* Memory as a whole is the whole buffer's. */
static inline syncedmem_status_t require_whole(const syncedmem_buffer *buffer, const char *what)
{
    if (!handle_is_view(buffer))
        return SYNCEDMEM_OK;
    return syncedmem_error(SYNCEDMEM_UNSUPPORTED,
                           "a view has no memory of its own: call %s on the whole buffer", what);
}

#endif
