/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a device: one file in memory, mapped twice.
 *
 * Users get addresses of a mapping without any access, so that a host access faults as it
 * would with a GPU. The engine and the kernels use the other mapping. Pages that were never
 * written take no memory, so a device of many gigabytes costs nothing until it is used.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    POISON = 0xCD,                /* what fresh blocks hold: no one may rely on zeros */
    POISONED_WHOLE = 1024 * 1024, /* up to this size everywhere, beyond it at both ends */
    POISONED_END = 64 * 1024,
    GIVEN_BACK = 1024 * 1024 /* freed blocks from this size on return their pages */
};

/* ---- The file and its mappings ---- */

static unsigned char *map(const struct engine_memory *memory, int protection)
{
    void *address =
        mmap(NULL, memory->mapped, protection, MAP_SHARED | MAP_NORESERVE, memory->file, 0);
    return address == MAP_FAILED ? NULL : address;
}

static enum engine_result open_file(struct engine_memory *memory)
{
    memory->file = memfd_create("syncedmem-sim", MFD_CLOEXEC);
    if (memory->file < 0)
        return ENGINE_HOST_MEMORY;
    if (ftruncate(memory->file, (off_t)memory->mapped) != 0)
        goto fail_file;
    memory->handed_out = map(memory, PROT_NONE);
    if (memory->handed_out == NULL)
        goto fail_file;
    memory->usable = map(memory, PROT_READ | PROT_WRITE);
    if (memory->usable == NULL)
        goto fail_mapping;
    return ENGINE_OK;

fail_mapping:
    munmap(memory->handed_out, memory->mapped);
fail_file:
    close(memory->file);
    return ENGINE_HOST_MEMORY;
}

enum engine_result syncedmem_engine_memory_open(struct engine_device *device,
                                                struct engine_memory **out_memory)
{
    struct engine_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return ENGINE_HOST_MEMORY;
    atomic_init(&memory->references, 1u);
    memory->device = device;
    memory->capacity = device->capacity;
    memory->page = (size_t)sysconf(_SC_PAGESIZE);
    memory->mapped = memory->capacity / memory->page * memory->page;
    if (memory->mapped < memory->capacity || memory->mapped == 0)
        memory->mapped += memory->page;
    enum engine_result result = open_file(memory);
    if (result != ENGINE_OK) {
        free(memory);
        memory = NULL;
    }
    *out_memory = memory;
    return result;
}

void syncedmem_engine_memory_forget(struct engine_memory *memory)
{
    free(memory->blocks);
    memory->blocks = NULL;
    memory->count = memory->room = memory->packed = memory->used = 0;
    memory->pinned = 0;
    while (memory->pins != NULL) {
        struct engine_pin *pin = memory->pins;
        memory->pins = pin->next;
        free(pin);
    }
}

void syncedmem_engine_memory_release(struct engine_memory *memory)
{
    if (atomic_fetch_sub_explicit(&memory->references, 1u, memory_order_acq_rel) != 1)
        return;
    munmap(memory->usable, memory->mapped);
    munmap(memory->handed_out, memory->mapped);
    close(memory->file);
    syncedmem_engine_memory_forget(memory);
    free(memory);
}

struct engine_memory *syncedmem_engine_memory_of(struct engine_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct engine_memory *memory = device->memory;
    atomic_fetch_add_explicit(&memory->references, 1u, memory_order_relaxed);
    pthread_mutex_unlock(&device->lock);
    return memory;
}

void syncedmem_engine_clear(const struct engine_memory *memory, unsigned char *bytes, size_t length)
{
    size_t start = (size_t)(bytes - memory->usable);
    size_t end = start + length;
    size_t first = (start + memory->page - 1) / memory->page * memory->page;
    size_t last = end / memory->page * memory->page;
    if (first >= last || fallocate(memory->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                   (off_t)first, (off_t)(last - first)) != 0) {
        memset(bytes, 0, length);
        return;
    }
    memset(bytes, 0, first - start);
    memset(memory->usable + last, 0, end - last);
}

/* ---- Addresses ---- */

/* Distance from the start of the memory; beyond its end for an address that lies before it. */
static size_t offset_of(const struct engine_memory *memory, const void *address)
{
    return (size_t)((uintptr_t)address - (uintptr_t)memory->handed_out);
}

bool syncedmem_engine_owns(struct engine_device *device, const void *address)
{
    pthread_mutex_lock(&device->lock);
    bool owned = offset_of(device->memory, address) < device->memory->capacity;
    pthread_mutex_unlock(&device->lock);
    return owned;
}

/* By numbers: the address may still turn out to be none of the device's. */
void *syncedmem_engine_usable(const struct engine_memory *memory, const void *address)
{
    return (void *)((uintptr_t)memory->usable + offset_of(memory, address));
}

void *syncedmem_engine_translate(struct engine_device *device, const void *address)
{
    pthread_mutex_lock(&device->lock);
    void *usable = syncedmem_engine_usable(device->memory, address);
    pthread_mutex_unlock(&device->lock);
    return usable;
}

/* ---- Blocks. The device's lock is held. ---- */

