/* SPDX-License-Identifier: BSD-2-Clause */
/* Running benchmarks, each in a process of its own: a heap that no other one has used. */
#ifndef SYNCEDMEM_BENCH_RUN_H
#define SYNCEDMEM_BENCH_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "table.h"

struct benchmark {
    const char *name;
    enum outcome (*run)(const struct benchmark *benchmark); /* measures and prints a line */
    size_t size;
    double goal; /* the most that is allowed; 0: none */
    int variant; /* as the file of `run` understands it */
    bool large;  /* left out by --quick */
};

struct suite {
    const char *title; /* NULL: none */
    void (*print_head)(void);
    const struct benchmark *benchmarks;
    size_t count;
};

struct tally {
    unsigned met;
    unsigned not_met;
    unsigned skipped;
    unsigned failed; /* did not run */
};

extern bool bench_quick;

/* Those whose name has the filter in it; all for NULL. */
void bench_run_suite(const struct suite *suite, const char *filter, struct tally *tally);

/* For what has to work for a benchmark to run: ends its process. */
#define BENCH_REQUIRE(condition)                                                                   \
    ((condition) ? (void)0 : bench_fail(__FILE__, __LINE__, #condition))

_Noreturn void bench_fail(const char *file, int line, const char *condition);

#endif
