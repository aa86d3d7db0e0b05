/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes: nothing, odd, too much. Alignment, and the zero bytes of a fresh buffer. */
#include <stdlib.h>

#include "support.h"
#include "table.h"

TestSuite(sizes, .init = sim_setup, .timeout = 120);

/* ---- Size 0 ---- */

static void check_empty_pointers(syncedmem_buffer *buffer)
{
    const void *reading;
    void *writing;
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert_not_null(reading);
    cr_assert_eq((uintptr_t)reading % 64, 0);
    assert_ok(syncedmem_mutable_cpu_data(buffer, &writing));
    cr_assert_eq(writing, reading);
    reading = buffer;
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    cr_assert_null(reading);
    writing = buffer;
    assert_ok(syncedmem_mutable_gpu_data(buffer, &writing));
    cr_assert_null(writing);
}

Test(sizes, nothing_at_every_call)
{
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    void *pointer;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_create(0, &buffer));
    cr_assert_eq(syncedmem_size(buffer), 0);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_UNINITIALIZED);
    check_empty_pointers(buffer);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_GPU);
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    assert_ok(syncedmem_async_gpu_push(buffer, stream));
    assert_ok(syncedmem_wait(buffer));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_SYNCED);
    assert_ok(syncedmem_set_cpu_data(buffer, NULL, 0));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_set_gpu_data(buffer, NULL, 0));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_GPU);
    check_empty_pointers(buffer);
    assert_ok(syncedmem_set_cpu_data(buffer, NULL, 100));
    assert_ok(syncedmem_set_cpu_data(buffer, &buffer, sizeof buffer));
    check_empty_pointers(buffer);
    for (syncedmem_key_t key = 1; key < STATS; key++) {
        if (key != SYNCEDMEM_STAT_WAITS && key > SYNCEDMEM_STAT_TRANSFERS_TO_HOST) {
            cr_assert_eq(stat_of(buffer, key), 0, "%s", syncedmem_stat_name(key));
        }
    }
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}

Test(sizes, nothing_with_policies_and_homes)
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(0, &buffer));
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    assert_ok(syncedmem_set_home(buffer, sim(1)));
    check_empty_pointers(buffer);
    cr_assert(home_is_fixed_at(buffer, 1));
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_PIN_FALLBACKS), 0);
    syncedmem_release(buffer);
}

/* ---- Alignment ---- */

static void check_alignment(size_t size, uint64_t device_alignment)
{
    syncedmem_buffer *buffer;
    const void *host, *device;
    assert_ok(syncedmem_create(size, &buffer));
    assert_ok(syncedmem_cpu_data(buffer, &host));
    assert_ok(syncedmem_gpu_data(buffer, &device));
    cr_assert_not_null(host);
    cr_assert_eq((uintptr_t)host % 64, 0, "host, size %zu", size);
    cr_assert_eq((uintptr_t)device % device_alignment, 0, "device, size %zu", size);
    cr_assert(pattern_is(host, size, 0));
    syncedmem_release(buffer);
}

Test(sizes, alignment)
{
    uint64_t alignment = 0, host_alignment = 0;
    assert_ok(syncedmem_device_number(sim(0), SYNCEDMEM_PLACE_ALIGNMENT, &alignment));
    assert_ok(
        syncedmem_device_number(syncedmem_host(), SYNCEDMEM_PLACE_ALIGNMENT, &host_alignment));
    cr_assert_geq(alignment, 1);
    cr_assert_geq(host_alignment, 1);
    cr_assert_eq(host_alignment % 64, 0);
    for (size_t size = 0; size <= 300; size++) {
        check_alignment(size, alignment);
    }
    for (size_t size = 1024; size <= (size_t)1 << 24; size *= 4) {
        check_alignment(size - 1, alignment);
        check_alignment(size, alignment);
        check_alignment(size + 1, alignment);
    }
}

/* ---- Odd sizes, there and back ---- */

