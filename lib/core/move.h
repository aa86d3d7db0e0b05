/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs on bytes, without a pointer. Ranges are of the root. Under its lock (copy: both roots').
 */
#ifndef SYNCEDMEM_CORE_MOVE_H
#define SYNCEDMEM_CORE_MOVE_H

#include <stddef.h>
#include <stdint.h>

#include "places/place.h"

struct root;

syncedmem_status_t syncedmem_move_mark(struct root *root, syncedmem_place *place, size_t from,
                                       size_t to);

syncedmem_status_t syncedmem_move_copy(struct root *to_root, size_t to, struct root *from_root,
                                       size_t from, size_t length);

syncedmem_status_t syncedmem_move_fill(struct root *root, size_t from, size_t to, uint8_t value);

syncedmem_status_t syncedmem_move_drop(struct root *root, syncedmem_place *place);

/* Starts the transfer from the host to a device, from HEAD_AT_CPU only. */
syncedmem_status_t syncedmem_move_push(struct root *root, syncedmem_place *device,
                                       struct stream_ref stream, size_t from, size_t to);

#endif
