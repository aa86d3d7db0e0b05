/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that have nothing to do, through the C++ classes, against the C API. */
#include "class_calls.h"
#include "measure.h"
#include "suites.h"

enum { SIZE = 4096, ACCESSOR_BITS = 2 };

#define VARIANT(side, accessor) ((side) << ACCESSOR_BITS | (accessor))

static enum outcome compare(const struct benchmark *benchmark)
{
    const enum class_side side = (enum class_side)(benchmark->variant >> ACCESSOR_BITS);
    const enum class_accessor accessor =
        (enum class_accessor)(benchmark->variant & ((1 << ACCESSOR_BITS) - 1));
    struct class_objects *objects = class_objects_create(SIZE);
    BENCH_REQUIRE(objects != NULL);
    const struct side sides[] = {
        {.run = class_calls_of(side, accessor), .context = objects},
        {.run = class_calls_of(CLASS_OF_C_API, accessor), .context = objects},
    };
    double ns[2];
    bench_measure(sides, 2, ns);
    class_objects_release(objects);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0] / class_calls,
        .baseline = ns[1] / class_calls,
        .most_ratio = benchmark->goal,
    });
}

#define ROWS(name, side)                                                                           \
    {"hot cpu_data of " name " : C", compare, .goal = 1.1,                                         \
     .variant = VARIANT(side, CLASS_CPU_DATA)},                                                    \
        {"hot mutable_cpu_data of " name " : C", compare, .goal = 1.1,                             \
         .variant = VARIANT(side, CLASS_MUTABLE_CPU_DATA)},                                        \
        {"hot gpu_data of " name " : C", compare, .goal = 1.1,                                     \
         .variant = VARIANT(side, CLASS_GPU_DATA)},                                                \
    {                                                                                              \
        "hot mutable_gpu_data of " name " : C", compare,                                           \
            .goal = 1.1, .variant = VARIANT(side, CLASS_MUTABLE_GPU_DATA)                          \
    }

static const struct benchmark benchmarks[] = {
    ROWS("Buffer", CLASS_BUFFER),
    ROWS("Buffer, error_code", CLASS_BUFFER_CODE),
    ROWS("SyncedMemory", CLASS_CAFFE),
};

const struct suite bench_class = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
