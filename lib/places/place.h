/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places: the host and the devices of all backends, interned for the life of the process.
 */
#ifndef SYNCEDMEM_PLACES_PLACE_H
#define SYNCEDMEM_PLACES_PLACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "backends/ops.h"
#include "base/epoch.h"
#include "base/lock.h"
#include "syncedmem.h"

enum { PLACE_NAME_SIZE = 32 };

struct syncedmem_place {
    const struct backend *backend; /* NULL: the host */
    struct backend_device *device;
    char name[PLACE_NAME_SIZE];
    uint32_t era;    /* in which its driver was opened */
    uint64_t number; /* from 1 */
    struct own_stream {
        struct lock lock;
        struct backend_stream *stream; /* NULL until it is needed */
        uint64_t losses;               /* of the device when it was made */
    } own;
};

/* A stream as work sees it: equal numbers are one stream, which does things in order. */
struct stream_ref {
    struct backend_stream *stream;
    uint64_t number;
};

struct syncedmem_stream {
    syncedmem_place *place;
    struct stream_ref ref;
    bool is_default; /* belongs to the device */
    atomic_uint references;
};

static inline bool place_is_host(const syncedmem_place *place)
{
    return place->backend == NULL;
}

/* Whether the driver may still be called for the place. The host always is in reach. */
static inline bool place_in_reach(const syncedmem_place *place)
{
    return place_is_host(place) || place->era == era_now();
}

/* As a status, which says why not. */
static inline syncedmem_status_t place_require(const syncedmem_place *place)
{
    return place_in_reach(place) ? SYNCEDMEM_OK : syncedmem_require_era(place->era);
}

static inline uint64_t place_losses(const syncedmem_place *place)
{
    const bool is_asked = !place_is_host(place) && place_in_reach(place);
    return is_asked ? place->backend->losses(place->device) : 0;
}

/* The device's default stream, and the library's own, on which nothing ever waits for others. */
syncedmem_status_t syncedmem_place_default_stream(const syncedmem_place *place,
                                                  struct stream_ref *out_ref);
syncedmem_status_t syncedmem_place_own_stream(syncedmem_place *place, struct stream_ref *out_ref);

/* What a user named: a stream of the place, or NULL for its default stream. */
syncedmem_status_t syncedmem_stream_ref(const syncedmem_stream *stream,
                                        const syncedmem_place *place, struct stream_ref *out_ref);

/* The number of a stream that is made for a user. */
uint64_t syncedmem_place_next_stream_number(void);

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
