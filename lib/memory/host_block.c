/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/host_block.h"

/* Up to here glibc's malloc reuses warm memory (DEFAULT_MMAP_THRESHOLD_MAX), which is cheaper
 * to clear than fresh pages are to fault in; from here on it returns fresh pages itself.
 * tests/bench measures both. */
#define HOST_BLOCK_LARGE (SIZE_MAX > UINT32_MAX ? (size_t)32 << 20 : (size_t)512 << 10)

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_up(size_t size, size_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

static void *alloc_pages(size_t size)
{
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    /* Seven times faster when all bytes are written; a refusal does no harm. */
    madvise(block, size, MADV_HUGEPAGE);
    return block;
}

/* Aligned by hand, with malloc's pointer kept before the block: aligned_alloc would scatter the
 * heap, and there is no aligned calloc, which knows of pages that are zero already. */
static void *alloc_reused(size_t size, unsigned flags)
{
    const size_t alignment = flags & HOST_BLOCK_PAGES ? page_size() : HOST_BLOCK_ALIGNMENT;
    const size_t room = round_up(size, alignment) + alignment;
    char *start = flags & HOST_BLOCK_ZEROED ? calloc(1, room) : malloc(room);
    if (!start)
        return NULL;
    void *block = start + alignment - (uintptr_t)start % alignment;
    ((void **)block)[-1] = start;
    return block;
}

void *syncedmem_host_block_alloc(size_t size, unsigned flags)
{
    if (size > PTRDIFF_MAX - page_size())
        return NULL;
    return size >= HOST_BLOCK_LARGE ? alloc_pages(size) : alloc_reused(size, flags);
}

void syncedmem_host_block_free(void *block, size_t size)
{
    if (size >= HOST_BLOCK_LARGE)
        munmap(block, size);
    else
        free(((void **)block)[-1]);
}
