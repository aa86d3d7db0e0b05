/* SPDX-License-Identifier: BSD-2-Clause */
/* Public calls of the simulator: handles are taken apart here, the work is in backends/sim. */
#include "backends/sim/sim.h"
#include "api/check.h"
#include "places/place.h"

syncedmem_status_t syncedmem_sim_configure(const char *specification)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(specification);
    return syncedmem_sim_backend_configure(specification);
}

static syncedmem_status_t require_sim(const syncedmem_place *place)
{
    const syncedmem_status_t status = syncedmem_require_device(place);
    if (status == SYNCEDMEM_OK && place->backend != &syncedmem_backend_sim)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%s is not a simulated device",
                               place->name);
    return status == SYNCEDMEM_OK ? place_require(place) : status;
}

syncedmem_status_t syncedmem_sim_launch(syncedmem_stream *stream, syncedmem_sim_kernel_fn kernel,
                                        const void *arguments, size_t arguments_size,
                                        const void *const *addresses, size_t count)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(stream);
    REQUIRE_ARGUMENT(kernel);
    if (arguments_size > 0)
        REQUIRE_ARGUMENT(arguments);
    if (count > 0)
        REQUIRE_ARGUMENT(addresses);
    const syncedmem_status_t status = require_sim(stream->place);
    if (status != SYNCEDMEM_OK)
        return status;
    return syncedmem_sim_backend_launch(stream->ref.stream, kernel, arguments, arguments_size,
                                        addresses, count);
}

syncedmem_status_t syncedmem_sim_alloc(syncedmem_place *place, size_t size, void **out_pointer)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_pointer);
    const syncedmem_status_t status = require_sim(place);
    if (status != SYNCEDMEM_OK)
        return status;
    if (size == 0)
        return syncedmem_error(SYNCEDMEM_OUT_OF_RANGE, "a block needs at least one byte");
    return syncedmem_sim_backend_alloc(place->device, size, out_pointer);
}

syncedmem_status_t syncedmem_sim_free(syncedmem_place *place, void *pointer)
{
    PUBLIC_CALL;
    const syncedmem_status_t status = require_sim(place);
    if (status != SYNCEDMEM_OK || !pointer)
        return status;
    return syncedmem_sim_backend_free(place->device, pointer);
}

syncedmem_status_t syncedmem_sim_fail(syncedmem_place *place, int32_t what, uint64_t nth)
{
    PUBLIC_CALL;
    const syncedmem_status_t status = require_sim(place);
    if (status != SYNCEDMEM_OK)
        return status;
    return syncedmem_sim_backend_fail(place->device, what, nth);
}

syncedmem_status_t syncedmem_sim_lose(syncedmem_place *place)
{
    PUBLIC_CALL;
    const syncedmem_status_t status = require_sim(place);
    return status == SYNCEDMEM_OK ? syncedmem_sim_backend_lose(place->device) : status;
}

syncedmem_status_t syncedmem_sim_restore(syncedmem_place *place)
{
    PUBLIC_CALL;
    const syncedmem_status_t status = require_sim(place);
    return status == SYNCEDMEM_OK ? syncedmem_sim_backend_restore(place->device) : status;
}

syncedmem_status_t syncedmem_sim_faults(syncedmem_place *place, uint64_t *out_count)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_count);
    const syncedmem_status_t status = require_sim(place);
    if (status == SYNCEDMEM_OK)
        *out_count = syncedmem_sim_backend_faults(place->device);
    return status;
}
