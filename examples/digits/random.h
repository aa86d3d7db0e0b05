/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers that are the same on every machine: splitmix64, by Sebastiano Vigna. */
#ifndef DIGITS_RANDOM_H
#define DIGITS_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state; /* starts as the seed, any number */
};

static inline uint64_t random_next(struct random *random)
{
    uint64_t mixed = random->state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* From 0 to bound - 1. */
static inline uint32_t random_below(struct random *random, uint32_t bound)
{
    return (uint32_t)(((random_next(random) >> 32) * bound) >> 32);
}

/* From -limit to limit, in 2^24 steps, which a float can tell apart. */
static inline float random_within(struct random *random, float limit)
{
    const float unit = (float)(random_next(random) >> 40) / 16777216.0F;
    return (2.0F * unit - 1.0F) * limit;
}

#endif
