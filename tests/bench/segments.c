/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A write (WRITE lease of 1 KiB on the host, begin and end) at a random offset of 64 MiB, with a
 * crowded validity map, against one with about 10 segments. In three steady states:
 *
 * - in place: the ranges that are written have been written before, and the map does not change;
 * - new: each write adds two segments. The map is brought back before each run, and is as crowded
 *   as is said on the average over the run. The side with 10 spreads the same number of writes
 *   over several buffers;
 * - merging: as new, and never brought back within a run, so that merges are part of it. Pieces
 *   that have no place in common with their neighbours have to be copied for that, as they would
 *   be for a read on the device. So the other side is that of new, and memcpy of as many bytes as
 *   merges moved, in pieces and at the same offsets. The ratio to new alone is said beside it.
 *
 * Runs of one side are all alike, offsets included: the fastest one is no lucky one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leases.h"
#include "plain.h"
#include "suites.h"

#define MIB ((size_t)1 << 20)

enum { WRITTEN = 1024, CROWD = 9 };

enum head { FROM_GPU, FROM_SYNCED };
enum state { IN_PLACE, NEW, MERGING };

/* What a run does with each of several buffers. */
struct plan {
    size_t buffers;
    size_t before; /* writes that bring the map to where it is to be */
    size_t writes; /* the timed ones */
    bool in_place;
};

/* n writes that cut make 1 + 2n segments: before + writes / 2 of them are there on the average. */
static const struct plan few[] = {
    [IN_PLACE] = {.buffers = 1, .before = 5, .writes = 630, .in_place = true},
    [NEW] = {.buffers = CROWD, .before = 1, .writes = 7},
    [MERGING] = {.buffers = CROWD, .before = 1, .writes = 7},
};
static const struct plan many[] = {
    [IN_PLACE] = {.buffers = 1, .before = 255, .writes = 630, .in_place = true},
    [NEW] = {.buffers = 1, .before = 224, .writes = 7 * CROWD},
    [MERGING] = {.buffers = 1, .before = 256, .writes = 640},
};

struct ours {
    const struct plan *plan;
    syncedmem_place *device;
    syncedmem_buffer *buffers[CROWD];
    enum head head;
    size_t size;
    size_t *offsets; /* of all writes: those before, for each buffer, and then the timed ones */
    uint64_t merges; /* figures before the run */
    uint64_t bytes;
};

static size_t count_before(const struct plan *plan)
{
    return plan->buffers * plan->before;
}

static size_t count_timed(const struct plan *plan)
{
    return plan->buffers * plan->writes;
}

/* ---- The run ---- */

static void write_all(const struct ours *ours, const size_t *offsets, size_t each)
{
    for (size_t buffer = 0; buffer < ours->plan->buffers; buffer++)
        for (size_t i = 0; i < each; i++)
            bench_lease(ours->buffers[buffer], syncedmem_host(), SYNCEDMEM_WRITE, *offsets++,
                        WRITTEN);
}

static void write_timed(void *context)
{
    const struct ours *ours = context;
    write_all(ours, ours->offsets + count_before(ours->plan), ours->plan->writes);
}

/* One segment: all of it newest on the device, or the same at both places. */
static void make_one_segment(const struct ours *ours, syncedmem_buffer *buffer)
{
    const void *pointer;
    if (ours->head == FROM_GPU)
        BENCH_REQUIRE(syncedmem_mark_modified(buffer, ours->device, 0, ours->size) == SYNCEDMEM_OK);
    else
        BENCH_REQUIRE(syncedmem_gpu_data(buffer, &pointer) == SYNCEDMEM_OK);
}

static uint64_t sum_of_stats(const struct ours *ours,
                             uint64_t (*figure)(const syncedmem_buffer *buffer))
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ours->plan->buffers; i++)
        sum += figure(ours->buffers[i]);
    return sum;
}

static uint64_t merges_of(const syncedmem_buffer *buffer)
{
    return bench_stat(buffer, SYNCEDMEM_STAT_MERGES);
}

static void prepare(void *context)
{
    struct ours *ours = context;
    for (size_t i = 0; i < ours->plan->buffers; i++)
        make_one_segment(ours, ours->buffers[i]);
    write_all(ours, ours->offsets, ours->plan->before);
    ours->merges = sum_of_stats(ours, merges_of);
    ours->bytes = sum_of_stats(ours, bench_bytes_moved);
}

/* ---- The copies that merges make, without the library ---- */

struct raw {
    char *host;
    char *device;
    const size_t *offsets;
    size_t count;
    size_t size;
};

static void copy_pieces(void *context)
{
    const struct raw *raw = context;
    for (size_t i = 0; i < raw->count; i++)
        plain_copy(raw->device + raw->offsets[i], raw->host + raw->offsets[i], WRITTEN);
}

static struct raw make_raw(const struct ours *ours)
{
    const struct raw raw = {
        .host = malloc(ours->size),
        .device = plain_device_alloc(ours->size),
        .offsets = ours->offsets + count_before(ours->plan),
        .count = count_timed(ours->plan),
        .size = ours->size,
    };
    BENCH_REQUIRE(raw.host != NULL && raw.device != NULL);
    plain_write(raw.host, raw.size, WRITE_EVERY_BYTE);
    plain_write(raw.device, raw.size, WRITE_EVERY_BYTE);
    return raw;
}

static void end_raw(const struct raw *raw)
{
    plain_device_free(raw->device, raw->size);
    free(raw->host);
}

/* ---- Life of a side ---- */

