/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole buffers between the host and a simulated device, against memcpy between the same kinds
 * of memory. All of it is warm. */
#include <stdlib.h>

#include "measure.h"
#include "plain.h"
#include "raw.h"
#include "suites.h"
#include "syncedmem.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum direction { TO_DEVICE, TO_HOST };

struct ours {
    syncedmem_buffer *buffer;
    uint64_t runs;
};

/* ---- Ours: a place is made stale, then asked for ---- */

static void write_on_host(void *context)
{
    struct ours *ours = context;
    void *pointer;
    BENCH_REQUIRE(syncedmem_mutable_cpu_data(ours->buffer, &pointer) == SYNCEDMEM_OK);
}

static void write_on_device(void *context)
{
    struct ours *ours = context;
    void *pointer;
    BENCH_REQUIRE(syncedmem_mutable_gpu_data(ours->buffer, &pointer) == SYNCEDMEM_OK);
}

static void read_on_host(void *context)
{
    struct ours *ours = context;
    const void *pointer;
    BENCH_REQUIRE(syncedmem_cpu_data(ours->buffer, &pointer) == SYNCEDMEM_OK);
    ours->runs++;
}

static void read_on_device(void *context)
{
    struct ours *ours = context;
    const void *pointer;
    BENCH_REQUIRE(syncedmem_gpu_data(ours->buffer, &pointer) == SYNCEDMEM_OK);
    ours->runs++;
}

static uint64_t transfers(const syncedmem_buffer *buffer)
{
    uint64_t figure;
    BENCH_REQUIRE(syncedmem_stat(buffer, SYNCEDMEM_STAT_TRANSFERS, &figure) == SYNCEDMEM_OK);
    return figure;
}

/* With bytes that are not zero at both places: zeros need not be moved. */
static struct ours make_ours(size_t size)
{
    struct ours ours = {0};
    syncedmem_place *place;
    void *pointer;
    BENCH_REQUIRE(syncedmem_device_find("sim:0", &place) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_create(size, &ours.buffer) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_set_home(ours.buffer, place) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_mutable_cpu_data(ours.buffer, &pointer) == SYNCEDMEM_OK);
    plain_write(pointer, size, WRITE_EVERY_BYTE);
    BENCH_REQUIRE(syncedmem_mutable_gpu_data(ours.buffer, &pointer) == SYNCEDMEM_OK);
    ours.runs = 1;
    return ours;
}

/* ---- The raw copy ---- */

static void copy_to_host(void *context)
{
    const struct raw *raw = context;
    plain_copy(raw->host, raw->device, raw->size);
}

/* ---- The comparison ---- */

static void measure(const struct benchmark *benchmark, struct ours *ours, struct raw *raw,
                    double ns[2])
{
    const struct side to_device[] = {
        {.prepare = write_on_host, .run = read_on_device, .context = ours},
        {.run = copy_to_device, .context = raw},
    };
    const struct side to_host[] = {
        {.prepare = write_on_device, .run = read_on_host, .context = ours},
        {.run = copy_to_host, .context = raw},
    };
    if (benchmark->variant == TO_DEVICE)
        write_on_host(ours); /* the device has the newest bytes: one more transfer */
    ours->runs += benchmark->variant == TO_DEVICE;
    bench_measure(benchmark->variant == TO_DEVICE ? to_device : to_host, 2, ns);
    BENCH_REQUIRE(transfers(ours->buffer) == ours->runs);
}

static enum outcome compare(const struct benchmark *benchmark)
{
    struct ours ours = make_ours(benchmark->size);
    struct raw raw = make_raw(benchmark->size);
    double ns[2];
    measure(benchmark, &ours, &raw, ns);
    syncedmem_release(ours.buffer);
    end_raw(&raw);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0],
        .baseline = ns[1],
        .most_ratio = benchmark->goal,
    });
}

static const struct benchmark benchmarks[] = {
    {"64 MiB to device : memcpy", compare, 64 * MIB, 1.05, TO_DEVICE, false},
    {"64 MiB to host : memcpy", compare, 64 * MIB, 1.05, TO_HOST, false},
    {"1 MiB to device : memcpy", compare, MIB, 1.05, TO_DEVICE, false},
    {"1 MiB to host : memcpy", compare, MIB, 1.05, TO_HOST, false},
    {"4 KiB to device : memcpy", compare, 4 * KIB, 0, TO_DEVICE, false},
    {"4 KiB to host : memcpy", compare, 4 * KIB, 0, TO_HOST, false},
};

const struct suite bench_transfers = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