Test(sizes, odd_sizes_there_and_back)
{
    static const size_t some_sizes[] = {1, 2, 3, 7, 10, 63, 65, 255, 257, 1021, 4095, 65537};
    for (size_t i = 0; i < sizeof some_sizes / sizeof some_sizes[0]; i++) {
        struct subject subject;
        subject_make(&subject, some_sizes[i], SYNCEDMEM_UNINITIALIZED, false);
        for (unsigned seed = 1; seed < 4; seed++) {
            subject_host_write(&subject, seed);
            cr_assert(subject_bytes_right(&subject), "size %zu", some_sizes[i]);
            subject_device_write(&subject, seed + 10);
            cr_assert(subject_bytes_right(&subject), "size %zu", some_sizes[i]);
        }
        subject_end(&subject);
    }
}

/* ---- Zero fill ---- */

static void make_dirty(size_t size)
{
    struct subject subject;
    subject_make(&subject, size, SYNCEDMEM_UNINITIALIZED, false);
    subject_host_write(&subject, 11);
    subject_device_write(&subject, 12);
    cr_assert(subject_bytes_right(&subject));
    subject_end(&subject);
}

/* A fresh buffer asked at one place first, then at the other. */
static void check_zero(size_t size, bool device_first)
{
    struct subject subject = {.size = size};
    const void *pointer;
    assert_ok(syncedmem_create(size, &subject.buffer));
    if (!device_first) {
        assert_ok(syncedmem_cpu_data(subject.buffer, &pointer));
        cr_assert(pattern_is(pointer, size, 0), "host, size %zu", size);
    }
    cr_assert(subject_bytes_right(&subject), "size %zu", size);
    syncedmem_release(subject.buffer);
}

Test(sizes, fresh_buffers_are_zero)
{
    static const size_t some_sizes[] = {1, 10, 64, 100, 1000, 4096, 5000, 65536, 300000, 3000000};
    for (size_t i = 0; i < sizeof some_sizes / sizeof some_sizes[0]; i++) {
        for (int round = 0; round < 4; round++) {
            make_dirty(some_sizes[i]);
            check_zero(some_sizes[i], round % 2 == 0);
        }
    }
}

/* Many at once, so that recycled blocks of other sizes are met too. */
Test(sizes, recycled_memory_is_zero)
{
    enum { MANY = 60 };
    syncedmem_buffer *buffers[MANY];
    for (unsigned round = 0; round < 4; round++) {
        for (size_t i = 0; i < MANY; i++) {
            void *pointer;
            const size_t size = 1 + (i * 37 + round * 1009) % 9000;
            assert_ok(syncedmem_create(size, &buffers[i]));
            assert_ok(syncedmem_mutable_gpu_data(buffers[i], &pointer));
            cr_assert(device_pattern_is(0, pointer, size, 0), "device, size %zu", size);
            device_pattern_write(0, pointer, size, 13);
            assert_ok(syncedmem_mutable_cpu_data(buffers[i], &pointer));
            cr_assert(pattern_is(pointer, size, 13), "host, size %zu", size);
        }
        for (size_t i = 0; i < MANY; i++) {
            syncedmem_release(buffers[(i * 7) % MANY]);
        }
    }
}

Test(sizes, many_random_sizes_stay_bounded)
{
    const uint64_t free_before = device_memory_free(0);
    const uint64_t host = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    unsigned random = 1;
    for (int i = 0; i < 10000; i++) {
        syncedmem_buffer *buffer;
        const void *pointer;
        random = random * 1103515245u + 12345u;
        assert_ok(syncedmem_create((random >> 8) % 60000, &buffer));
        assert_ok(i % 2 == 0 ? syncedmem_gpu_data(buffer, &pointer)
                             : syncedmem_cpu_data(buffer, &pointer));
        syncedmem_release(buffer);
    }
    cr_assert_eq(device_memory_free(0), free_before);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host);
}

/* ---- Too much ---- */

Test(sizes, above_ptrdiff_max_is_out_of_range)
{
    static const size_t too_large[] = {SIZE_MAX,
                                       SIZE_MAX - 1,
                                       SIZE_MAX - 63,
                                       SIZE_MAX - 4095,
                                       (size_t)PTRDIFF_MAX + 1,
                                       (size_t)PTRDIFF_MAX + 64};
    for (size_t i = 0; i < sizeof too_large / sizeof too_large[0]; i++) {
        syncedmem_buffer *buffer = (syncedmem_buffer *)(uintptr_t)16;
        assert_status(syncedmem_create(too_large[i], &buffer), SYNCEDMEM_OUT_OF_RANGE);
        cr_assert_null(buffer);
        cr_assert(is_one_line(syncedmem_last_error()));
    }
}

