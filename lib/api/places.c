/* SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "api/check.h"
#include "base/thread.h"
#include "core/retire.h"
#include "memory/host_block.h"
#include "places/discover.h"
#include "places/registry.h"

/* ---- Finding ---- */

syncedmem_place *syncedmem_host(void)
{
    static syncedmem_place host = {.name = "host"};
    return &host;
}

size_t syncedmem_device_count(void)
{
    PUBLIC_CALL;
    syncedmem_discover_all();
    return syncedmem_registry_count();
}

syncedmem_status_t syncedmem_device_at(size_t index, syncedmem_place **out_place)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_place);
    const size_t count = syncedmem_device_count();
    *out_place = syncedmem_registry_at(index);
    if (!*out_place)
        return syncedmem_error(SYNCEDMEM_NOT_FOUND, "no device %zu: there are %zu", index, count);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_device_find(const char *name, syncedmem_place **out_place)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_place);
    REQUIRE_ARGUMENT(name);
    return syncedmem_discover_name(name, out_place);
}

syncedmem_status_t syncedmem_device_current(syncedmem_place **out_place)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_place);
    return syncedmem_discover_current(out_place);
}

syncedmem_status_t syncedmem_require_device(const syncedmem_place *place)
{
    if (!place)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "the place is NULL");
    if (place_is_host(place))
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "the host is not a device");
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_device_set_current(syncedmem_place *place)
{
    PUBLIC_CALL;
    if (place && syncedmem_require_device(place) != SYNCEDMEM_OK)
        return SYNCEDMEM_INVALID_ARGUMENT;
    struct thread_state *state = syncedmem_thread_get();
    if (!state)
        return syncedmem_error_no_host_memory("the state of a thread", sizeof *state);
    state->current_device = place;
    return SYNCEDMEM_OK;
}

/* ---- Describing ---- */

static syncedmem_status_t unknown_key(syncedmem_key_t key)
{
    return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "key %d names no such property of a place",
                           (int)key);
}

syncedmem_status_t syncedmem_device_text(syncedmem_place *place, syncedmem_key_t key,
                                         const char **out_text)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_text);
    REQUIRE_ARGUMENT(place);
    const bool is_host = place_is_host(place);
    switch (key) {
    case SYNCEDMEM_PLACE_NAME:
        *out_text = place->name;
        return SYNCEDMEM_OK;
    case SYNCEDMEM_PLACE_BACKEND:
        *out_text = is_host ? place->name : place->backend->name;
        return SYNCEDMEM_OK;
    case SYNCEDMEM_PLACE_DESCRIPTION:
        if (!is_host)
            return place->backend->device_text(place->device, key, out_text);
        *out_text = "the host's memory";
        return SYNCEDMEM_OK;
    default:
        return unknown_key(key);
    }
}

static syncedmem_status_t host_number(syncedmem_key_t key, uint64_t *out_number)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    switch (key) {
    case SYNCEDMEM_PLACE_MEMORY_TOTAL:
        *out_number = page * (uint64_t)sysconf(_SC_PHYS_PAGES);
        return SYNCEDMEM_OK;
    case SYNCEDMEM_PLACE_MEMORY_FREE:
        *out_number = page * (uint64_t)sysconf(_SC_AVPHYS_PAGES);
        return SYNCEDMEM_OK;
    case SYNCEDMEM_PLACE_ALIGNMENT:
        *out_number = HOST_BLOCK_ALIGNMENT;
        return SYNCEDMEM_OK;
    default: /* unified: the host is its own memory */
        *out_number = 1;
        return SYNCEDMEM_OK;
    }
}

syncedmem_status_t syncedmem_device_number(syncedmem_place *place, syncedmem_key_t key,
                                           uint64_t *out_number)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_number);
    REQUIRE_ARGUMENT(place);
    if (key < SYNCEDMEM_PLACE_MEMORY_TOTAL || key > SYNCEDMEM_PLACE_UNIFIED)
        return unknown_key(key);
    if (place_is_host(place))
        return host_number(key, out_number);
    const syncedmem_status_t status = place_require(place);
    syncedmem_retired_visit(); /* memory that no work uses any more is free */
    return status == SYNCEDMEM_OK ? place->backend->device_number(place->device, key, out_number)
                                  : status;
}
