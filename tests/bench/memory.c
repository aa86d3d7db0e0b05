/* SPDX-License-Identifier: BSD-2-Clause */
/* A buffer's life with its first touch on the host, against a block from malloc or calloc. */
#include "measure.h"
#include "plain.h"
#include "suites.h"
#include "syncedmem.h"

#define MIB ((size_t)1 << 20)

enum first_call { FIRST_READS, FIRST_WRITES };
enum allocator { BY_MALLOC, BY_CALLOC };

/* What a benchmark's variant says. */
struct life {
    enum first_call first;
    enum plain_writes writes;
    enum allocator against;
};

enum variant { READ, WRITE, WRITE_PAGES, WRITE_PAGES_CALLOC };

static const struct life lives[] = {
    [READ] = {FIRST_READS, WRITE_NOTHING, BY_MALLOC},
    [WRITE] = {FIRST_WRITES, WRITE_NOTHING, BY_MALLOC},
    [WRITE_PAGES] = {FIRST_WRITES, WRITE_EVERY_PAGE, BY_MALLOC},
    [WRITE_PAGES_CALLOC] = {FIRST_WRITES, WRITE_EVERY_PAGE, BY_CALLOC},
};

static void *touch(syncedmem_buffer *buffer, enum first_call first)
{
    void *pointer;
    const void *read_only;
    if (first == FIRST_WRITES) {
        BENCH_REQUIRE(syncedmem_mutable_cpu_data(buffer, &pointer) == SYNCEDMEM_OK);
        return pointer;
    }
    BENCH_REQUIRE(syncedmem_cpu_data(buffer, &read_only) == SYNCEDMEM_OK);
    bench_use(read_only);
    return NULL;
}

static void live_ours(void *context)
{
    const struct benchmark *benchmark = context;
    const struct life *life = &lives[benchmark->variant];
    syncedmem_buffer *buffer;
    BENCH_REQUIRE(syncedmem_create(benchmark->size, &buffer) == SYNCEDMEM_OK);
    plain_write(touch(buffer, life->first), benchmark->size, life->writes);
    syncedmem_release(buffer);
}

static void live_plain(void *context)
{
    const struct benchmark *benchmark = context;
    const struct life *life = &lives[benchmark->variant];
    if (life->against == BY_MALLOC)
        plain_malloc_memset_free(benchmark->size, life->writes);
    else
        plain_calloc_free(benchmark->size, life->writes);
}

static enum outcome compare(const struct benchmark *benchmark)
{
    struct benchmark copy = *benchmark;
    const struct side sides[] = {
        {.run = live_ours, .context = &copy},
        {.run = live_plain, .context = &copy},
    };
    double ns[2];
    bench_measure(sides, 2, ns);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0],
        .baseline = ns[1],
        .most_ratio = benchmark->goal,
    });
}

static const struct benchmark benchmarks[] = {
    {"64 MiB cpu_data : malloc, memset", compare, 64 * MIB, 0.01, READ, false},
    {"64 MiB mutable_cpu_data : malloc, memset", compare, 64 * MIB, 0.01, WRITE, false},
    {"64 MiB mutable_cpu_data, pages : calloc, pages", compare, 64 * MIB, 1.05, WRITE_PAGES_CALLOC,
     false},
    {"64 MiB mutable_cpu_data, pages : malloc, memset, pages", compare, 64 * MIB, 0, WRITE_PAGES,
     true},
    {"1 MiB cpu_data : malloc, memset", compare, MIB, 1.2, READ, false},
    {"1 MiB mutable_cpu_data, pages : malloc, memset, pages", compare, MIB, 1.2, WRITE_PAGES,
     false},
    {"4 KiB cpu_data : malloc, memset", compare, 4096, 0, READ, false},
};

const struct suite bench_memory = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
