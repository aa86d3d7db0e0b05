/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "api/check.h"
#include "places/place.h"

static syncedmem_status_t open_stream(syncedmem_stream *stream)
{
    const syncedmem_place *place = stream->place;
    if (stream->is_default)
        return syncedmem_place_default_stream(place, &stream->ref);
    stream->ref.number = syncedmem_place_next_stream_number();
    return place->backend->stream_create(place->device, &stream->ref.stream);
}

syncedmem_status_t syncedmem_stream_ref(const syncedmem_stream *stream,
                                        const syncedmem_place *place, struct stream_ref *out_ref)
{
    if (!stream)
        return syncedmem_place_default_stream(place, out_ref);
    *out_ref = stream->ref;
    return place_require(place);
}

static syncedmem_status_t make_handle(syncedmem_place *place, bool is_default,
                                      syncedmem_stream **out_stream)
{
    syncedmem_status_t status = syncedmem_require_device(place);
    if (status == SYNCEDMEM_OK)
        status = place_require(place);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_stream *stream = malloc(sizeof *stream);
    if (!stream)
        return syncedmem_error_no_host_memory("a stream", sizeof *stream);
    *stream = (syncedmem_stream){.place = place, .is_default = is_default};
    atomic_init(&stream->references, 1);
    status = open_stream(stream);
    if (status != SYNCEDMEM_OK) {
        free(stream);
        return status;
    }
    *out_stream = stream;
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_stream_create(syncedmem_place *place, syncedmem_stream **out_stream)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_stream);
    return make_handle(place, false, out_stream);
}

syncedmem_status_t syncedmem_stream_default(syncedmem_place *place, syncedmem_stream **out_stream)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_stream);
    return make_handle(place, true, out_stream);
}

syncedmem_stream *syncedmem_stream_retain(syncedmem_stream *stream)
{
    if (stream)
        atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    return stream;
}

void syncedmem_stream_release(syncedmem_stream *stream)
{
    PUBLIC_CALL;
    if (!stream || atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) > 1)
        return;
    if (!stream->is_default && place_in_reach(stream->place))
        stream->place->backend->stream_release(stream->ref.stream);
    free(stream);
}

syncedmem_status_t syncedmem_stream_wait(syncedmem_stream *stream)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(stream);
    const syncedmem_status_t status = place_require(stream->place);
    return status == SYNCEDMEM_OK ? stream->place->backend->stream_wait(stream->ref.stream)
                                  : status;
}

syncedmem_place *syncedmem_stream_place(const syncedmem_stream *stream)
{
    return stream ? stream->place : NULL;
}
