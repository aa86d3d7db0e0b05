/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases as every suite takes them, and random places to take them at. */
#ifndef SYNCEDMEM_BENCH_LEASES_H
#define SYNCEDMEM_BENCH_LEASES_H

#include "measure.h"
#include "run.h"
#include "syncedmem.h"

static inline void *bench_begin(syncedmem_buffer *buffer, syncedmem_place *place,
                                syncedmem_mode_t mode, size_t offset, size_t length,
                                syncedmem_token_t *token)
{
    void *pointer;
    BENCH_REQUIRE(syncedmem_begin(buffer, place, mode, offset, length, NULL, &pointer, NULL,
                                  token) == SYNCEDMEM_OK);
    return pointer;
}

static inline void bench_end(syncedmem_buffer *buffer, syncedmem_token_t token)
{
    BENCH_REQUIRE(syncedmem_end(buffer, token) == SYNCEDMEM_OK);
}

static inline void bench_lease(syncedmem_buffer *buffer, syncedmem_place *place,
                               syncedmem_mode_t mode, size_t offset, size_t length)
{
    syncedmem_token_t token;
    bench_use(bench_begin(buffer, place, mode, offset, length, &token));
    bench_end(buffer, token);
}

static inline syncedmem_place *bench_device(void)
{
    syncedmem_place *place;
    BENCH_REQUIRE(syncedmem_device_find("sim:0", &place) == SYNCEDMEM_OK);
    return place;
}

static inline uint64_t bench_stat(const syncedmem_buffer *buffer, syncedmem_key_t key)
{
    uint64_t figure;
    BENCH_REQUIRE(syncedmem_stat(buffer, key, &figure) == SYNCEDMEM_OK);
    return figure;
}

static inline uint64_t bench_bytes_moved(const syncedmem_buffer *buffer)
{
    return bench_stat(buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE) +
           bench_stat(buffer, SYNCEDMEM_STAT_BYTES_TO_HOST);
}

/* The next of a series of random numbers below `end`, the same in every run (splitmix64). */
static inline size_t bench_random(uint64_t *state, size_t end)
{
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (size_t)((value ^ (value >> 31)) % end);
}

#endif
