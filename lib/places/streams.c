/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that belong to a device, and the numbers by which streams are told apart. */
#include "base/error.h"
#include "places/place.h"

/* Each place has two streams of its own; users' streams are numbered from here on. */
#define FIRST_USER_STREAM ((uint64_t)1 << 32)

uint64_t syncedmem_place_next_stream_number(void)
{
    static _Atomic(uint64_t) next = FIRST_USER_STREAM;
    return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
}

syncedmem_status_t syncedmem_place_default_stream(const syncedmem_place *place,
                                                  struct stream_ref *out_ref)
{
    const syncedmem_status_t status = place_require(place);
    if (status != SYNCEDMEM_OK)
        return status;
    out_ref->number = 2 * place->number;
    return place->backend->stream_default(place->device, &out_ref->stream);
}

/* What was made before a loss is gone with it; another thread may still be about to find that out,
 * so it is left alone. */
static syncedmem_status_t make_own(const syncedmem_place *place, struct own_stream *own)
{
    const uint64_t losses = place->backend->losses(place->device);
    if (own->stream && own->losses == losses)
        return SYNCEDMEM_OK;
    own->losses = losses;
    return place->backend->stream_create(place->device, &own->stream);
}

syncedmem_status_t syncedmem_place_own_stream(syncedmem_place *place, struct stream_ref *out_ref)
{
    syncedmem_status_t status = place_require(place);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_lock(&place->own.lock);
    if (status != SYNCEDMEM_OK)
        return status;
    status = make_own(place, &place->own);
    *out_ref = (struct stream_ref){place->own.stream, 2 * place->number + 1};
    syncedmem_unlock(&place->own.lock);
    return status;
}
