/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "places/discover.h"
#include "places/registry.h"

static syncedmem_status_t open_and_list(size_t backend_index)
{
    const syncedmem_status_t status = syncedmem_backend_open(backend_index);
    if (status != SYNCEDMEM_OK)
        return status;
    return syncedmem_registry_add_backend(syncedmem_backend_at(backend_index));
}

void syncedmem_discover_all(void)
{
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    const struct backend *backend;
    for (size_t i = 0; (backend = syncedmem_backend_at(i)) != NULL; i++)
        if (!backend->by_name_only || backend->wanted())
            open_and_list(i); /* a backend that cannot be used keeps its reason */
    syncedmem_error_put_back(&kept);
}

/* Whether the name is a backend's, a colon and a number as the library writes it. */
static bool is_device_name(const char *name, size_t *out_length)
{
    const char *colon = strchr(name, ':');
    if (!colon)
        return false;
    *out_length = (size_t)(colon - name);
    const char *number = colon + 1;
    const size_t digits = strspn(number, "0123456789");
    return digits > 0 && number[digits] == '\0' && (number[0] != '0' || digits == 1);
}

static bool names_backend(const char *name, size_t length, const struct backend *backend)
{
    return strlen(backend->name) == length && memcmp(name, backend->name, length) == 0;
}

static syncedmem_status_t find_in_backend(size_t index, const char *name,
                                          syncedmem_place **out_place)
{
    const struct backend *backend = syncedmem_backend_at(index);
    const syncedmem_status_t status = open_and_list(index);
    if (status != SYNCEDMEM_OK)
        return status;
    *out_place = syncedmem_registry_find(name);
    if (*out_place)
        return SYNCEDMEM_OK;
    return syncedmem_error(SYNCEDMEM_NO_DEVICE, "no device %.40s: backend %s has %zu, from %s:0 on",
                           name, backend->name, backend->device_count(), backend->name);
}

syncedmem_status_t syncedmem_discover_name(const char *name, syncedmem_place **out_place)
{
    if (strcmp(name, syncedmem_host()->name) == 0) {
        *out_place = syncedmem_host();
        return SYNCEDMEM_OK;
    }
    size_t length;
    if (!is_device_name(name, &length))
        return syncedmem_error(SYNCEDMEM_NOT_FOUND,
                               "no place is named \"%.40s\": names are host, or a backend and a "
                               "number, such as sim:0",
                               name);
    const struct backend *backend;
    for (size_t i = 0; (backend = syncedmem_backend_at(i)) != NULL; i++)
        if (names_backend(name, length, backend))
            return find_in_backend(i, name, out_place);
    return syncedmem_error(SYNCEDMEM_NOT_FOUND,
                           "no place is named \"%.40s\": this build has no "
                           "backend %.*s",
                           name, length < 40 ? (int)length : 40, name);
}

/* SYNCEDMEM_DEVICE=none: no device unless a call names one. A name that is none is NOT_FOUND,
 * so that a mistyped one is not taken for a machine without a device. */
static syncedmem_status_t device_of_environment(const char *name, syncedmem_place **out_place)
{
    if (strcmp(name, "none") == 0)
        return syncedmem_error(SYNCEDMEM_NO_DEVICE, "SYNCEDMEM_DEVICE is none");
    const syncedmem_status_t status = syncedmem_discover_name(name, out_place);
    if (status == SYNCEDMEM_NOT_FOUND)
        return syncedmem_error(status, "SYNCEDMEM_DEVICE is \"%.40s\", which names no device",
                               name);
    if (status == SYNCEDMEM_OK && place_is_host(*out_place))
        return syncedmem_error(SYNCEDMEM_NOT_FOUND,
                               "SYNCEDMEM_DEVICE is the host, which is no device");
    return status;
}

static syncedmem_status_t first_real_device(syncedmem_place **out_place)
{
    const struct backend *backend;
    for (size_t i = 0; (backend = syncedmem_backend_at(i)) != NULL; i++)
        if (!backend->by_name_only)
            open_and_list(i);
    for (size_t i = 0; i < syncedmem_registry_count(); i++) {
        *out_place = syncedmem_registry_at(i);
        if (!(*out_place)->backend->by_name_only)
            return SYNCEDMEM_OK;
    }
    return syncedmem_error(SYNCEDMEM_NO_DEVICE,
                           "no GPU was found; a device can be named, such as sim:0, by "
                           "SYNCEDMEM_DEVICE or by a call");
}

syncedmem_status_t syncedmem_discover_current(syncedmem_place **out_place)
{
    const struct thread_state *state = syncedmem_thread_peek();
    if (state && state->current_device) {
        *out_place = state->current_device;
        return SYNCEDMEM_OK;
    }
    const char *name = secure_getenv("SYNCEDMEM_DEVICE");
    syncedmem_status_t status =
        name && *name ? device_of_environment(name, out_place) : first_real_device(out_place);
    if (status != SYNCEDMEM_OK)
        *out_place = NULL;
    return status;
}
