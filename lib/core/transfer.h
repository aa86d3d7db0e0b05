/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moving bytes between places: what is missing, from where, in how few submissions.
 *
 * Everything here is under the root's lock. None of it marks the map.
 */
#ifndef SYNCEDMEM_CORE_TRANSFER_H
#define SYNCEDMEM_CORE_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/map.h"
#include "core/work.h"
#include "places/place.h"

struct root;

/* Where transfers are queued: on this stream if its device does the work, else on a stream of the
 * device that does: the default stream, or the library's own. */
struct stream_choice {
    const syncedmem_place *place; /* NULL: none chosen */
    struct stream_ref ref;
    bool own; /* not the default stream: only what concerns the buffer is waited for */
};

/* Work put on the stream from now on comes after unfinished work that conflicts with the use, and after
 * what kernels do with an exposed copy on the default stream. */
syncedmem_status_t syncedmem_transfer_order(struct root *root, struct use use,
                                            struct stream_ref stream);

/* Starts bringing what is stale in a range to a slot, as work of the root, and zeroing what is fresh.
 * On a device it blocks for nothing. */
syncedmem_status_t syncedmem_transfer_start(struct root *root, unsigned slot, size_t from,
                                            size_t to, struct stream_choice choice);

/* The same, and returns when the bytes are there. */
syncedmem_status_t syncedmem_transfer_in(struct root *root, unsigned slot, size_t from, size_t to,
                                         struct stream_choice choice);

/* The slots that bytes of a range would come from. */
place_set syncedmem_transfer_sources(const struct root *root, unsigned slot, size_t from,
                                     size_t to);

/* Brings these parts, all stale at the slot and valid at the source (the slot itself for fresh
 * ones), and returns when they are there. */
syncedmem_status_t syncedmem_transfer_regions(struct root *root, unsigned slot, unsigned source,
                                              const struct region *regions, size_t count);

/* Sets a range of a slot's memory to a value, and returns when it is done. */
syncedmem_status_t syncedmem_transfer_fill(struct root *root, unsigned slot, size_t from, size_t to,
                                           uint8_t value);

/* Where bytes are at a place. */
struct bytes_at {
    void *memory;
    size_t offset;
    bool is_exposed; /* kernels on the default stream may use it */
};

/* One range from one memory to another at the same place, and returns when it is done. The
 * ranges may overlap in one memory. */
syncedmem_status_t syncedmem_transfer_within(syncedmem_place *place, struct bytes_at to,
                                             struct bytes_at from, size_t length);

#endif
