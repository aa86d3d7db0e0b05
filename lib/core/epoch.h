/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The epoch: one number that every hot call compares.
 *
 * Changing it sends every call on every buffer to the slow path once, without
 * walking the buffers: what a fork, the loss of a device or the end of the
 * process needs.
 */
#ifndef SYNCEDMEM_CORE_EPOCH_H
#define SYNCEDMEM_CORE_EPOCH_H

#include <stdatomic.h>
#include <stdint.h>

/* Lives in the bits from EPOCH_SHIFT up; see the stamp in core/root.h. */
enum { EPOCH_SHIFT = 48 };

extern _Atomic(uint64_t) syncedmem_epoch;

#endif
