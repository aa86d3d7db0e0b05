/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures by key, for one root and for the process. */
#ifndef SYNCEDMEM_CORE_COUNTERS_H
#define SYNCEDMEM_CORE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "syncedmem.h"

enum { STAT_FIRST = SYNCEDMEM_STAT_TRANSFERS, STAT_END = SYNCEDMEM_STAT_STREAM_WAITS + 1 };

struct counters {
    uint64_t figures[STAT_END]; /* by key; changed under the root's lock */
};

static inline bool stat_key_is_known(syncedmem_key_t key)
{
    return key >= STAT_FIRST && key < STAT_END;
}

/* Adds to the root's figure and to the process's. */
void syncedmem_count(struct counters *counters, syncedmem_key_t key, uint64_t amount);

/* Takes from a figure that says how much there is now. */
void syncedmem_uncount(struct counters *counters, syncedmem_key_t key, uint64_t amount);

/* The same in two parts, for what a root has given up and the process still has. */
void syncedmem_uncount_root(struct counters *counters, syncedmem_key_t key, uint64_t amount);
void syncedmem_uncount_process(syncedmem_key_t key, uint64_t amount);

uint64_t syncedmem_process_figure(syncedmem_key_t key);

#endif
