/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the root that a handle stands for. */
#ifndef SYNCEDMEM_API_RANGE_H
#define SYNCEDMEM_API_RANGE_H

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

#endif