static size_t footprint(size_t size)
{
    size_t units = size / ENGINE_ALIGNMENT + (size % ENGINE_ALIGNMENT != 0);
    return (units != 0 ? units : 1) * ENGINE_ALIGNMENT;
}

static size_t end_of(const struct engine_block *block)
{
    return block->offset + footprint(block->size);
}

/* How many blocks start at or before the offset: the last of them is the one that may hold it. */
static size_t blocks_up_to(const struct engine_memory *memory, size_t offset)
{
    size_t low = 0;
    size_t high = memory->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->blocks[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct engine_block *block_at(const struct engine_memory *memory, size_t offset)
{
    size_t index = blocks_up_to(memory, offset);
    if (index == 0)
        return NULL;
    struct engine_block *block = &memory->blocks[index - 1];
    return offset - block->offset < block->size ? block : NULL;
}

/* Where the free space before a block starts, and where that after the last one does. */
static size_t gap_start(const struct engine_memory *memory, size_t index)
{
    return index == 0 ? 0 : end_of(&memory->blocks[index - 1]);
}

static size_t gap_end(const struct engine_memory *memory, size_t index)
{
    return index == memory->count ? memory->capacity : memory->blocks[index].offset;
}

static void skip_packed(struct engine_memory *memory)
{
    while (memory->packed < memory->count &&
           gap_start(memory, memory->packed) == gap_end(memory, memory->packed))
        memory->packed++;
}

/* First fit: the index before which a block of that size goes. */
static bool find_gap(const struct engine_memory *memory, size_t size, size_t *out_index)
{
    for (size_t index = memory->packed; index <= memory->count; index++) {
        size_t free_bytes = gap_end(memory, index) - gap_start(memory, index);
        /* The size itself first: rounding up a huge one overflows. */
        if (size <= free_bytes && footprint(size) <= free_bytes) {
            *out_index = index;
            return true;
        }
    }
    return false;
}

static bool make_room(struct engine_memory *memory)
{
    if (memory->count < memory->room)
        return true;
    size_t room = memory->room == 0 ? 16 : 2 * memory->room;
    struct engine_block *blocks = realloc(memory->blocks, room * sizeof *blocks);
    if (blocks == NULL)
        return false;
    memory->blocks = blocks;
    memory->room = room;
    return true;
}

static enum engine_result add_block(struct engine_memory *memory, size_t size, size_t *out_offset)
{
    size_t index;
    if (!find_gap(memory, size, &index))
        return ENGINE_DEVICE_MEMORY;
    if (!make_room(memory))
        return ENGINE_HOST_MEMORY;
    struct engine_block *block = &memory->blocks[index];
    size_t offset = gap_start(memory, index);
    memmove(block + 1, block, (memory->count - index) * sizeof *block);
    *block =
        (struct engine_block){.offset = offset, .size = size, .serial = ++memory->device->serials};
    memory->count++;
    memory->used += footprint(size);
    skip_packed(memory);
    *out_offset = offset;
    return ENGINE_OK;
}

static enum engine_result remove_block(struct engine_memory *memory, size_t offset)
{
    size_t index = blocks_up_to(memory, offset);
    if (index == 0 || memory->blocks[index - 1].offset != offset)
        return ENGINE_BAD_ADDRESS;
    struct engine_block *block = &memory->blocks[--index];
    size_t size = block->size;
    /* Under the lock, so that no one is given these bytes before they are cleared. */
    if (size >= GIVEN_BACK)
        syncedmem_engine_clear(memory, memory->usable + offset, size);
    memory->count--;
    memmove(block, block + 1, (memory->count - index) * sizeof *block);
    memory->used -= footprint(size);
    if (memory->packed > index)
        memory->packed = index;
    return ENGINE_OK;
}

/* ---- Blocks, for the callers ---- */

static void poison(unsigned char *bytes, size_t size)
{
    if (size <= POISONED_WHOLE) {
        memset(bytes, POISON, size);
        return;
    }
    memset(bytes, POISON, POISONED_END);
    memset(bytes + size - POISONED_END, POISON, POISONED_END);
}

/* The bytes are written without the lock: the memory stays mapped though it be lost meanwhile. */
static enum engine_result alloc_from(struct engine_memory *memory, size_t size, void **out_address)
{
    struct engine_device *device = memory->device;
    size_t offset = 0;
    pthread_mutex_lock(&device->lock);
    bool lost = memory->lost;
    enum engine_result result = lost ? ENGINE_LOST : add_block(memory, size, &offset);
    pthread_mutex_unlock(&device->lock);
    if (result != ENGINE_OK)
        return result;
    poison(memory->usable + offset, size);
    *out_address = memory->handed_out + offset;
    return ENGINE_OK;
}

static enum engine_result alloc(struct engine_device *device, size_t size, void **out_address)
{
    if (syncedmem_engine_device_lost(device) || syncedmem_engine_loses_device(device))
        return ENGINE_LOST;
    if (syncedmem_engine_failure_due(device, ENGINE_FAIL_ALLOC))
        return ENGINE_DEVICE_MEMORY;
    struct engine_memory *memory = syncedmem_engine_memory_of(device);
    enum engine_result result = alloc_from(memory, size, out_address);
    syncedmem_engine_memory_release(memory);
    if (result == ENGINE_LOST)
        syncedmem_engine_await_loss(device);
    return result;
}

enum engine_result syncedmem_engine_alloc(struct engine_device *device, size_t size,
                                          void **out_address)
{
    int kept = errno;
    *out_address = NULL;
    enum engine_result result = alloc(device, size, out_address);
    errno = kept;
    return result;
}

enum engine_result syncedmem_engine_free(struct engine_device *device, void *address)
{
    int kept = errno;
    pthread_mutex_lock(&device->lock);
    enum engine_result result = remove_block(device->memory, offset_of(device->memory, address));
    pthread_mutex_unlock(&device->lock);
    errno = kept;
    return result;
}

bool syncedmem_engine_locate(struct engine_device *device, const void *address, void **out_start,
                             size_t *out_size)
{
    pthread_mutex_lock(&device->lock);
    const struct engine_memory *memory = device->memory;
    const struct engine_block *block = block_at(memory, offset_of(memory, address));
    *out_start = block != NULL ? memory->handed_out + block->offset : NULL;
    *out_size = block != NULL ? block->size : 0;
    pthread_mutex_unlock(&device->lock);
    return *out_start != NULL;
}

uint64_t syncedmem_engine_block_of(struct engine_memory *memory, const void *address, size_t length)
{
    size_t offset = offset_of(memory, address);
    pthread_mutex_lock(&memory->device->lock);
    const struct engine_block *block = block_at(memory, offset);
    bool held = block != NULL && length <= block->size - (offset - block->offset);
    uint64_t serial = held ? block->serial : 0;
    pthread_mutex_unlock(&memory->device->lock);
    return serial;
}

uint64_t syncedmem_engine_memory_total(const struct engine_device *device)
{
    return device->capacity;
}

uint64_t syncedmem_engine_memory_free(struct engine_device *device)
{
    pthread_mutex_lock(&device->lock);
    uint64_t bytes = device->capacity - device->memory->used;
    pthread_mutex_unlock(&device->lock);
    return bytes;
}

/* ---- Registration of host memory: bookkeeping only ---- */

static bool overlaps(const struct engine_pin *pin, uintptr_t address, size_t size)
{
    return address >= pin->address ? address - pin->address < pin->size
                                   : pin->address - address < size;
}

static enum engine_result add_pin(struct engine_memory *memory, uintptr_t address, size_t size)
{
    for (const struct engine_pin *pin = memory->pins; pin != NULL; pin = pin->next)
        if (overlaps(pin, address, size))
            return ENGINE_REFUSED;
    struct engine_pin *pin = malloc(sizeof *pin);
    if (pin == NULL)
        return ENGINE_HOST_MEMORY;
    *pin = (struct engine_pin){.next = memory->pins, .address = address, .size = size};
    memory->pins = pin;
    memory->pinned += size;
    return ENGINE_OK;
}

static enum engine_result remove_pin(struct engine_memory *memory, uintptr_t address)
{
    struct engine_pin **link = &memory->pins;
    while (*link != NULL && (*link)->address != address)
        link = &(*link)->next;
    struct engine_pin *pin = *link;
    if (pin == NULL)
        return ENGINE_BAD_ADDRESS;
    *link = pin->next;
    memory->pinned -= pin->size;
    free(pin);
    return ENGINE_OK;
}

enum engine_result syncedmem_engine_pin(struct engine_device *device, void *address, size_t size)
{
    if (syncedmem_engine_device_lost(device))
        return ENGINE_LOST;
    if (syncedmem_engine_failure_due(device, ENGINE_FAIL_PIN))
        return ENGINE_REFUSED;
    int kept = errno;
    pthread_mutex_lock(&device->lock);
    struct engine_memory *memory = device->memory;
    bool lost = memory->lost;
    enum engine_result result = lost ? ENGINE_LOST : add_pin(memory, (uintptr_t)address, size);
    pthread_mutex_unlock(&device->lock);
    if (lost)
        syncedmem_engine_await_loss(device);
    errno = kept;
    return result;
}

enum engine_result syncedmem_engine_unpin(struct engine_device *device, void *address)
{
    int kept = errno;
    pthread_mutex_lock(&device->lock);
    enum engine_result result = remove_pin(device->memory, (uintptr_t)address);
    pthread_mutex_unlock(&device->lock);
    errno = kept;
    return result;
}

uint64_t syncedmem_engine_pinned_bytes(struct engine_device *device)
{
    pthread_mutex_lock(&device->lock);
    uint64_t bytes = device->memory->pinned;
    pthread_mutex_unlock(&device->lock);
    return bytes;
}

bool syncedmem_engine_is_pinned(struct engine_device *device, const void *address, size_t length)
{
    uintptr_t start = (uintptr_t)address;
    pthread_mutex_lock(&device->lock);
    const struct engine_pin *pin = device->memory->pins;
    while (pin != NULL &&
           (start - pin->address >= pin->size || length > pin->size - (start - pin->address)))
        pin = pin->next;
    pthread_mutex_unlock(&device->lock);
    return pin != NULL;
}
