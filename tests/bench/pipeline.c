/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop of push, kernel and pull, each on a stream of its own and each as long as the others,
 * with two or three buffers of each kind, against the same loop with one, where each step has to
 * wait for the one before it. No call of the loop but the host's own leases may wait.
 *
 * A run starts and ends with nothing under way, so that a part of the best factor (as many as there
 * are buffers) goes into filling and draining the pipeline. Every word of every result is checked.
 */
#include <stdio.h>

#include "leases.h"
#include "suites.h"
#include "syncedmem/sim.h"

/* Long beside what the host does. */
#define STAGES "latency=2ms,launch=2ms"

enum { ITERATIONS = 24, WORDS = 1024, SIZE = WORDS * sizeof(uint32_t), DEPTH_MOST = 3 };

struct pipeline {
    int depth;
    uint32_t started; /* iterations in all runs: no two have the same bytes */
    syncedmem_place *device;
    syncedmem_stream *push;
    syncedmem_stream *compute;
    syncedmem_stream *pull;
    syncedmem_buffer *inputs[DEPTH_MOST];
    syncedmem_buffer *outputs[DEPTH_MOST];
};

static uint32_t word_of(uint32_t iteration, uint32_t i)
{
    return iteration * 2654435761U + i;
}

static uint32_t result_of(uint32_t word)
{
    return (word ^ (word >> 15)) * 3 + 1;
}

static void kernel(void *arguments, void *const *addresses, size_t count)
{
    const uint32_t *input = addresses[0];
    uint32_t *output = addresses[1];
    (void)arguments;
    (void)count;
    for (uint32_t i = 0; i < WORDS; i++)
        output[i] = result_of(input[i]);
}

/* ---- Life ---- */

static void make_stream(syncedmem_place *device, syncedmem_stream **out_stream)
{
    BENCH_REQUIRE(syncedmem_stream_create(device, out_stream) == SYNCEDMEM_OK);
}

static struct pipeline make(int depth)
{
    struct pipeline pipeline = {.depth = depth, .device = bench_device()};
    make_stream(pipeline.device, &pipeline.push);
    make_stream(pipeline.device, &pipeline.compute);
    make_stream(pipeline.device, &pipeline.pull);
    for (int i = 0; i < depth; i++) {
        BENCH_REQUIRE(syncedmem_create(SIZE, &pipeline.inputs[i]) == SYNCEDMEM_OK);
        BENCH_REQUIRE(syncedmem_create(SIZE, &pipeline.outputs[i]) == SYNCEDMEM_OK);
    }
    return pipeline;
}

static void end(struct pipeline *pipeline)
{
    for (int i = 0; i < pipeline->depth; i++) {
        syncedmem_release(pipeline->inputs[i]);
        syncedmem_release(pipeline->outputs[i]);
    }
    syncedmem_stream_release(pipeline->push);
    syncedmem_stream_release(pipeline->compute);
    syncedmem_stream_release(pipeline->pull);
}

/* ---- One iteration ---- */

static void write_input(syncedmem_buffer *input, uint32_t iteration)
{
    syncedmem_token_t token;
    uint32_t *words = bench_begin(input, syncedmem_host(), SYNCEDMEM_WRITE, 0, SIZE, &token);
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = word_of(iteration, i);
    bench_end(input, token);
}

static const void *begin_on(const struct pipeline *pipeline, syncedmem_buffer *buffer,
                            syncedmem_mode_t mode, syncedmem_token_t *token)
{
    void *pointer;
    BENCH_REQUIRE(syncedmem_begin(buffer, pipeline->device, mode, 0, SIZE, pipeline->compute,
                                  &pointer, NULL, token) == SYNCEDMEM_OK);
    return pointer;
}

static void compute(const struct pipeline *pipeline, syncedmem_buffer *input,
                    syncedmem_buffer *output)
{
    syncedmem_token_t reading;
    syncedmem_token_t writing;
    const void *addresses[] = {begin_on(pipeline, input, SYNCEDMEM_READ, &reading),
                               begin_on(pipeline, output, SYNCEDMEM_WRITE, &writing)};
    BENCH_REQUIRE(syncedmem_sim_launch(pipeline->compute, kernel, NULL, 0, addresses, 2) ==
                  SYNCEDMEM_OK);
    bench_end(input, reading);
    bench_end(output, writing);
}

static void start(struct pipeline *pipeline, uint32_t iteration)
{
    syncedmem_buffer *input = pipeline->inputs[iteration % (uint32_t)pipeline->depth];
    syncedmem_buffer *output = pipeline->outputs[iteration % (uint32_t)pipeline->depth];
    write_input(input, iteration);
    BENCH_REQUIRE(syncedmem_prefetch(input, pipeline->device, 0, SIZE, pipeline->push) ==
                  SYNCEDMEM_OK);
    compute(pipeline, input, output);
    BENCH_REQUIRE(syncedmem_prefetch(output, syncedmem_host(), 0, SIZE, pipeline->pull) ==
                  SYNCEDMEM_OK);
}

static void finish(const struct pipeline *pipeline, uint32_t iteration)
{
    syncedmem_buffer *output = pipeline->outputs[iteration % (uint32_t)pipeline->depth];
    syncedmem_token_t token;
    const uint32_t *words = bench_begin(output, syncedmem_host(), SYNCEDMEM_READ, 0, SIZE, &token);
    for (uint32_t i = 0; i < WORDS; i++)
        BENCH_REQUIRE(words[i] == result_of(word_of(iteration, i)));
    bench_end(output, token);
}

static void run(void *context)
{
    struct pipeline *pipeline = context;
    const uint32_t first = pipeline->started;
    const uint32_t last = first + ITERATIONS;
    const uint32_t depth = (uint32_t)pipeline->depth;
    for (uint32_t i = first; i < last; i++) {
        if (i >= first + depth)
            finish(pipeline, i - depth);
        start(pipeline, i);
    }
    for (uint32_t i = last - depth; i < last; i++)
        finish(pipeline, i);
    pipeline->started = last;
}

/* ---- The comparison ---- */

/* Every byte went each way once, and nothing else did. */
static void check_transfers(const struct pipeline *pipeline)
{
    uint64_t bytes = 0;
    for (int i = 0; i < pipeline->depth; i++)
        bytes += bench_bytes_moved(pipeline->inputs[i]) + bench_bytes_moved(pipeline->outputs[i]);
    BENCH_REQUIRE(bytes == (uint64_t)2 * pipeline->started * SIZE);
}

static enum outcome compare(const struct benchmark *benchmark)
{
    BENCH_REQUIRE(syncedmem_sim_configure(STAGES) == SYNCEDMEM_OK);
    struct pipeline ours = make(benchmark->variant);
    struct pipeline blocking = make(1);
    const struct side sides[] = {
        {.run = run, .context = &ours},
        {.run = run, .context = &blocking},
    };
    double ns[2];
    bench_measure(sides, 2, ns);
    check_transfers(&ours);
    check_transfers(&blocking);
    end(&ours);
    end(&blocking);

    char note[64];
    snprintf(note, sizeof note, "%.2f times as fast, %.1f wanted", ns[1] / ns[0], benchmark->goal);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0] / ITERATIONS,
        .baseline = ns[1] / ITERATIONS,
        .most_ratio = 1 / benchmark->goal,
        .note = note,
    });
}

/* The goal is how many times as fast it has to be. */
static const struct benchmark benchmarks[] = {
    {"pipeline, two buffers : one", compare, .goal = 1.8, .variant = 2},
    {"pipeline, three buffers : one", compare, .goal = 2.5, .variant = 3},
};

const struct suite bench_pipeline = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
