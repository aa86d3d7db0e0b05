/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the program hands to buffers, and gets back. */
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { POISON = 0xDB, GUARD_BYTE = 0x6A };

void *block_memory(const struct block *block)
{
    return block->raw + GUARD;
}

const unsigned char *block_bytes(const struct block *block)
{
    return block->before;
}

/* With what lies around it. */
static void whole(const struct block *block, const unsigned char *inside, unsigned char *bytes)
{
    memset(bytes, GUARD_BYTE, block->size + 2 * GUARD);
    memcpy(bytes + GUARD, inside, block->size);
}

struct block *block_make(int place, size_t size, syncedmem_stream *stream)
{
    if (world.blocks_made == BLOCKS_MOST) {
        return NULL;
    }
    struct block *block = &world.blocks[world.blocks_made++];
    unsigned char bytes[SIZE_MOST + 2 * GUARD];
    *block = (struct block){.exists = true, .place = place, .size = size};
    for (size_t i = 0; i < size; i++) {
        block->before[i] = (unsigned char)throw_dice();
    }
    whole(block, block->before, bytes);
    if (place == HOST) {
        block->raw = malloc(size + 2 * GUARD);
        EXPECT(block->raw != NULL, "no memory");
        memcpy(block->raw, bytes, size + 2 * GUARD);
        return block;
    }
    void *raw;
    EXPECT_OK(syncedmem_sim_alloc(world.places[place], size + 2 * GUARD, &raw));
    block->raw = raw;
    put_bytes(stream, raw, bytes, size + 2 * GUARD);
    return block;
}

/* Called while a call of the library ends its use: host memory is poisoned at once. */
void block_release(void *user)
{
    struct block *block = user;
    block->called++;
    if (block->place == HOST && block->called == 1) {
        if (block->read_only && memcmp(block_memory(block), block->before, block->size) != 0) {
            block->called = 100;
        }
        memset(block_memory(block), POISON, block->size);
    }
}

static void poison_device(struct block *block)
{
    unsigned char poison[SIZE_MOST];
    syncedmem_stream *stream;
    EXPECT(!block->read_only ||
               has_bytes(block->place, block_memory(block), block->before, block->size),
           "read-only memory on a device was written");
    if (chance(70)) {
        EXPECT_OK(syncedmem_sim_free(world.places[block->place], block->raw));
        block->freed = true;
        return;
    }
    memset(poison, POISON, block->size);
    EXPECT_OK(syncedmem_stream_create(world.places[block->place], &stream));
    put_bytes(stream, block_memory(block), poison, block->size);
    syncedmem_stream_wait(stream);
    syncedmem_stream_release(stream);
}

static void take_back(struct block *block)
{
    block->ended = true;
    EXPECT(!block->has_callback || block->called == 1,
           "release function of a block: called %u times (100: read-only memory was written)",
           block->called);
    if (block->place != HOST) {
        poison_device(block);
    } else if (!block->has_callback) {
        memset(block_memory(block), POISON, block->size);
    }
}

void block_end(struct block **link)
{
    struct block *block = *link;
    *link = NULL;
    if (block != NULL && !block->ended) {
        take_back(block);
    }
}

void blocks_sweep(void)
{
    for (int i = 0; i < BUFFERS; i++) {
        for (int place = 0; place < PLACES; place++) {
            struct block **link = &world.buffers[i].blocks[place];
            if (*link != NULL && (*link)->called != 0) {
                EXPECT((*link)->read_only, "the use of a block ended though nothing asked for it");
                block_end(link);
            }
        }
    }
}

void blocks_check(void)
{
    for (size_t i = 0; i < world.blocks_made; i++) {
        struct block *block = &world.blocks[i];
        unsigned char inside[SIZE_MOST], bytes[SIZE_MOST + 2 * GUARD];
        EXPECT(block->ended, "block %zu is still in use", i);
        memset(inside, POISON, block->size);
        whole(block, inside, bytes);
        const size_t size = block->size + 2 * GUARD;
        const bool good = block->freed ||
                          (block->place == HOST ? memcmp(block->raw, bytes, size) == 0
                                                : has_bytes(block->place, block->raw, bytes, size));
        EXPECT(good, "block %zu was written after its use had ended, or outside", i);
        EXPECT(block->called <= block->has_callback, "release function called %u times",
               block->called);
        if (block->place == HOST) {
            free(block->raw);
        } else if (!block->freed) {
            EXPECT_OK(syncedmem_sim_free(world.places[block->place], block->raw));
        }
    }
}
