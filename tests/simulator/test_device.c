/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of a device. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

Test(simulator_device, has_the_memory_that_was_asked_for)
{
    struct engine_device *device = device_with(3 * MIB);
    cr_assert_eq(syncedmem_engine_memory_total(device), 3 * MIB);
    cr_assert_eq(syncedmem_engine_memory_free(device), 3 * MIB);
    syncedmem_engine_device_destroy(device);
}

Test(simulator_device, odd_capacities_are_cut_to_whole_units)
{
    struct engine_device *device = device_with(5 * ENGINE_ALIGNMENT + 100);
    cr_assert_eq(syncedmem_engine_memory_total(device), 5 * ENGINE_ALIGNMENT);
    void *last = NULL;
    for (int i = 0; i < 5; i++)
        last = block_of(device, ENGINE_ALIGNMENT);
    memset(syncedmem_engine_translate(device, last), 1, ENGINE_ALIGNMENT);
    syncedmem_engine_device_destroy(device);
}

Test(simulator_device, without_memory_gives_no_block)
{
    struct engine_device *device = device_with(0);
    void *address;
    cr_assert_eq(syncedmem_engine_alloc(device, 1, &address), ENGINE_DEVICE_MEMORY);
    cr_assert_null(address);
    syncedmem_engine_device_destroy(device);
}

#if SIZE_MAX > UINT32_MAX
Test(simulator_device, of_sixteen_gigabytes_is_usable_at_its_end)
{
    uint64_t memory = (uint64_t)16 << 30;
    struct engine_device *device = device_with(memory);
    unsigned char *address = block_of(device, (size_t)memory);
    unsigned char *last = syncedmem_engine_translate(device, address + memory - 1);
    *last = 7;
    cr_assert_eq(*last, 7);
    syncedmem_engine_device_destroy(device);
}
#endif

Test(simulator_device, larger_than_addresses_is_refused)
{
    struct engine_settings settings = {.memory = ((uint64_t)1 << 63) + MIB};
    struct engine_device *device = (struct engine_device *)&settings;
    cr_assert_eq(syncedmem_engine_device_create(&settings, &device), ENGINE_HOST_MEMORY);
    cr_assert_null(device);
}

static int lowest_free_descriptor(void)
{
    int descriptor = dup(0);
    close(descriptor);
    return descriptor;
}

Test(simulator_device, without_descriptors_is_refused_and_keeps_errno)
{
    struct engine_settings settings = {.memory = MIB};
    struct engine_device *device;
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 77;
    enum engine_result result = syncedmem_engine_device_create(&settings, &device);
    int error = errno;
    setrlimit(RLIMIT_NOFILE, &before);
    cr_assert_eq(result, ENGINE_HOST_MEMORY);
    cr_assert_eq(error, 77);
}

Test(simulator_device, gives_its_descriptor_back)
{
    int before = lowest_free_descriptor();
    struct engine_device *device = device_with(MIB);
    cr_assert_neq(lowest_free_descriptor(), before);
    syncedmem_engine_device_destroy(device);
    cr_assert_eq(lowest_free_descriptor(), before);
}

static void kernel_count(void *arguments, void *const *addresses, size_t count)
{
    (void)addresses;
    (void)count;
    usleep(1000);
    atomic_fetch_add((atomic_int *)arguments, 1);
}

/* Streams that were released, that were not, and the default one. */
Test(simulator_device, destruction_waits_for_all_work)
{
    struct engine_device *device = device_with(MIB);
    struct engine_stream *streams[3] = {stream_of(device), stream_of(device), NULL};
    syncedmem_engine_stream_default(device, &streams[2]);
    atomic_int runs = 0;
    for (int i = 0; i < 30; i++)
        syncedmem_engine_launch(streams[i % 3], kernel_count, &runs, 0, NULL, 0, NULL);
    syncedmem_engine_stream_release(streams[0]);
    syncedmem_engine_device_destroy(device);
    cr_assert_eq(atomic_load(&runs), 30);
}

Test(simulator_device, devices_do_not_share_memory)
{
    struct engine_device *left = device_with(MIB);
    struct engine_device *right = device_with(MIB);
    void *block = block_of(left, 100);
    cr_assert(syncedmem_engine_owns(left, block));
    cr_assert(!syncedmem_engine_owns(right, block));
    cr_assert_eq(syncedmem_engine_free(right, block), ENGINE_BAD_ADDRESS);
    cr_assert_eq(syncedmem_engine_memory_free(right), MIB);
    syncedmem_engine_device_destroy(left);
    syncedmem_engine_device_destroy(right);
}
