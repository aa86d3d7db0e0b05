/* SPDX-License-Identifier: BSD-2-Clause */
/* set_cpu_data and set_gpu_data: the caller's memory, and who frees what. */
#include <limits.h>
#include <stdlib.h>

#include "support.h"
#include "table.h"

TestSuite(adoption, .init = sim_setup, .timeout = 120);

enum { SIZE = 70000 };

/* ---- What is allowed ---- */

static void check_adopt_at(size_t size, size_t offset, size_t longer)
{
    unsigned char *host = malloc(size + offset + longer);
    void *device;
    const void *pointer;
    struct subject subject = {.size = size, .seed = 6};
    cr_assert_not_null(host);
    assert_ok(syncedmem_sim_alloc(sim(0), size + offset + longer, &device));
    pattern_write(host + offset, size, 6);
    device_pattern_write(0, (char *)device + offset, size, 7);
    assert_ok(syncedmem_create(size, &subject.buffer));
    assert_ok(syncedmem_set_cpu_data(subject.buffer, host + offset, size + longer));
    assert_ok(syncedmem_cpu_data(subject.buffer, &pointer));
    cr_assert_eq(pointer, host + offset);
    cr_assert(subject_bytes_right(&subject), "host %zu at %zu", size, offset);
    assert_ok(syncedmem_set_gpu_data(subject.buffer, (char *)device + offset, size + longer));
    assert_ok(syncedmem_gpu_data(subject.buffer, &pointer));
    cr_assert_eq(pointer, (char *)device + offset);
    subject.seed = 7;
    cr_assert(subject_bytes_right(&subject), "device %zu at %zu", size, offset);
    syncedmem_release(subject.buffer);
    assert_ok(syncedmem_sim_free(sim(0), device));
    free(host);
}

Test(adoption, longer_blocks_and_odd_addresses)
{
    static const size_t some_sizes[] = {1, 10, 63, 4097};
    for (size_t i = 0; i < sizeof some_sizes / sizeof some_sizes[0]; i++) {
        for (size_t offset = 0; offset < 8; offset++) {
            check_adopt_at(some_sizes[i], offset, 0);
            check_adopt_at(some_sizes[i], offset, 333);
        }
    }
}

/* Bytes of the caller's around the adopted part are not touched. */
Test(adoption, bytes_around_stay)
{
    unsigned char block[300];
    syncedmem_buffer *buffer;
    void *pointer;
    memset(block, 0xA5, sizeof block);
    assert_ok(syncedmem_create(101, &buffer));
    assert_ok(syncedmem_set_cpu_data(buffer, block + 99, sizeof block - 99));
    assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
    device_pattern_write(0, pointer, 101, 1);
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(block + 99, 101, 1));
    syncedmem_release(buffer);
    for (size_t i = 0; i < sizeof block; i++) {
        cr_assert(block[i] == 0xA5 || (i >= 99 && i < 200), "byte %zu", i);
    }
}

Test(adoption, the_callers_blocks_are_never_freed)
{
    const uint64_t free_before = device_memory_free(0);
    const uint64_t bytes_before = stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES);
    struct subject subject;
    subject_make(&subject, SIZE, SYNCEDMEM_UNINITIALIZED, false);
    assert_ok(subject_call(&subject, SET_CPU_DATA));
    assert_ok(subject_call(&subject, SET_GPU_DATA));
    subject_device_write(&subject, 4);
    cr_assert(subject_bytes_right(&subject));
    subject_host_write(&subject, 5);
    cr_assert(subject_bytes_right(&subject));
    syncedmem_release(subject.buffer);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES), bytes_before);
    /* Both hold what was written, and can be written. */
    cr_assert(pattern_is(subject.host_block, SIZE, 5));
    cr_assert(device_pattern_is(0, subject.device_block, SIZE, 5));
    pattern_write(subject.host_block, SIZE, 9);
    device_pattern_write(0, subject.device_block, SIZE, 9);
    free(subject.host_block);
    assert_ok(syncedmem_sim_free(sim(0), subject.device_block));
    cr_assert_eq(device_memory_free(0), free_before);
}

Test(adoption, owned_memory_is_freed)
{
    const uint64_t host = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    const uint64_t device = stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES);
    struct subject subject;
    subject_make(&subject, SIZE, SYNCEDMEM_SYNCED, true);
    const uint64_t free_before = device_memory_free(0);
    cr_assert_geq(stat_of(subject.buffer, SYNCEDMEM_STAT_HOST_BYTES), SIZE);
    cr_assert_geq(stat_of(subject.buffer, SYNCEDMEM_STAT_DEVICE_BYTES), SIZE);
    assert_ok(subject_call(&subject, SET_CPU_DATA));
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_HOST_BYTES), 0);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host);
    cr_assert_neq(stat_of(subject.buffer, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    assert_ok(subject_call(&subject, SET_GPU_DATA));
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES), device);
    cr_assert_geq(device_memory_free(0), free_before + SIZE);
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}

/* ---- Again and again ---- */

/* How many pages more are no growth. Sanitizers and valgrind keep what was freed for a while. */
static long pages_allowed(void)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return LONG_MAX;
#else
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL ? 10000 : 256;
#endif
}

