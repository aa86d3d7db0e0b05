/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one path for bytes: plain calls, leases and verbs all ask for an access, which makes
 * memory, waits for conflicting work, moves what is missing, and marks the map.
 *
 * Everything here is under the root's lock.
 */
#ifndef SYNCEDMEM_CORE_ACCESS_H
#define SYNCEDMEM_CORE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/transfer.h"
#include "places/place.h"

struct root;

enum access_mode { ACCESS_READ, ACCESS_WRITE, ACCESS_READ_WRITE };

struct access {
    syncedmem_place *place;
    enum access_mode mode;
    size_t from;
    size_t to;
    struct stream_choice choice;
    bool expose;     /* the pointer is given out for good */
    bool ordered;    /* blocks for nothing: what is needed is put on the stream of the choice */
    bool may_fail;   /* writing: bytes of the range may be left as they are after all */
    bool keeps_lock; /* what has to be waited for is waited for under the lock */
};

/* What every operation on a root begins with: records, room for a change of the map, failures
 * of earlier work. */
syncedmem_status_t syncedmem_prepare(struct root *root, syncedmem_place *place, size_t from,
                                     size_t to, unsigned *out_slot);

/* All but the mark: memory is there, its bytes are current or will be overwritten, no one else
 * uses them. */
syncedmem_status_t syncedmem_access_begin(struct root *root, const struct access *access,
                                          unsigned *out_slot);

/* Marks the map. Cannot fail. */
void syncedmem_access_mark(struct root *root, const struct access *access, unsigned slot);

/* What a first touch decides when it succeeds: the policy, and the home if it is of a device. */
void syncedmem_access_decide(struct root *root, unsigned slot);

/* Both. */
syncedmem_status_t syncedmem_access(struct root *root, const struct access *access,
                                    unsigned *out_slot);

#endif
