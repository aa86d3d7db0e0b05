/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places: the host and the devices of all backends, interned for the life of the process.
 */
#ifndef SYNCEDMEM_PLACES_PLACE_H
#define SYNCEDMEM_PLACES_PLACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "backends/ops.h"
#include "syncedmem.h"

enum { PLACE_NAME_SIZE = 32 };

struct syncedmem_place {
    const struct backend *backend; /* NULL: the host */
    struct backend_device *device;
    char name[PLACE_NAME_SIZE];
};

struct syncedmem_stream {
    syncedmem_place *place;
    struct backend_stream *stream;
    bool is_default; /* belongs to the device */
    atomic_uint references;
};

static inline bool place_is_host(const syncedmem_place *place)
{
    return place->backend == NULL;
}

/* The table is a constant list; NULL past its end. */
const struct backend *syncedmem_backend_at(size_t index);

/* Opens the backend once; the same outcome, with its reason in the last error, ever after. */
syncedmem_status_t syncedmem_backend_open(size_t index);

/* Whether it has been opened with success. Opens nothing. */
bool syncedmem_backend_is_open(size_t index);

/* OK for a place that is a device; INVALID_ARGUMENT for NULL and for the host. */
syncedmem_status_t syncedmem_require_device(const syncedmem_place *place);

/* OK for no stream, and for one that is on the place. */
syncedmem_status_t syncedmem_require_stream_at(const syncedmem_stream *stream,
                                               const syncedmem_place *place);

/* What the drivers that are open know of an address. */
void syncedmem_classify(const void *address, struct memory_facts *out_facts);

#endif
