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

#include "places/place.h"

struct root;

/* Where transfers are queued: on this stream if its device does the work, else on the device's
 * default stream. place NULL: always there. */
struct stream_choice {
    const syncedmem_place *place;
    struct backend_stream *stream;
};

/* Work put on the stream from now on comes after what kernels do with an exposed copy on the
 * default stream. */
syncedmem_status_t syncedmem_transfer_order(const struct root *root, unsigned slot,
                                            struct backend_stream *stream);

/* Starts bringing what is stale in a range to a slot, as work of the root, and zeroes what is
 * fresh. */
syncedmem_status_t syncedmem_transfer_start(struct root *root, unsigned slot, size_t from,
                                            size_t to, struct stream_choice choice);

/* The same, and returns when the bytes are there. */
syncedmem_status_t syncedmem_transfer_in(struct root *root, unsigned slot, size_t from, size_t to,
                                         struct stream_choice choice);

/* Brings these parts, all stale at the slot and valid at the source (the slot itself for fresh
 * ones), and returns when they are there. */
syncedmem_status_t syncedmem_transfer_regions(struct root *root, unsigned slot, unsigned source,
                                              const struct region *regions, size_t count);

/* Sets a range of a slot's memory to a value, and returns when it is done. */
syncedmem_status_t syncedmem_transfer_fill(struct root *root, unsigned slot, size_t from, size_t to,
                                           uint8_t value);

/* One range from one memory to another at the same place, and returns when it is done. The
 * ranges may overlap in one memory. */
syncedmem_status_t syncedmem_transfer_within(const syncedmem_place *place, void *to,
                                             size_t to_offset, void *from, size_t from_offset,
                                             size_t length);

#endif
