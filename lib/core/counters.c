/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>

#include "core/counters.h"

static _Atomic(uint64_t) process[STAT_END];

void syncedmem_count(struct counters *counters, syncedmem_key_t key, uint64_t amount)
{
    counters->figures[key] += amount;
    atomic_fetch_add_explicit(&process[key], amount, memory_order_relaxed);
}

void syncedmem_uncount(struct counters *counters, syncedmem_key_t key, uint64_t amount)
{
    syncedmem_uncount_root(counters, key, amount);
    syncedmem_uncount_process(key, amount);
}

void syncedmem_uncount_root(struct counters *counters, syncedmem_key_t key, uint64_t amount)
{
    counters->figures[key] -= amount;
}

void syncedmem_uncount_process(syncedmem_key_t key, uint64_t amount)
{
    atomic_fetch_sub_explicit(&process[key], amount, memory_order_relaxed);
}

uint64_t syncedmem_process_figure(syncedmem_key_t key)
{
    return atomic_load_explicit(&process[key], memory_order_relaxed);
}

static const char *const names[STAT_END] = {
    [SYNCEDMEM_STAT_TRANSFERS] = "transfers",
    [SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE] = "transfers_to_device",
    [SYNCEDMEM_STAT_TRANSFERS_TO_HOST] = "transfers_to_host",
    [SYNCEDMEM_STAT_BYTES_TO_DEVICE] = "bytes_to_device",
    [SYNCEDMEM_STAT_BYTES_TO_HOST] = "bytes_to_host",
    [SYNCEDMEM_STAT_HOST_ALLOCATIONS] = "host_allocations",
    [SYNCEDMEM_STAT_DEVICE_ALLOCATIONS] = "device_allocations",
    [SYNCEDMEM_STAT_HOST_BYTES] = "host_bytes",
    [SYNCEDMEM_STAT_DEVICE_BYTES] = "device_bytes",
    [SYNCEDMEM_STAT_BYTES_ZEROED] = "bytes_zeroed",
    [SYNCEDMEM_STAT_WAITS] = "waits",
    [SYNCEDMEM_STAT_PIN_FALLBACKS] = "pin_fallbacks",
    [SYNCEDMEM_STAT_LEASES] = "leases",
    [SYNCEDMEM_STAT_MERGES] = "merges",
    [SYNCEDMEM_STAT_STREAM_WAITS] = "stream_waits",
};

const char *syncedmem_stat_name(syncedmem_key_t key)
{
    return stat_key_is_known(key) ? names[key] : NULL;
}
