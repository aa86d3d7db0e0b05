/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases of a part or all of a buffer: what they move, and what they cost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leases.h"
#include "plain.h"
#include "raw.h"
#include "suites.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum { WRITES = 100, WRITTEN = 1024, LEASES = 1000 };

struct ours {
    syncedmem_buffer *buffer;
    syncedmem_place *device;
    syncedmem_place *place; /* where the leases are */
    syncedmem_mode_t mode;
    size_t size;
    uint64_t random;
    uint64_t runs;
};

/* With memory at both places, bytes that are not zero, and the newest at the device. */
static struct ours make_ours(size_t size)
{
    struct ours ours = {.device = bench_device(), .place = syncedmem_host(), .size = size};
    void *pointer;
    BENCH_REQUIRE(syncedmem_create(size, &ours.buffer) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_set_home(ours.buffer, ours.device) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_mutable_cpu_data(ours.buffer, &pointer) == SYNCEDMEM_OK);
    plain_write(pointer, size, WRITE_EVERY_BYTE);
    BENCH_REQUIRE(syncedmem_mutable_gpu_data(ours.buffer, &pointer) == SYNCEDMEM_OK);
    return ours;
}

static void make_newest_on_device(struct ours *ours)
{
    BENCH_REQUIRE(syncedmem_mark_modified(ours->buffer, ours->device, 0, ours->size) ==
                  SYNCEDMEM_OK);
}

/* ---- The other side: a copy of all bytes ---- */

static void measure_against_copy(const struct benchmark *benchmark, const struct side *side,
                                 double ns[2])
{
    struct raw raw = make_raw(benchmark->size);
    const struct side sides[] = {*side, {.run = copy_to_device, .context = &raw}};
    bench_measure(sides, 2, ns);
    end_raw(&raw);
}

/* ---- A WRITE of what is valid elsewhere only ---- */

static void prepare_overwrite(void *context)
{
    make_newest_on_device(context);
}

static void overwrite(void *context)
{
    struct ours *ours = context;
    bench_lease(ours->buffer, ours->place, SYNCEDMEM_WRITE, 0, ours->size);
}

static enum outcome time_overwrite(const struct benchmark *benchmark)
{
    struct ours ours = make_ours(benchmark->size);
    double ns[2];
    measure_against_copy(
        benchmark, &(struct side){.prepare = prepare_overwrite, .run = overwrite, .context = &ours},
        ns);
    syncedmem_release(ours.buffer);
    return table_row(&(struct row){.name = benchmark->name, .ours = ns[0], .baseline = ns[1]});
}

/* On the host and then on the device, each while the other one has the newest bytes; and on the
 * host before it has memory. */
static enum outcome count_overwrite(const struct benchmark *benchmark)
{
    struct ours ours = make_ours(benchmark->size);
    BENCH_REQUIRE(syncedmem_drop(ours.buffer, syncedmem_host()) == SYNCEDMEM_OK);
    const uint64_t before = bench_bytes_moved(ours.buffer);
    syncedmem_place *const places[] = {syncedmem_host(), ours.device, syncedmem_host()};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        ours.place = places[i];
        overwrite(&ours);
    }
    const uint64_t moved = bench_bytes_moved(ours.buffer) - before;
    syncedmem_release(ours.buffer);
    return table_row(&(struct row){
        .name = benchmark->name,
        .unit = UNIT_BYTES,
        .ours = (double)moved,
        .zero = true,
    });
}

/* ---- Scattered writes on the host, then a read on the device ---- */

static void write_scattered(void *context)
{
    struct ours *ours = context;
    make_newest_on_device(ours);
    for (int i = 0; i < WRITES; i++) {
        syncedmem_token_t token;
        void *bytes =
            bench_begin(ours->buffer, syncedmem_host(), SYNCEDMEM_WRITE,
                        bench_random(&ours->random, ours->size - WRITTEN), WRITTEN, &token);
        memset(bytes, i, WRITTEN);
        bench_end(ours->buffer, token);
    }
}