/* No machine of 64 bits has this: creating works, touching is a status, twice. */
static void check_beyond_memory(size_t size)
{
    struct subject subject = {.size = size};
    assert_ok(syncedmem_create(size, &subject.buffer));
    cr_assert_eq(syncedmem_size(subject.buffer), size);
    for (int i = 0; i < 2; i++) {
        for (int call = CPU_DATA; call <= MUTABLE_GPU_DATA; call++) {
            const syncedmem_status_t wanted =
                call < GPU_DATA ? SYNCEDMEM_OUT_OF_HOST_MEMORY : SYNCEDMEM_OUT_OF_DEVICE_MEMORY;
            const syncedmem_status_t status = subject_call(&subject, (enum call)call);
            cr_assert_eq(status, wanted, "%s: %s", call_name[call], syncedmem_status_name(status));
            cr_assert_null(subject.pointer);
            cr_assert_eq(syncedmem_head(subject.buffer), SYNCEDMEM_UNINITIALIZED);
        }
    }
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_HOST_BYTES), 0);
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    assert_status(syncedmem_set_cpu_data(subject.buffer, &subject, size - 1),
                  SYNCEDMEM_OUT_OF_RANGE);
    syncedmem_release(subject.buffer);
}

/* Larger than the device, and perhaps too large for the host. */
static void check_beyond_device(size_t size)
{
    syncedmem_buffer *buffer;
    void *pointer;
    assert_ok(syncedmem_create(size, &buffer));
    assert_status(syncedmem_mutable_gpu_data(buffer, &pointer), SYNCEDMEM_OUT_OF_DEVICE_MEMORY);
    const syncedmem_status_t status = syncedmem_mutable_cpu_data(buffer, &pointer);
    if (status == SYNCEDMEM_OK) {
        char *bytes = pointer;
        cr_assert(bytes[0] == 0 && bytes[size / 2] == 0 && bytes[size - 1] == 0);
        bytes[0] = 1;
        bytes[size - 1] = 2;
        assert_status(syncedmem_mutable_gpu_data(buffer, &pointer), SYNCEDMEM_OUT_OF_DEVICE_MEMORY);
        cr_assert_null(pointer);
        cr_assert(bytes[0] == 1 && bytes[size - 1] == 2);
        cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
    } else {
        cr_assert_eq(status, SYNCEDMEM_OUT_OF_HOST_MEMORY);
    }
    syncedmem_release(buffer);
}

Test(sizes, beyond_memory)
{
    static const size_t large[] = {PTRDIFF_MAX, PTRDIFF_MAX - 1, PTRDIFF_MAX - 63,
                                   PTRDIFF_MAX - 4096, PTRDIFF_MAX - 65536};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        if (sizeof(void *) > 4) {
            check_beyond_memory(large[i]);
        } else {
            check_beyond_device(large[i]);
        }
    }
}

Test(sizes, near_two_and_four_gibibytes)
{
    static const uint64_t large[] = {0x7FFFFFFF, 0x80000000,  0x80000001,
                                     0xFFFFFFFF, 0x100000000, 0x100000001};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        if (large[i] <= PTRDIFF_MAX) {
            check_beyond_device((size_t)large[i]);
        }
    }
}

Test(sizes, a_full_device_recovers)
{
    struct subject first, second;
    const size_t most = (size_t)48 << 20;
    const void *pointer;
    first.size = second.size = most;
    first.seed = second.seed = 0;
    assert_ok(syncedmem_create(most, &first.buffer));
    assert_ok(syncedmem_create(most, &second.buffer));
    assert_ok(syncedmem_gpu_data(first.buffer, &pointer));
    assert_status(syncedmem_gpu_data(second.buffer, &pointer), SYNCEDMEM_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(syncedmem_head(second.buffer), SYNCEDMEM_UNINITIALIZED);
    syncedmem_release(first.buffer);
    assert_ok(syncedmem_gpu_data(second.buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, most, 0));
    syncedmem_release(second.buffer);
}
