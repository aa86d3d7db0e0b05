/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeping the map small: when there are too many segments, neighbours are merged that cost the
 * fewest bytes sent again.
 */
#ifndef SYNCEDMEM_CORE_MERGE_H
#define SYNCEDMEM_CORE_MERGE_H

#include "syncedmem.h"

struct root;

/* Under the root's lock, before a change of the map. When it fails, no byte has changed. */
syncedmem_status_t syncedmem_merge_if_due(struct root *root);

#endif
