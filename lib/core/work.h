/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of a root that was started and not waited for: transfers, and what the
 * holder of a lease put on a stream. Who has to wait for which, and what failed.
 *
 * Everything here is under the root's lock.
 */
#ifndef SYNCEDMEM_CORE_WORK_H
#define SYNCEDMEM_CORE_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/ops.h"

struct root;

enum { NO_SLOT = -1 };

struct work {
    struct work *next;
    const struct backend *backend;
    struct backend_event *event;
    int reads;   /* slot, or NO_SLOT */
    int writes;  /* slot, or NO_SLOT */
    size_t from; /* a range that holds all of it */
    size_t to;
    size_t count; /* regions whose bytes arrive at `writes` */
    struct region regions[];
};

/* Room for so many regions; NULL when there is no memory. Freed when it has ended, or by discard
 * when it was never started. */
struct work *syncedmem_work_alloc(size_t regions);
void syncedmem_work_discard(struct work *work);

void syncedmem_work_add(struct root *root, struct work *work);

/* Forgets what has ended; the first failure is returned, once. */
syncedmem_status_t syncedmem_work_reap(struct root *root);

/* Blocks until no work conflicts with reading (or writing) a slot's bytes in a range. */
syncedmem_status_t syncedmem_work_settle(struct root *root, unsigned slot, size_t from, size_t to,
                                         bool writing);

/* Blocks until nothing uses a slot's memory any more. */
syncedmem_status_t syncedmem_work_settle_slot(struct root *root, unsigned slot);

/* Blocks until all of it has ended. */
syncedmem_status_t syncedmem_work_settle_all(struct root *root);

#endif
