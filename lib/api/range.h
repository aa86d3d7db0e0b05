/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the root that a handle, or a range of a handle, stands for. */
#ifndef SYNCEDMEM_API_RANGE_H
#define SYNCEDMEM_API_RANGE_H

#include "base/error.h"
#include "core/root.h"

static inline size_t range_start(const syncedmem_buffer *buffer)
{
    return buffer->offset;
}

/* A root of size 0 has a map of one byte; see syncedmem_root_span(). */
static inline size_t range_end(const syncedmem_buffer *buffer)
{
    return buffer->offset + (buffer->root->size > 0 ? buffer->length : 1);
}

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

/* Whether there are bytes to act on. A range of length 0 is empty, but for all of a root of size 0,
 * whose head moves as any other. */
static inline bool range_is_empty(size_t from, size_t to)
{
    return from == to;
}

static inline bool is_view(const syncedmem_buffer *buffer)
{
    return buffer != &buffer->root->whole;
}

/* Memory as a whole is the whole buffer's. */
static inline syncedmem_status_t require_whole(const syncedmem_buffer *buffer, const char *what)
{
    if (!is_view(buffer))
        return SYNCEDMEM_OK;
    return syncedmem_error(SYNCEDMEM_UNSUPPORTED,
                           "a view has no memory of its own: call %s on the whole buffer", what);
}

#endif
