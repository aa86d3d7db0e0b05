/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers that no one touches: their memory, and their life. */
#include <malloc.h>
#include <stdlib.h>

#include "measure.h"
#include "plain.h"
#include "suites.h"
#include "syncedmem.h"

enum { HANDLES = 100000, PAIRS = 1000, SIZE = 4096, BLOCK = 136 };

/* ---- Memory, by malloc's own account, what it adds to a block included ---- */

static void create_all(syncedmem_buffer **buffers)
{
    for (size_t i = 0; i < HANDLES; i++)
        BENCH_REQUIRE(syncedmem_create(SIZE, &buffers[i]) == SYNCEDMEM_OK);
}

static void release_all(syncedmem_buffer **buffers)
{
    for (size_t i = 0; i < HANDLES; i++)
        syncedmem_release(buffers[i]);
}

static size_t bytes_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static enum outcome count_bytes(const struct benchmark *benchmark)
{
    syncedmem_buffer **buffers = malloc(HANDLES * sizeof *buffers);
    BENCH_REQUIRE(buffers != NULL);
    const size_t before = bytes_in_use();
    create_all(buffers);
    const size_t after = bytes_in_use();
    release_all(buffers);
    free(buffers);
    return table_row(&(struct row){
        .name = benchmark->name,
        .unit = UNIT_BYTES,
        .ours = (double)(after - before) / HANDLES,
        .most = benchmark->goal,
    });
}

/* ---- Life ---- */

static void create_and_release(void *context)
{
    (void)context;
    for (int i = 0; i < PAIRS; i++) {
        syncedmem_buffer *buffer;
        BENCH_REQUIRE(syncedmem_create(SIZE, &buffer) == SYNCEDMEM_OK);
        syncedmem_release(buffer);
    }
}

static void malloc_and_free(void *context)
{
    (void)context;
    for (int i = 0; i < PAIRS; i++)
        plain_malloc_free(BLOCK);
}

static enum outcome time_life(const struct benchmark *benchmark)
{
    const struct side sides[] = {{.run = create_and_release}, {.run = malloc_and_free}};
    double ns[2];
    bench_measure(sides, 2, ns);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0] / PAIRS,
        .baseline = ns[1] / PAIRS,
        .most = benchmark->goal,
    });
}

static const struct benchmark benchmarks[] = {
    {"create, release : malloc, free", time_life, .goal = 150},
    {"memory of a handle that was not touched", count_bytes, .goal = 192},
};

const struct suite bench_handles = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
