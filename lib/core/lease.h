/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open leases of a root: a reader-writer lock per byte range that never waits.
 *
 * Everything here is under the root's lock.
 */
#ifndef SYNCEDMEM_CORE_LEASE_H
#define SYNCEDMEM_CORE_LEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/ops.h"

struct root;
struct work;

struct lease {
    struct lease *next;
    syncedmem_token_t token;
    unsigned slot;
    bool writes;
    size_t from;
    size_t to;
    struct stream_ref stream; /* where the holder's work is; NULL on the host */
    struct work *work;        /* the record of that work, made beforehand: an end needs no memory */
};

struct leases {
    struct lease *open;
    struct lease spare; /* the first one costs no allocation */
    bool spare_used;
    syncedmem_token_t next_token;
    syncedmem_token_t last_token; /* of the numbers that this root may give out */
};

/* BUSY when an open lease overlaps the range and one of the two writes. */
syncedmem_status_t syncedmem_lease_check(const struct root *root, size_t from, size_t to,
                                         bool writing);

/* BUSY when a range of a slot is leased in any mode. */
syncedmem_status_t syncedmem_lease_check_at(const struct root *root, unsigned slot, size_t from,
                                            size_t to);

/* The same for all memory of the slot. */
syncedmem_status_t syncedmem_lease_check_slot(const struct root *root, unsigned slot);

/* Whether any lease overlaps the range. */
bool syncedmem_lease_overlaps(const struct root *root, size_t from, size_t to);

/* A lease that is not listed yet; NULL when there is no memory. */
struct lease *syncedmem_lease_alloc(struct root *root);
void syncedmem_lease_free(struct root *root, struct lease *lease);

/* Gives it its token. Open leases hold the root; see syncedmem_root_release(). */
void syncedmem_lease_open(struct root *root, struct lease *lease);

/* The link to the lease with that token; NULL when there is none. */
struct lease **syncedmem_lease_find(struct root *root, syncedmem_token_t token);

/* Unlists and frees it. The caller asks syncedmem_root_is_left(). */
void syncedmem_lease_close(struct root *root, struct lease **link);

#endif
