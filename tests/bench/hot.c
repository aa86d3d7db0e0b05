/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that have nothing to do, on a buffer and on a view, against a class without locks. */
#include "measure.h"
#include "plain.h"
#include "suites.h"
#include "syncedmem.h"

enum { CALLS = 10000, SIZE = 4096 };

enum accessor { CPU_DATA, MUTABLE_CPU_DATA, GPU_DATA, MUTABLE_GPU_DATA, OF_A_VIEW = 8 };

/* ---- Ours ---- */

/* A failure is looked for as a program does, by a test after every call. */
#define REPEAT_OURS(pointer_type, accessor)                                                        \
    for (int i = 0; i < CALLS; i++) {                                                              \
        pointer_type pointer;                                                                      \
        BENCH_REQUIRE(accessor(context, &pointer) == SYNCEDMEM_OK);                                \
        bench_use(pointer);                                                                        \
    }

static void our_cpu_data(void *context)
{
    REPEAT_OURS(const void *, syncedmem_cpu_data)
}

static void our_mutable_cpu_data(void *context)
{
    REPEAT_OURS(void *, syncedmem_mutable_cpu_data)
}

static void our_gpu_data(void *context)
{
    REPEAT_OURS(const void *, syncedmem_gpu_data)
}

static void our_mutable_gpu_data(void *context)
{
    REPEAT_OURS(void *, syncedmem_mutable_gpu_data)
}

static syncedmem_buffer *make_ours(void)
{
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    BENCH_REQUIRE(syncedmem_device_find("sim:0", &place) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_create(SIZE, &buffer) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_set_home(buffer, place) == SYNCEDMEM_OK);
    return buffer;
}

/* The middle half of a buffer. */
static syncedmem_buffer *make_our_view(void)
{
    syncedmem_buffer *parent = make_ours();
    syncedmem_buffer *view;
    BENCH_REQUIRE(syncedmem_view(parent, SIZE / 4, SIZE / 2, &view) == SYNCEDMEM_OK);
    syncedmem_release(parent);
    return view;
}

/* ---- The class without locks ---- */

#define REPEAT_PLAIN(accessor)                                                                     \
    for (int i = 0; i < CALLS; i++)                                                                \
        bench_use(accessor(context));

static void plain_cpu_data_calls(void *context)
{
    REPEAT_PLAIN(plain_cpu_data)
}

static void plain_mutable_cpu_data_calls(void *context)
{
    REPEAT_PLAIN(plain_mutable_cpu_data)
}

static void plain_gpu_data_calls(void *context)
{
    REPEAT_PLAIN(plain_gpu_data)
}

static void plain_mutable_gpu_data_calls(void *context)
{
    REPEAT_PLAIN(plain_mutable_gpu_data)
}

/* ---- The comparison ---- */

static const struct {
    void (*ours)(void *context);
    void (*plain)(void *context);
} accessors[] = {
    [CPU_DATA] = {our_cpu_data, plain_cpu_data_calls},
    [MUTABLE_CPU_DATA] = {our_mutable_cpu_data, plain_mutable_cpu_data_calls},
    [GPU_DATA] = {our_gpu_data, plain_gpu_data_calls},
    [MUTABLE_GPU_DATA] = {our_mutable_gpu_data, plain_mutable_gpu_data_calls},
};

static enum outcome compare(const struct benchmark *benchmark)
{
    const bool of_a_view = (benchmark->variant & OF_A_VIEW) != 0;
    const int accessor = benchmark->variant & ~OF_A_VIEW;
    syncedmem_buffer *ours = of_a_view ? make_our_view() : make_ours();
    struct plain_buffer *plain = plain_create(SIZE);
    BENCH_REQUIRE(plain != NULL);
    const struct side sides[] = {
        {.run = accessors[accessor].ours, .context = ours},
        {.run = accessors[accessor].plain, .context = plain},
    };
    double ns[2];
    bench_measure(sides, 2, ns);
    syncedmem_release(ours);
    plain_release(plain);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0] / CALLS,
        .baseline = ns[1] / CALLS,
        .most_ratio = benchmark->goal,
        .wanted = 2,
    });
}

static const struct benchmark benchmarks[] = {
    {"hot cpu_data : plain class", compare, .goal = 3, .variant = CPU_DATA},
    {"hot mutable_cpu_data : plain class", compare, .goal = 3, .variant = MUTABLE_CPU_DATA},
    {"hot gpu_data : plain class", compare, .goal = 3, .variant = GPU_DATA},
    {"hot mutable_gpu_data : plain class", compare, .goal = 3, .variant = MUTABLE_GPU_DATA},
    {"hot cpu_data of a view : plain class", compare, .goal = 3, .variant = OF_A_VIEW | CPU_DATA},
    {"hot mutable_cpu_data of a view : plain class", compare, .goal = 3,
     .variant = OF_A_VIEW | MUTABLE_CPU_DATA},
    {"hot gpu_data of a view : plain class", compare, .goal = 3, .variant = OF_A_VIEW | GPU_DATA},
    {"hot mutable_gpu_data of a view : plain class", compare, .goal = 3,
     .variant = OF_A_VIEW | MUTABLE_GPU_DATA},
};

const struct suite bench_hot = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
