/* SPDX-License-Identifier: BSD-2-Clause */
/* Large copies and fills: holes stay holes, and every byte is right all the same. */
#include "support.h"

#include <stdio.h>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#endif

#if defined(THREAD_SANITIZER)
/* Its own memory grows with each byte that is looked at, so that the process's says nothing. */
enum { LARGE_IN_MIB = 96, MEMORY_TELLS = 0 };
#elif SIZE_MAX <= UINT32_MAX
enum { LARGE_IN_MIB = 96, MEMORY_TELLS = 1 };
#else
enum { LARGE_IN_MIB = 5 * 1024, MEMORY_TELLS = 1 };
#endif

/* Not a multiple of anything, so that neighbouring blocks share pages. */
static size_t large_size(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    bool valgrind = preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
    return (valgrind ? 96 : LARGE_IN_MIB) * MIB + 12345;
}

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Rss: %ld", &kib) == 1)
            break;
    fclose(file);
    return kib;
}

static long grown_by(long before)
{
    return resident_kib() - before;
}

static unsigned char *fresh_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    return pages;
}

Test(simulator_sparse, a_large_copy_of_nothing_takes_little_memory, .timeout = 240)
{
    size_t size = large_size();
    struct engine_device *device = device_with(2 * (uint64_t)size + MIB);
    struct engine_stream *stream = stream_of(device);
    unsigned char *sent = fresh_pages(size);
    unsigned char *came = fresh_pages(size);
    struct side first = {device, block_of(device, size)};
    struct side second = {device, block_of(device, size)};
    sent[0] = 1;
    sent[size - 1] = 2;
    long before = resident_kib();
    cr_assert_eq(copy_bytes(stream, first, (struct side){NULL, sent}, size), ENGINE_OK);
    cr_assert_eq(copy_bytes(stream, second, first, size), ENGINE_OK);
    cr_assert_eq(copy_bytes(stream, (struct side){NULL, came}, second, size), ENGINE_OK);
    cr_assert(grown_by(before) < 48 * 1024 || !MEMORY_TELLS);
    cr_assert_eq(came[0], 1);
    cr_assert_eq(came[1], 0);
    cr_assert_eq(came[size / 2], 0);
    cr_assert_eq(came[size - 2], 0);
    cr_assert_eq(came[size - 1], 2);
    syncedmem_engine_device_destroy(device);
    munmap(sent, size);
    munmap(came, size);
}

/* ---- Every byte, with islands of data at odd places ---- */

enum { ISLANDS = 12 };

static const size_t patterned = 70 * 1024 * 1024 + 777;

static void draw_islands(unsigned char *bytes, size_t size, uint32_t seed)
{
    for (int i = 0; i < ISLANDS; i++) {
        size_t length = 1 + next_random(&seed) % (i % 3 == 0 ? 3 * MIB : 5000);
        size_t offset = next_random(&seed) % (size - length);
        memset(bytes + offset, 1 + i, length);
    }
}

struct sparse_case {
    size_t to_shift; /* so that sides are aligned differently */
    size_t from_shift;
};

/* Old bytes everywhere beforehand, so that a zero that is not written shows. */
static void check_route(struct engine_stream *stream, struct engine_device *device,
                        const struct sparse_case *shifts, const unsigned char *sent)
{
    unsigned char *first = block_of(device, patterned + 5000);
    unsigned char *second = block_of(device, patterned + 5000);
    unsigned char *came = malloc(patterned + 2);
    struct side from = {NULL, (void *)(uintptr_t)sent};
    struct side stop = {device, first + shifts->to_shift};
    struct side next = {device, second + shifts->from_shift};
    unsigned char *usable = syncedmem_engine_translate(device, second);
    memset(syncedmem_engine_translate(device, first), 0x55, patterned + 5000);
    memset(usable, 0x66, patterned + 5000);
    memset(came, 0x77, patterned + 2);
    cr_assert_eq(copy_bytes(stream, stop, from, patterned), ENGINE_OK);
    cr_assert_eq(copy_bytes(stream, next, stop, patterned), ENGINE_OK);
    cr_assert_eq(copy_bytes(stream, (struct side){NULL, came + 1}, next, patterned), ENGINE_OK);
    cr_assert_eq(memcmp(came + 1, sent, patterned), 0);
    cr_assert_eq(came[0], 0x77);
    cr_assert_eq(came[patterned + 1], 0x77);
    cr_assert(all_are(usable, shifts->from_shift, 0x66));
    cr_assert(all_are(usable + shifts->from_shift + patterned, 5000 - shifts->from_shift, 0x66));
    cr_assert_eq(syncedmem_engine_free(device, first), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_free(device, second), ENGINE_OK);
    free(came);
}