static long resident_pages(void)
{
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%ld %ld", &total, &resident), 2);
    fclose(file);
    return resident;
}

static void adopt_and_replace(int times, void *const host[2], void *const device[2])
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(64, &buffer));
    for (int i = 0; i < times; i++) {
        assert_ok(syncedmem_set_cpu_data(buffer, host[i & 1], 64));
        assert_ok(syncedmem_set_gpu_data(buffer, device[i & 1], 64));
    }
    syncedmem_release(buffer);
}

Test(adoption, replacing_100000_times_keeps_memory_flat)
{
    static char blocks[2][64];
    void *const host[2] = {blocks[0], blocks[1]};
    void *device[2];
    assert_ok(syncedmem_sim_alloc(sim(0), 64, &device[0]));
    assert_ok(syncedmem_sim_alloc(sim(0), 64, &device[1]));
    adopt_and_replace(1000, host, device);
    const uint64_t free_before = device_memory_free(0);
    const long before = resident_pages();
    adopt_and_replace(100000, host, device);
    const long after = resident_pages();
    cr_assert_leq(after - before, pages_allowed(), "%ld pages more", after - before);
    cr_assert_eq(device_memory_free(0), free_before);
    assert_ok(syncedmem_sim_free(sim(0), device[0]));
    assert_ok(syncedmem_sim_free(sim(0), device[1]));
}

/* With memory of the library's own between, which has to be freed each time. */
Test(adoption, replacing_own_memory_keeps_memory_flat)
{
    static char block[20000];
    const uint64_t host = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    const uint64_t free_before = device_memory_free(0);
    long before = 0;
    for (int i = 0; i < 4000; i++) {
        syncedmem_buffer *buffer;
        const void *pointer;
        if (i == 1000) {
            before = resident_pages();
        }
        assert_ok(syncedmem_create(sizeof block, &buffer));
        assert_ok(syncedmem_cpu_data(buffer, &pointer));
        assert_ok(syncedmem_gpu_data(buffer, &pointer));
        assert_ok(syncedmem_set_cpu_data(buffer, block, sizeof block));
        syncedmem_release(buffer);
    }
    cr_assert_leq(resident_pages() - before, pages_allowed());
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host);
    cr_assert_eq(device_memory_free(0), free_before);
}

/* ---- One block, several buffers ---- */

Test(adoption, the_same_block_in_two_buffers)
{
    struct subject one, two;
    subject_make(&one, 500, SYNCEDMEM_UNINITIALIZED, false);
    subject_make(&two, 500, SYNCEDMEM_SYNCED, false);
    assert_ok(syncedmem_set_cpu_data(one.buffer, one.host_block, 500));
    assert_ok(syncedmem_set_cpu_data(two.buffer, one.host_block, 500));
    one.seed = two.seed = 2;
    cr_assert(subject_bytes_right(&one) && subject_bytes_right(&two));
    /* Not coherent: the other buffer's device copy is what it was. */
    subject_host_write(&one, 8);
    const void *pointer;
    assert_ok(syncedmem_gpu_data(two.buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, 500, 2));
    syncedmem_release(one.buffer);
    cr_assert(pattern_is(one.host_block, 500, 8));
    free(one.host_block);
    assert_ok(syncedmem_sim_free(sim(0), one.device_block));
    subject_end(&two);
}

/* Memory that the library allocated, but for another buffer, is the caller's affair. */
Test(adoption, memory_of_another_buffer)
{
    struct subject giver, taker;
    void *host, *device;
    subject_make(&giver, 900, SYNCEDMEM_SYNCED, false);
    subject_make(&taker, 900, SYNCEDMEM_UNINITIALIZED, false);
    assert_ok(syncedmem_mutable_cpu_data(giver.buffer, &host));
    assert_ok(syncedmem_set_cpu_data(taker.buffer, host, 900));
    taker.seed = 1;
    cr_assert(subject_bytes_right(&taker));
    assert_ok(syncedmem_mutable_gpu_data(giver.buffer, &device));
    device_pattern_write(0, device, 900, 7);
    assert_ok(syncedmem_set_gpu_data(taker.buffer, device, 900));
    cr_assert(device_pattern_is(0, device, 900, 7));
    syncedmem_release(taker.buffer);
    giver.seed = 7;
    cr_assert(subject_bytes_right(&giver));
    taker.buffer = NULL;
    subject_end(&taker);
    subject_end(&giver);
}

/* The caller's block that is adopted now is not the library's own: again, and a part of it. */
Test(adoption, the_adopted_block_again)
{
    struct subject subject;
    unsigned char block[128];
    subject_make(&subject, 64, SYNCEDMEM_SYNCED, false);
    pattern_write(block, 64, 3);
    assert_ok(syncedmem_set_cpu_data(subject.buffer, block, sizeof block));
    subject.seed = 3;
    cr_assert(subject_bytes_right(&subject));
    pattern_write(block, 64, 4);
    assert_ok(syncedmem_set_cpu_data(subject.buffer, block, 64));
    subject.seed = 4;
    cr_assert(subject_bytes_right(&subject));
    pattern_write(block + 1, 64, 5);
    assert_ok(syncedmem_set_cpu_data(subject.buffer, block + 1, 64));
    subject.seed = 5;
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}