static size_t *make_offsets(const struct plan *plan, size_t size)
{
    const size_t before = count_before(plan), timed = count_timed(plan);
    size_t *offsets = malloc((before + timed) * sizeof *offsets);
    uint64_t random = 1;
    BENCH_REQUIRE(offsets != NULL);
    for (size_t i = 0; i < before + timed; i++)
        offsets[i] = plan->in_place && i >= before ? offsets[bench_random(&random, before)]
                                                   : bench_random(&random, size - WRITTEN);
    return offsets;
}

/* With memory at both places that is there, and the same at both. */
static syncedmem_buffer *make_buffer(syncedmem_place *device, size_t size)
{
    syncedmem_buffer *buffer;
    void *pointer;
    const void *read_only;
    BENCH_REQUIRE(syncedmem_create(size, &buffer) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_set_home(buffer, device) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_mutable_cpu_data(buffer, &pointer) == SYNCEDMEM_OK);
    plain_write(pointer, size, WRITE_EVERY_BYTE);
    BENCH_REQUIRE(syncedmem_gpu_data(buffer, &read_only) == SYNCEDMEM_OK);
    return buffer;
}

static struct ours make_ours(const struct plan *plan, enum head head, size_t size)
{
    struct ours ours = {.plan = plan, .device = bench_device(), .head = head, .size = size};
    for (size_t i = 0; i < plan->buffers; i++)
        ours.buffers[i] = make_buffer(ours.device, size);
    ours.offsets = make_offsets(plan, size);
    return ours;
}

static void end_ours(struct ours *ours)
{
    for (size_t i = 0; i < ours->plan->buffers; i++)
        syncedmem_release(ours->buffers[i]);
    free(ours->offsets);
}

/* ---- What is said beside the times ---- */

static size_t count_segments(const syncedmem_buffer *buffer)
{
    char text[4096];
    size_t needed, count;
    BENCH_REQUIRE(syncedmem_describe(buffer, text, sizeof text, &needed) == SYNCEDMEM_OK);
    const char *line = strstr(text, "newest bytes of the whole");
    BENCH_REQUIRE(line != NULL && sscanf(line, "newest bytes of the whole in %zu", &count) == 1);
    return count;
}

struct figures {
    size_t segments_before;
    size_t segments_after;
    double merges; /* a write */
    double bytes;  /* moved a write */
};

/* By one more run. */
static struct figures count_run(struct ours *ours)
{
    struct figures figures;
    const double writes = (double)count_timed(ours->plan);
    prepare(ours);
    figures.segments_before = count_segments(ours->buffers[0]);
    write_timed(ours);
    figures.segments_after = count_segments(ours->buffers[0]);
    figures.merges = (double)(sum_of_stats(ours, merges_of) - ours->merges) / writes;
    figures.bytes = (double)(sum_of_stats(ours, bench_bytes_moved) - ours->bytes) / writes;
    return figures;
}

/* ---- The comparison ---- */

struct times {
    double crowded; /* all of them of one write */
    double sparse;
    double copy; /* of a piece */
};

static struct times measure(struct ours *crowded, struct ours *sparse)
{
    struct raw raw = make_raw(crowded);
    const struct side sides[] = {
        {.prepare = prepare, .run = write_timed, .context = crowded},
        {.prepare = prepare, .run = write_timed, .context = sparse},
        {.run = copy_pieces, .context = &raw},
    };
    double ns[3];
    bench_measure(sides, 3, ns);
    end_raw(&raw);
    return (struct times){
        .crowded = ns[0] / (double)count_timed(crowded->plan),
        .sparse = ns[1] / (double)count_timed(sparse->plan),
        .copy = ns[2] / (double)raw.count,
    };
}

static enum outcome print(const struct benchmark *benchmark, const struct times *times,
                          const struct figures *figures)
{
    char note[160];
    const int length = snprintf(note, sizeof note, "%zu to %zu segments", figures->segments_before,
                                figures->segments_after);
    if (benchmark->variant == MERGING)
        snprintf(note + length, sizeof note - (size_t)length,
                 ", %.2f merges and %.0f bytes moved a write, %.2f times that of 10 alone",
                 figures->merges, figures->bytes, times->crowded / times->sparse);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = times->crowded,
        .baseline = times->sparse + times->copy * figures->bytes / WRITTEN,
        .most_ratio = benchmark->goal,
        .note = note,
    });
}

static enum outcome compare(const struct benchmark *benchmark, enum head head)
{
    struct ours crowded = make_ours(&many[benchmark->variant], head, benchmark->size);
    struct ours sparse = make_ours(&few[benchmark->variant], head, benchmark->size);
    const struct times times = measure(&crowded, &sparse);
    const struct figures figures = count_run(&crowded);
    end_ours(&crowded);
    end_ours(&sparse);
    return print(benchmark, &times, &figures);
}

static enum outcome compare_from_gpu(const struct benchmark *benchmark)
{
    return compare(benchmark, FROM_GPU);
}

static enum outcome compare_from_synced(const struct benchmark *benchmark)
{
    return compare(benchmark, FROM_SYNCED);
}

#define LINE(name, run, state)                                                                     \
    {                                                                                              \
        name, run, 64 * MIB, 2, state, false                                                       \
    }

static const struct benchmark benchmarks[] = {
    LINE("HEAD_AT_GPU, write in place, 512 segments : 10", compare_from_gpu, IN_PLACE),
    LINE("HEAD_AT_GPU, new write, 512 segments : 10", compare_from_gpu, NEW),
    LINE("HEAD_AT_GPU, merging write, 512 : 10, memcpy", compare_from_gpu, MERGING),
    LINE("SYNCED, write in place, 512 segments : 10", compare_from_synced, IN_PLACE),
    LINE("SYNCED, new write, 512 segments : 10", compare_from_synced, NEW),
    LINE("SYNCED, merging write, 512 : 10, memcpy", compare_from_synced, MERGING),
};

const struct suite bench_segments = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