Test(simulator_sparse, every_byte_is_right, .timeout = 240)
{
    static const struct sparse_case cases[] = {{0, 0}, {1, 4097}, {4095, 256}};
    struct engine_device *device = device_with(200 * MIB);
    struct engine_stream *stream = stream_of(device);
    unsigned char *sent = fresh_pages(patterned);
    draw_islands(sent, patterned, 99);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_route(stream, device, &cases[i], sent);
    syncedmem_engine_device_destroy(device);
    munmap(sent, patterned);
}

/* Data and holes in turn: chunks taken front to back would read what was just written. */
Test(simulator_sparse, overlapping_ranges_are_right, .timeout = 240)
{
    size_t size = 72 * MIB;
    size_t moved = 68 * MIB;
    struct engine_device *device = device_with(80 * MIB);
    struct engine_stream *stream = stream_of(device);
    unsigned char *block = block_of(device, size);
    unsigned char *usable = syncedmem_engine_translate(device, block);
    unsigned char *expected = malloc(moved);
    cr_assert_eq(fill_bytes(stream, block, size, 0), ENGINE_OK);
    for (size_t i = 0; i < 14; i++)
        memset(usable + 5 * i * MIB, (int)i + 1, 2 * MIB);
    memset(expected, 0, moved);
    for (size_t i = 0; i < 14; i++)
        memset(expected + 5 * i * MIB, (int)i + 1, 2 * MIB);
    cr_assert_eq(copy_bytes(stream, (struct side){device, block + 3 * MIB},
                            (struct side){device, block}, moved),
                 ENGINE_OK);
    cr_assert_eq(memcmp(usable + 3 * MIB, expected, moved), 0);
    syncedmem_engine_device_destroy(device);
    free(expected);
}

/* No data comes after: the other way in which the file says that there is a hole. */
Test(simulator_sparse, memory_that_is_one_hole_stays_one, .timeout = 240)
{
    size_t size = 66 * MIB;
    struct engine_device *device = device_with(size);
    struct engine_stream *stream = stream_of(device);
    unsigned char *block = block_of(device, size);
    unsigned char *came = fresh_pages(size);
    cr_assert_eq(fill_bytes(stream, block, size, 0), ENGINE_OK);
    long before = resident_kib();
    cr_assert_eq(copy_bytes(stream, (struct side){NULL, came}, (struct side){device, block}, size),
                 ENGINE_OK);
    cr_assert(grown_by(before) < 16 * 1024 || !MEMORY_TELLS);
    cr_assert(all_are(came, size, 0));
    syncedmem_engine_device_destroy(device);
    munmap(came, size);
}

Test(simulator_sparse, a_large_zero_fill_gives_memory_back, .timeout = 240)
{
    size_t size = 66 * MIB;
    struct engine_device *device = device_with(80 * MIB);
    struct engine_stream *stream = stream_of(device);
    unsigned char *block = block_of(device, size);
    unsigned char *usable = syncedmem_engine_translate(device, block);
    memset(usable, 9, size);
    long before = resident_kib();
    cr_assert_eq(fill_bytes(stream, block + 3, size - 8, 0), ENGINE_OK);
    cr_assert(grown_by(before) < -60 * 1024 || !MEMORY_TELLS);
    cr_assert(all_are(usable, 3, 9));
    cr_assert(all_are(usable + 3, size - 8, 0));
    cr_assert(all_are(usable + size - 5, 5, 9));
    cr_assert_eq(fill_bytes(stream, block, size, 4), ENGINE_OK);
    cr_assert(all_are(usable, size, 4));
    syncedmem_engine_device_destroy(device);
}

Test(simulator_sparse, freed_blocks_give_memory_back, .timeout = 240)
{
    size_t size = 32 * MIB;
    struct engine_device *device = device_with(40 * MIB);
    unsigned char *guard = block_of(device, 256);
    unsigned char *block = block_of(device, size);
    memset(syncedmem_engine_translate(device, block), 9, size);
    long before = resident_kib();
    cr_assert_eq(syncedmem_engine_free(device, block), ENGINE_OK);
    cr_assert(grown_by(before) < -30 * 1024 || !MEMORY_TELLS);
    cr_assert(all_are(syncedmem_engine_translate(device, guard), 256, 0xCD));
    syncedmem_engine_device_destroy(device);
}
