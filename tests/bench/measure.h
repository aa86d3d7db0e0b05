/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of several sides of one thing, taken in turns: the least of many repetitions each. */
#ifndef SYNCEDMEM_BENCH_MEASURE_H
#define SYNCEDMEM_BENCH_MEASURE_H

#include <stddef.h>

struct side {
    void (*prepare)(void *context); /* not timed; may be NULL */
    void (*run)(void *context);
    void *context;
};

struct effort {
    unsigned repetitions; /* at least so many */
    double seconds;       /* then more, until so much time has gone by */
};

extern struct effort bench_effort;

/* Nanoseconds of the fastest run of each side, by A B C, A B C, ... */
void bench_measure(const struct side *sides, size_t count, double *out_ns);

/* The value counts as used: the compiler may not leave out what makes it. */
static inline void bench_use(const void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

#endif
