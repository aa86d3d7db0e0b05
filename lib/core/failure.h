/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What it means that work failed after calls had gone on as if it would not.
 *
 * Under the root's lock.
 */
#ifndef SYNCEDMEM_CORE_FAILURE_H
#define SYNCEDMEM_CORE_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

struct root;
struct work;

/* A range that holds all bytes that are nowhere any more; empty: there are none. */
struct lost_bytes {
    size_t from;
    size_t to;
};

/*
 * Bytes that did not arrive are not the newest there, nor is what was made of them elsewhere. Where
 * no other place has them their source has, if its memory was not written since: what was then
 * done to the only copy is void. False: there is no memory for the change; ask again.
 */
bool syncedmem_failure_take_back(struct root *root, struct work *work, struct lost_bytes *lost);

/* The same for work that no one will ever be told of: nothing is made void in silence, so bytes that
 * are nowhere else are LOST. */
bool syncedmem_failure_withdraw(struct root *root, struct work *work);

#endif
