/* SPDX-License-Identifier: BSD-2-Clause */
/* Adopted memory: what may not be written is not, and what a stream still writes is waited for. */
#include <stdlib.h>
#include <sys/mman.h>

#include "support.h"
#include "table.h"

TestSuite(adopt_memory, .init = sim_setup, .timeout = 120);

enum { SIZE = 8192, LATER = 40 };

static void count_call(void *user)
{
    ++*(int *)user;
}

/* ---- Read-only: pages that fault when they are written; pattern 2 ---- */

struct pages {
    syncedmem_buffer *buffer;
    unsigned char *bytes;
    int calls;
    unsigned char wanted[SIZE];
};

static void pages_make(struct pages *pages)
{
    *pages = (struct pages){.buffer = NULL};
    pages->bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)pages->bytes, MAP_FAILED);
    pattern_write(pages->bytes, SIZE, 2);
    pattern_write(pages->wanted, SIZE, 2);
    cr_assert_eq(mprotect(pages->bytes, SIZE, PROT_READ), 0);
    assert_ok(syncedmem_create(SIZE, &pages->buffer));
    assert_ok(syncedmem_adopt(pages->buffer, syncedmem_host(), pages->bytes, SIZE,
                              SYNCEDMEM_ADOPT_READ_ONLY, NULL, count_call, &pages->calls));
}

static void pages_check(struct pages *pages, const char *what)
{
    const void *reading;
    unsigned char copy[SIZE];
    assert_ok(syncedmem_gpu_data(pages->buffer, &reading));
    device_read(0, reading, copy, SIZE);
    cr_assert(memcmp(copy, pages->wanted, SIZE) == 0, "%s: device", what);
    assert_ok(syncedmem_cpu_data(pages->buffer, &reading));
    cr_assert(memcmp(reading, pages->wanted, SIZE) == 0, "%s: host", what);
}

static void pages_end(struct pages *pages)
{
    syncedmem_release(pages->buffer);
    cr_assert_eq(pages->calls, 1);
    cr_assert(pattern_is(pages->bytes, SIZE, 2));
    munmap(pages->bytes, SIZE);
}

/* After reading, which is hot then: writing is not. */
static void by_mutable(struct pages *pages)
{
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_cpu_data(pages->buffer, &reading));
    assert_ok(syncedmem_cpu_data(pages->buffer, &reading));
    cr_assert_eq(reading, (const void *)pages->bytes);
    assert_ok(syncedmem_mutable_cpu_data(pages->buffer, &pointer));
    cr_assert_eq(pages->calls, 1);
    ((unsigned char *)pointer)[7] = pages->wanted[7] = 99;
}

static void by_lease(struct pages *pages, syncedmem_mode_t mode, size_t from, size_t length)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(pages->buffer, syncedmem_host(), mode, from, length, NULL, &pointer,
                              NULL, &token));
    cr_assert_eq(pages->calls, 1);
    memset(pointer, 0x5A, length);
    memset(pages->wanted + from, 0x5A, length);
    assert_ok(syncedmem_end(pages->buffer, token));
}

static void by_part(struct pages *pages)
{
    by_lease(pages, SYNCEDMEM_WRITE, 100, 50);
}

static void by_whole(struct pages *pages)
{
    by_lease(pages, SYNCEDMEM_WRITE, 0, SIZE);
}

static void by_read_write(struct pages *pages)
{
    by_lease(pages, SYNCEDMEM_READ_WRITE, 4000, 200);
}

static void by_fill(struct pages *pages)
{
    assert_ok(syncedmem_fill(pages->buffer, 5, 6, 0x11));
    memset(pages->wanted + 5, 0x11, 6);
}

static void by_copy(struct pages *pages)
{
    assert_ok(syncedmem_copy(pages->buffer, 1000, pages->buffer, 1500, 700));
    memmove(pages->wanted + 1000, pages->wanted + 1500, 700);
}

/* Newer bytes must land: from the device, in parts, by a read. */
static void device_writes(struct pages *pages)
{
    for (size_t at = 300; at < SIZE; at += 2000) {
        void *pointer;
        syncedmem_token_t token;
        assert_ok(syncedmem_begin(pages->buffer, sim(0), SYNCEDMEM_READ_WRITE, at, 100, NULL,
                                  &pointer, NULL, &token));
        memset(pages->wanted + at, (int)(at & 0x7F), 100);
        device_write(0, pointer, pages->wanted + at, 100);
        assert_ok(syncedmem_end(pages->buffer, token));
    }
    cr_assert_eq(pages->calls, 0);
}

static void by_read(struct pages *pages)
{
    const void *reading;
    device_writes(pages);
    assert_ok(syncedmem_cpu_data(pages->buffer, &reading));
    cr_assert_eq(pages->calls, 1);
}

static void by_prefetch(struct pages *pages)
{
    device_writes(pages);
    assert_ok(syncedmem_prefetch(pages->buffer, syncedmem_host(), 0, SIZE, NULL));
}

static void by_saving(struct pages *pages)
{
    device_writes(pages);
    assert_ok(syncedmem_drop(pages->buffer, sim(0)));
}

static const struct {
    const char *name;
    void (*write)(struct pages *pages);
} ways[] = {
    {"mutable_cpu_data", by_mutable},
    {"WRITE of a part", by_part},
    {"WRITE of all", by_whole},
    {"READ_WRITE", by_read_write},
    {"fill", by_fill},
    {"copy", by_copy},
    {"cpu_data", by_read},
    {"prefetch", by_prefetch},
    {"drop of the device", by_saving},
};

