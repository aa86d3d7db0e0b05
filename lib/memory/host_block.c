/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/host_block.h"

/* Where clearing warm memory begins to cost more than faulting fresh pages in;
 * tests/bench measures both sides of it. */
#define HOST_BLOCK_LARGE ((size_t)32 << 20)

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
    return block == MAP_FAILED ? NULL : block;
}

static void *alloc_reused(size_t size, unsigned flags)
{
    const size_t alignment = flags & HOST_BLOCK_PAGES ? page_size() : HOST_BLOCK_ALIGNMENT;
    const size_t rounded = round_up(size, alignment);
    void *block = aligned_alloc(alignment, rounded);
    if (block && flags & HOST_BLOCK_ZEROED)
        memset(block, 0, size);
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
        free(block);
}
