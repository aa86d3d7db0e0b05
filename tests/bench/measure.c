/* SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <time.h>

#include "measure.h"

struct effort bench_effort = {.repetitions = 30, .seconds = 1};

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double run_ns(const struct side *side)
{
    if (side->prepare)
        side->prepare(side->context);
    const double start = now_ns();
    side->run(side->context);
    return now_ns() - start;
}

static void run_in_turn(const struct side *sides, size_t count, double *least_ns)
{
    for (size_t i = 0; i < count; i++) {
        const double ns = run_ns(&sides[i]);
        if (ns < least_ns[i])
            least_ns[i] = ns;
    }
}

void bench_measure(const struct side *sides, size_t count, double *out_ns)
{
    for (size_t i = 0; i < count; i++)
        (void)run_ns(&sides[i]); /* caches, page tables and malloc's own limits settle */
    for (size_t i = 0; i < count; i++)
        out_ns[i] = DBL_MAX;
    const double end = now_ns() + bench_effort.seconds * 1e9;
    for (unsigned i = 0; i < bench_effort.repetitions || now_ns() < end; i++)
        run_in_turn(sides, count, out_ns);
}