Test(adopt_memory, read_only_memory_is_never_written)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct pages pages;
        pages_make(&pages);
        ways[i].write(&pages);
        cr_assert_eq(pages.calls, 1, "%s", ways[i].name);
        pages_check(&pages, ways[i].name);
        pages_end(&pages);
    }
}

/* Reading, pushing and saving leave it in use. */
Test(adopt_memory, reading_keeps_read_only_memory)
{
    struct pages pages;
    const void *reading;
    pages_make(&pages);
    assert_ok(syncedmem_async_gpu_push(pages.buffer, NULL));
    pages_check(&pages, "pushed");
    assert_ok(syncedmem_drop(pages.buffer, sim(0)));
    pages_check(&pages, "dropped");
    assert_ok(syncedmem_cpu_data(pages.buffer, &reading));
    cr_assert_eq(reading, (const void *)pages.bytes);
    cr_assert_eq(pages.calls, 0);
    pages_end(&pages);
}

/* A lease of any range there keeps the memory where it is. */
Test(adopt_memory, a_lease_keeps_it_from_moving)
{
    struct pages pages;
    void *held, *out = &out;
    syncedmem_token_t token;
    pages_make(&pages);
    assert_ok(syncedmem_begin(pages.buffer, syncedmem_host(), SYNCEDMEM_READ, 0, 10, NULL, &held,
                              NULL, &token));
    assert_status(syncedmem_fill(pages.buffer, 4000, 10, 1), SYNCEDMEM_BUSY);
    cr_assert_eq(held, (void *)pages.bytes);
    cr_assert_eq(pages.calls, 0);
    assert_ok(syncedmem_end(pages.buffer, token));
    assert_ok(syncedmem_mutable_cpu_data(pages.buffer, &out));
    cr_assert_neq(out, (void *)pages.bytes);
    pages_check(&pages, "ended");
    pages_end(&pages);
}

/* At a device: the block keeps its bytes, and those valid there go along. */
Test(adopt_memory, read_only_device_memory_is_never_written)
{
    for (int whole = 0; whole < 2; whole++) {
        void *device, *pointer;
        const void *reading;
        int calls = 0;
        syncedmem_buffer *buffer;
        unsigned char copy[SIZE];
        const size_t at = whole ? 0 : 1000, length = whole ? SIZE : 100;
        assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &device));
        device_pattern_write(0, device, SIZE, 3);
        assert_ok(syncedmem_create(SIZE, &buffer));
        assert_ok(syncedmem_adopt(buffer, sim(0), device, SIZE, SYNCEDMEM_ADOPT_READ_ONLY, NULL,
                                  count_call, &calls));
        assert_ok(syncedmem_gpu_data(buffer, &reading));
        cr_assert_eq(reading, device);
        assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
        memset((char *)pointer + at, 0x66, length);
        cr_assert_eq(calls, 0);
        assert_ok(syncedmem_gpu_data(buffer, &reading));
        cr_assert_eq(calls, 1);
        cr_assert_neq(reading, device);
        device_read(0, reading, copy, SIZE);
        cr_assert(memcmp(copy, pointer, SIZE) == 0);
        cr_assert(device_pattern_is(0, device, SIZE, 3));
        syncedmem_release(buffer);
        assert_ok(syncedmem_sim_free(sim(0), device));
    }
}

/* ---- Bytes that a stream still writes ---- */

static void check_stream(bool by_drop)
{
    struct gate gate;
    syncedmem_stream *stream;
    syncedmem_buffer *buffer;
    void *device;
    int calls = 0;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &device));
    device_pattern_write(0, device, SIZE, 9);
    gate_put(&gate, stream);
    cr_assert(stream_pattern_write(stream, device, SIZE, 4));
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_adopt(buffer, sim(0), device, SIZE, 0, stream, count_call, &calls));
    cr_assert(!gate_is_open(&gate));
    syncedmem_stream_release(stream);
    gate_open_later(&gate, LATER);
    if (by_drop) {
        assert_ok(syncedmem_drop(buffer, sim(0)));
        cr_assert(gate_is_open(&gate));
        cr_assert_eq(calls, 1);
    }
    struct subject subject = {.buffer = buffer, .size = SIZE, .seed = 4};
    cr_assert(subject_bytes_right(&subject));
    syncedmem_release(buffer);
    cr_assert_eq(calls, 1);
    gate_join(&gate);
    assert_ok(syncedmem_sim_free(sim(0), device));
}

Test(adopt_memory, comes_after_its_stream)
{
    check_stream(false);
    check_stream(true);
}

/* Unfinished work on adopted memory ends before its use does. */
Test(adopt_memory, is_not_used_when_the_function_is_called)
{
    struct gate gate;
    syncedmem_stream *stream;
    syncedmem_buffer *buffer;
    static unsigned char block[SIZE];
    const void *reading;
    int calls = 0;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    pattern_write(block, SIZE, 5);
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_adopt(buffer, syncedmem_host(), block, SIZE, 0, NULL, count_call, &calls));
    gate_put(&gate, stream);
    assert_ok(syncedmem_prefetch(buffer, sim(0), 0, SIZE, stream));
    gate_open_later(&gate, LATER);
    assert_ok(syncedmem_drop(buffer, syncedmem_host()));
    cr_assert(gate_is_open(&gate));
    cr_assert_eq(calls, 1);
    memset(block, 0, SIZE);
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert(pattern_is(reading, SIZE, 5));
    gate_join(&gate);
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}
