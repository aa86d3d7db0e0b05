/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, blocks and registration. */
#include "support.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* Lets the kernel access a byte of this process: as the processor would, without a signal. */
static bool readable(void *address)
{
    char byte;
    struct iovec here = {.iov_base = &byte, .iov_len = 1};
    struct iovec there = {.iov_base = address, .iov_len = 1};
    errno = 0;
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static bool writable(void *address)
{
    char byte = 1;
    struct iovec here = {.iov_base = &byte, .iov_len = 1};
    struct iovec there = {.iov_base = address, .iov_len = 1};
    errno = 0;
    return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == 1;
}

Test(simulator_memory, host_accesses_fault)
{
    struct engine_device *device = device_with(MIB);
    void *address = block_of(device, 100);
    void *usable = syncedmem_engine_translate(device, address);
    cr_assert(readable(usable));
    cr_assert(writable(usable));
    cr_assert(!readable(address));
    cr_assert_eq(errno, EFAULT);
    cr_assert(!writable(address));
    cr_assert_eq(errno, EFAULT);
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, translation_keeps_distances)
{
    struct engine_device *device = device_with(MIB);
    unsigned char *block = block_of(device, 1000);
    unsigned char *other = block_of(device, 1000);
    unsigned char *usable = syncedmem_engine_translate(device, block);
    cr_assert_neq(usable, block);
    cr_assert_eq((unsigned char *)syncedmem_engine_translate(device, block + 999), usable + 999);
    cr_assert_eq((unsigned char *)syncedmem_engine_translate(device, other),
                 usable + (other - block));
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, owns_its_range_and_no_more)
{
    struct engine_device *device = device_with(MIB);
    unsigned char *start = block_of(device, 1);
    int here;
    cr_assert(syncedmem_engine_owns(device, start));
    cr_assert(syncedmem_engine_owns(device, start + MIB - 1));
    cr_assert(!syncedmem_engine_owns(device, start + MIB));
    cr_assert(!syncedmem_engine_owns(device, (void *)((uintptr_t)start - 1)));
    cr_assert(!syncedmem_engine_owns(device, &here));
    cr_assert(!syncedmem_engine_owns(device, NULL));
    syncedmem_engine_device_destroy(device);
}

static bool located_at(struct engine_device *device, void *address, void *start, size_t size)
{
    void *found_start;
    size_t found_size;
    return syncedmem_engine_locate(device, address, &found_start, &found_size) &&
           found_start == start && found_size == size;
}

static bool located(struct engine_device *device, void *address)
{
    void *start;
    size_t size;
    return syncedmem_engine_locate(device, address, &start, &size);
}

Test(simulator_memory, locates_blocks_to_the_byte)
{
    struct engine_device *device = device_with(MIB);
    unsigned char *first = block_of(device, 300);
    unsigned char *second = block_of(device, 10);
    cr_assert(located_at(device, first, first, 300));
    cr_assert(located_at(device, first + 299, first, 300));
    cr_assert(!located(device, first + 300));
    cr_assert(located_at(device, second + 9, second, 10));
    cr_assert(!located(device, second + 10));
    cr_assert(!located(device, (void *)((uintptr_t)first - 1)));
    cr_assert_eq(syncedmem_engine_free(device, first), ENGINE_OK);
    cr_assert(!located(device, first));
    cr_assert(located_at(device, second, second, 10));
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, frees_blocks_once_and_by_their_start)
{
    struct engine_device *device = device_with(MIB);
    unsigned char *block = block_of(device, 1000);
    int here;
    cr_assert_eq(syncedmem_engine_free(device, block + 256), ENGINE_BAD_ADDRESS);
    cr_assert_eq(syncedmem_engine_free(device, &here), ENGINE_BAD_ADDRESS);
    cr_assert_eq(syncedmem_engine_free(device, NULL), ENGINE_BAD_ADDRESS);
    cr_assert_eq(syncedmem_engine_memory_free(device), MIB - 1024);
    cr_assert_eq(syncedmem_engine_free(device, block), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_free(device, block), ENGINE_BAD_ADDRESS);
    cr_assert_eq(syncedmem_engine_memory_free(device), MIB);
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, ends_where_the_capacity_does)
{
    struct engine_device *device = device_with(MIB);
    void *address = device;
    cr_assert_eq(syncedmem_engine_alloc(device, MIB + 1, &address), ENGINE_DEVICE_MEMORY);
    cr_assert_null(address);
    cr_assert_eq(syncedmem_engine_alloc(device, SIZE_MAX, &address), ENGINE_DEVICE_MEMORY);
    void *all = block_of(device, MIB);
    cr_assert_eq(syncedmem_engine_alloc(device, 1, &address), ENGINE_DEVICE_MEMORY);
    cr_assert_eq(syncedmem_engine_free(device, all), ENGINE_OK);
    block_of(device, MIB - 1);
    cr_assert_eq(syncedmem_engine_memory_free(device), 0);
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, neighbours_that_are_freed_make_one_gap)
{
    struct engine_device *device = device_with(3 * 256);
    void *blocks[3] = {block_of(device, 256), block_of(device, 256), block_of(device, 256)};
    void *address;
    syncedmem_engine_free(device, blocks[0]);
    syncedmem_engine_free(device, blocks[2]);
    cr_assert_eq(syncedmem_engine_alloc(device, 512, &address), ENGINE_DEVICE_MEMORY);
    syncedmem_engine_free(device, blocks[1]);
    cr_assert_eq(block_of(device, 3 * 256), blocks[0]);
    syncedmem_engine_device_destroy(device);
}

static bool is_poisoned(struct engine_device *device, void *block, size_t offset, size_t length)
{
    unsigned char *usable = syncedmem_engine_translate(device, block);
    return all_are(usable + offset, length, 0xCD);
}

Test(simulator_memory, fresh_blocks_are_not_zero)
{
    struct engine_device *device = device_with(8 * MIB);
    void *small = block_of(device, 1001);
    void *middle = block_of(device, MIB);
    void *large = block_of(device, 4 * MIB + 1);
    cr_assert(is_poisoned(device, small, 0, 1001));
    cr_assert(is_poisoned(device, middle, 0, MIB));
    cr_assert(is_poisoned(device, large, 0, 64 * KIB));
    cr_assert(is_poisoned(device, large, 4 * MIB + 1 - 64 * KIB, 64 * KIB));
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, poison_stays_within_the_block)
{
    struct engine_device *device = device_with(4 * MIB);
    void *before = block_of(device, 256);
    void *block = block_of(device, 2 * MIB);
    void *after = block_of(device, 256);
    memset(syncedmem_engine_translate(device, before), 1, 256);
    memset(syncedmem_engine_translate(device, after), 1, 256);
    syncedmem_engine_free(device, block);
    cr_assert_eq(block_of(device, 2 * MIB), block);
    cr_assert(all_are(syncedmem_engine_translate(device, before), 256, 1));
    cr_assert(all_are(syncedmem_engine_translate(device, after), 256, 1));
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, registers_a_range_once)
{
    struct engine_device *device = device_with(MIB);
    char range[300];
    cr_assert_eq(syncedmem_engine_pin(device, range + 100, 100), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_pinned_bytes(device), 100);
    cr_assert_eq(syncedmem_engine_pin(device, range + 100, 100), ENGINE_REFUSED);
    cr_assert_eq(syncedmem_engine_pin(device, range + 199, 1), ENGINE_REFUSED);
    cr_assert_eq(syncedmem_engine_pin(device, range, 101), ENGINE_REFUSED);
    cr_assert_eq(syncedmem_engine_pin(device, range, 300), ENGINE_REFUSED);
    cr_assert_eq(syncedmem_engine_pin(device, range, 100), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_pin(device, range + 200, 100), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_pinned_bytes(device), 300);
    syncedmem_engine_device_destroy(device);
}

Test(simulator_memory, takes_registrations_back_by_their_address)
{
    struct engine_device *device = device_with(MIB);
    char range[200];
    syncedmem_engine_pin(device, range, 100);
    syncedmem_engine_pin(device, range + 100, 100);
    cr_assert_eq(syncedmem_engine_unpin(device, range + 1), ENGINE_BAD_ADDRESS);
    cr_assert_eq(syncedmem_engine_unpin(device, range), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_pinned_bytes(device), 100);
    cr_assert_eq(syncedmem_engine_unpin(device, range), ENGINE_BAD_ADDRESS);
    cr_assert_eq(syncedmem_engine_unpin(device, range + 100), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_pinned_bytes(device), 0);
    cr_assert_eq(syncedmem_engine_pin(device, range, 200), ENGINE_OK);
    syncedmem_engine_device_destroy(device);
}
