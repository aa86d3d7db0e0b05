/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways to get zeroed memory, by size: where memory that malloc reuses and is cleared begins to
 * cost more than fresh pages. HOST_BLOCK_LARGE in lib/memory/host_block.c is set by this.
 */
#include "measure.h"
#include "plain.h"
#include "suites.h"
#include "syncedmem.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

struct way {
    size_t size;
    enum plain_writes writes;
};

static void by_buffer(void *context)
{
    const struct way *way = context;
    syncedmem_buffer *buffer;
    void *pointer;
    BENCH_REQUIRE(syncedmem_create(way->size, &buffer) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_mutable_cpu_data(buffer, &pointer) == SYNCEDMEM_OK);
    plain_write(pointer, way->size, way->writes);
    syncedmem_release(buffer);
}

static void by_malloc(void *context)
{
    const struct way *way = context;
    plain_malloc_memset_free(way->size, way->writes);
}

static void by_calloc(void *context)
{
    const struct way *way = context;
    plain_calloc_free(way->size, way->writes);
}

static void by_mmap(void *context)
{
    const struct way *way = context;
    plain_mmap_munmap(way->size, way->writes);
}

static void by_huge_mmap(void *context)
{
    const struct way *way = context;
    plain_huge_mmap_munmap(way->size, way->writes);
}

/* ---- One line: every byte written, then one byte ---- */

enum { COLUMNS = 9 };

static const struct column heads[COLUMNS] = {
    {"ours,\nall bytes", 0}, {"malloc,\nmemset", 0},       {"calloc,\nall bytes", 0},
    {"mmap,\nall bytes", 0}, {"huge mmap,\nall bytes", 0}, {"ours,\n1 byte", 0},
    {"calloc,\n1 byte", 0},  {"mmap,\n1 byte", 0},         {"huge mmap,\n1 byte", 0},
};

static void print_heads(void)
{
    sweep_head(heads, COLUMNS);
}

static enum outcome measure(const struct benchmark *benchmark)
{
    struct way all = {benchmark->size, WRITE_EVERY_BYTE};
    struct way one = {benchmark->size, WRITE_ONE_BYTE};
    const struct side sides[COLUMNS] = {
        {.run = by_buffer, .context = &all},    {.run = by_malloc, .context = &all},
        {.run = by_calloc, .context = &all},    {.run = by_mmap, .context = &all},
        {.run = by_huge_mmap, .context = &all}, {.run = by_buffer, .context = &one},
        {.run = by_calloc, .context = &one},    {.run = by_mmap, .context = &one},
        {.run = by_huge_mmap, .context = &one},
    };
    struct column columns[COLUMNS];
    double ns[COLUMNS];
    bench_measure(sides, COLUMNS, ns);
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = (struct column){heads[i].head, ns[i]};
    sweep_row(benchmark->name + sizeof "sweep", columns, COLUMNS);
    return OUTCOME_NO_GOAL;
}

static const struct benchmark benchmarks[] = {
    {"sweep 64 KiB", measure, .size = 64 * KIB},
    {"sweep 128 KiB", measure, .size = 128 * KIB},
    {"sweep 256 KiB", measure, .size = 256 * KIB},
    {"sweep 512 KiB", measure, .size = 512 * KIB},
    {"sweep 1 MiB", measure, .size = MIB},
    {"sweep 2 MiB", measure, .size = 2 * MIB},
    {"sweep 4 MiB", measure, .size = 4 * MIB, .large = true},
    {"sweep 8 MiB", measure, .size = 8 * MIB, .large = true},
    {"sweep 16 MiB", measure, .size = 16 * MIB, .large = true},
    {"sweep 32 MiB", measure, .size = 32 * MIB, .large = true},
    {"sweep 64 MiB", measure, .size = 64 * MIB, .large = true},
    {"sweep 128 MiB", measure, .size = 128 * MIB, .large = true},
};

const struct suite bench_sweep = {
    .title = "Zeroed memory by size: from its allocation to its end, written in between",
    .print_head = print_heads,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
