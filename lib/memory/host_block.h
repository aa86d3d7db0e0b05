/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host memory for the bytes of buffers.
 *
 * Small and middle blocks come from malloc, which reuses warm pages; from
 * HOST_BLOCK_LARGE on they are fresh pages of the system, which are zero for nothing until
 * they are touched. Both start at a multiple of 64; with HOST_BLOCK_PAGES they consist of
 * whole pages that no one else uses, as registering memory with a driver needs.
 */
#ifndef SYNCEDMEM_MEMORY_HOST_BLOCK_H
#define SYNCEDMEM_MEMORY_HOST_BLOCK_H

#include <stddef.h>

enum { HOST_BLOCK_ALIGNMENT = 64 };

enum host_block_flags {
    HOST_BLOCK_ZEROED = 1, /* all bytes zero; else arbitrary */
    HOST_BLOCK_PAGES = 2
};

/* NULL when there is no memory. size > 0. */
void *syncedmem_host_block_alloc(size_t size, unsigned flags);

void syncedmem_host_block_free(void *block, size_t size);

#endif
