/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What concerns all buffers at once: a fork, the loss of a device, the end of the process.
 *
 * The epoch is one number that every hot call compares. Changing it sends every call on every
 * buffer to the slow path once, without walking the buffers.
 *
 * The era says which process this is: it is another one in a forked child and once the process
 * ends. What belongs to a driver remembers the era it was made in, and is out of reach in another:
 * no driver may be called for it any more.
 */
#ifndef SYNCEDMEM_BASE_EPOCH_H
#define SYNCEDMEM_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "syncedmem.h"

/* Lives in the bits from EPOCH_SHIFT up; see the stamp in core/root.h. */
enum { EPOCH_SHIFT = 48 };

extern _Atomic(uint64_t) syncedmem_epoch;
extern _Atomic(uint32_t) syncedmem_era;

static inline uint64_t epoch_now(void)
{
    return atomic_load_explicit(&syncedmem_epoch, memory_order_acquire);
}

static inline uint32_t era_now(void)
{
    return atomic_load_explicit(&syncedmem_era, memory_order_acquire);
}

/* Something has happened that every buffer has to look at. Backends call it when a device is lost.
 */
void syncedmem_epoch_advance(void);

/* From now on the end of the process is noticed: `leave` is called then, before anything that a
 * driver has registered so far. Once, after the first driver was opened. */
void syncedmem_watch_exit(void (*leave)(void));

/* OK for what was made in this era; else why it is out of reach: FORKED, or NO_DEVICE where the
 * process ends. */
syncedmem_status_t syncedmem_require_era(uint32_t era);

#endif
