/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer of 5 GiB, sparse at both places, where pointers have 64 bits. Not under
 * ThreadSanitizer, which would take minutes for so many bytes.
 */
#include "support.h"

#if UINTPTR_MAX > UINT32_MAX && !defined __SANITIZE_THREAD__

static const size_t five_gib = (size_t)5 << 30;

struct ends {
    size_t size;
    int seen[3];
};

/* Reads the first, the middle and the last byte, and adds 10 to each. */
static void kernel_ends(void *arguments, void *const *addresses, size_t count)
{
    struct ends *ends = arguments;
    unsigned char *bytes = addresses[0];
    const size_t offsets[] = {0, ends->size / 2 + 1, ends->size - 1};
    (void)count;
    for (int i = 0; i < 3; i++) {
        ends->seen[i] = bytes[offsets[i]];
        bytes[offsets[i]] = (unsigned char)(bytes[offsets[i]] + 10);
    }
}

static void work_on_ends(syncedmem_place *place, void *address, struct ends *ends)
{
    const void *const addresses[] = {address};
    syncedmem_stream *stream;
    CHILD_OK(syncedmem_stream_default(place, &stream));
    CHILD_OK(syncedmem_sim_launch(stream, kernel_ends, ends, 0, addresses, 1));
    CHILD_OK(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
}

CHILD_TEST(large, five_gibibytes)
{
    struct ends ends = {.size = five_gib};
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    void *pointer;
    CHILD_OK(syncedmem_sim_configure("memory=8g"));
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_OK(syncedmem_device_set_current(place));
    CHILD_OK(syncedmem_create(five_gib, &buffer));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
    unsigned char *bytes = pointer;
    CHILD_CHECK(bytes[0] == 0 && bytes[five_gib / 2 + 1] == 0 && bytes[five_gib - 1] == 0);
    bytes[0] = 1;
    bytes[five_gib / 2 + 1] = 2;
    bytes[five_gib - 1] = 3;
    CHILD_OK(syncedmem_mutable_gpu_data(buffer, &pointer));
    CHILD_CHECK(stat_of(buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE) == five_gib);
    work_on_ends(place, pointer, &ends);
    CHILD_CHECK(ends.seen[0] == 1 && ends.seen[1] == 2 && ends.seen[2] == 3);
    const void *reading;
    CHILD_OK(syncedmem_cpu_data(buffer, &reading));
    CHILD_CHECK(reading == bytes);
    CHILD_CHECK(bytes[0] == 11 && bytes[five_gib / 2 + 1] == 12 && bytes[five_gib - 1] == 13);
    CHILD_CHECK(bytes[1] == 0 && bytes[five_gib - 2] == 0);
    CHILD_CHECK(stat_of(buffer, SYNCEDMEM_STAT_BYTES_TO_HOST) == five_gib);
    syncedmem_release(buffer);
}

/* Zero at the device first: the fill of so many bytes is right at the ends too. */
CHILD_TEST(large, zero_at_the_device_first)
{
    struct ends ends = {.size = five_gib};
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    void *pointer;
    CHILD_OK(syncedmem_sim_configure("memory=8g"));
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_OK(syncedmem_device_set_current(place));
    CHILD_OK(syncedmem_create(five_gib, &buffer));
    CHILD_OK(syncedmem_mutable_gpu_data(buffer, &pointer));
    work_on_ends(place, pointer, &ends);
    CHILD_CHECK(ends.seen[0] == 0 && ends.seen[1] == 0 && ends.seen[2] == 0);
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
    const unsigned char *bytes = pointer;
    CHILD_CHECK(bytes[0] == 10 && bytes[five_gib / 2 + 1] == 10 && bytes[five_gib - 1] == 10);
    CHILD_CHECK(bytes[1] == 0 && bytes[five_gib - 2] == 0);
    syncedmem_release(buffer);
}

#else

Test(large, nothing_here)
{
    cr_assert(true);
}

#endif