static void read_on_device(void *context)
{
    struct ours *ours = context;
    const void *pointer;
    BENCH_REQUIRE(syncedmem_gpu_data(ours->buffer, &pointer) == SYNCEDMEM_OK);
    ours->runs++;
}

static enum outcome time_scattered(const struct benchmark *benchmark)
{
    struct ours ours = make_ours(benchmark->size);
    double ns[2];
    measure_against_copy(
        benchmark,
        &(struct side){.prepare = write_scattered, .run = read_on_device, .context = &ours}, ns);
    syncedmem_release(ours.buffer);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0],
        .baseline = ns[1],
        .most_ratio = benchmark->goal,
    });
}

static enum outcome count_scattered(const struct benchmark *benchmark)
{
    struct ours ours = make_ours(benchmark->size);
    const struct side side = {.prepare = write_scattered, .run = read_on_device, .context = &ours};
    const uint64_t before = bench_bytes_moved(ours.buffer);
    const uint64_t transfers_before = bench_stat(ours.buffer, SYNCEDMEM_STAT_TRANSFERS);
    double ns;
    bench_measure(&side, 1, &ns);
    const double runs = (double)ours.runs;
    const double moved = (double)(bench_bytes_moved(ours.buffer) - before);
    const uint64_t transfers = bench_stat(ours.buffer, SYNCEDMEM_STAT_TRANSFERS) - transfers_before;
    char note[64];
    snprintf(note, sizeof note, "%.1f submissions", (double)transfers / runs);
    syncedmem_release(ours.buffer);
    return table_row(&(struct row){
        .name = benchmark->name,
        .unit = UNIT_BYTES,
        .ours = moved / runs,
        .baseline = WRITES * WRITTEN,
        .most_ratio = benchmark->goal,
        .note = note,
    });
}

/* ---- Leases of what is valid there ---- */

enum lease_kind { READ_ON_HOST, WRITE_ON_HOST, READ_ON_DEVICE, WRITE_ON_DEVICE };

static void lease_often(void *context)
{
    const struct ours *ours = context;
    for (int i = 0; i < LEASES; i++)
        bench_lease(ours->buffer, ours->place, ours->mode, 0, ours->size);
}

static enum outcome time_lease(const struct benchmark *benchmark)
{
    struct ours ours = make_ours(benchmark->size);
    const int kind = benchmark->variant;
    ours.place = kind == READ_ON_HOST || kind == WRITE_ON_HOST ? syncedmem_host() : ours.device;
    ours.mode = kind == READ_ON_HOST || kind == READ_ON_DEVICE ? SYNCEDMEM_READ : SYNCEDMEM_WRITE;
    const struct side side = {.run = lease_often, .context = &ours};
    double ns;
    bench_measure(&side, 1, &ns);
    syncedmem_release(ours.buffer);
    return table_row(&(struct row){.name = benchmark->name, .ours = ns / LEASES});
}

static const struct benchmark benchmarks[] = {
    {"64 MiB WRITE, valid elsewhere only: bytes moved", count_overwrite, .size = 64 * MIB},
    {"64 MiB WRITE, valid elsewhere only : memcpy", time_overwrite, .size = 64 * MIB},
    {"100 writes of 1 KiB, gpu_data: moved : written", count_scattered, .size = 64 * MIB,
     .goal = 2},
    {"100 writes of 1 KiB, gpu_data : memcpy of 64 MiB", time_scattered, .size = 64 * MIB,
     .goal = 0.05},
    {"lease, READ on the host", time_lease, .size = 4 * KIB, .variant = READ_ON_HOST},
    {"lease, WRITE on the host", time_lease, .size = 4 * KIB, .variant = WRITE_ON_HOST},
    {"lease, READ on the device", time_lease, .size = 4 * KIB, .variant = READ_ON_DEVICE},
    {"lease, WRITE on the device", time_lease, .size = 4 * KIB, .variant = WRITE_ON_DEVICE},
};

const struct suite bench_ranges = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
