/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and texts of the statuses, all made from one list. */
#include <stddef.h>

#include "syncedmem.h"

#define STATUSES(X)                                                                                \
    X(OK, "the call succeeded")                                                                    \
    X(INVALID_ARGUMENT, "an argument is NULL, unknown or malformed")                               \
    X(OUT_OF_RANGE, "a size, length or offset is too large, too small, or overflows")              \
    X(WRONG_STATE, "the object is not in a state that allows this call")                           \
    X(UNSUPPORTED, "this backend, device or handle cannot do that")                                \
    X(NOT_FOUND, "nothing has that name or index")                                                 \
    X(WRONG_MEMORY, "the memory is of another kind, or on another device, than the call needs")    \
    X(BUSY, "the bytes are leased in a way that excludes this call")                               \
    X(INVALID_LEASE, "the token is of no open lease of this buffer")                               \
    X(OUT_OF_HOST_MEMORY, "the host has no memory for this")                                       \
    X(OUT_OF_DEVICE_MEMORY, "the device has no memory for this")                                   \
    X(NO_DEVICE, "there is no device to use")                                                      \
    X(DEVICE_ERROR, "the device's driver refused or failed")                                       \
    X(DEVICE_LOST, "the device was lost, or reset")                                                \
    X(FORKED, "the device was opened before this process was forked")                              \
    X(DATA_LOST, "the newest bytes of the range are gone with their only place")

struct status_entry {
    syncedmem_status_t status;
    const char *name;
    const char *text;
};

#define ENTRY(name, text) {SYNCEDMEM_##name, #name, text},
static const struct status_entry entries[] = {STATUSES(ENTRY)};
static const struct status_entry unknown = {0, "UNKNOWN", "not a status of this version"};

static const struct status_entry *find_entry(syncedmem_status_t status)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (entries[i].status == status)
            return &entries[i];
    return &unknown;
}

const char *syncedmem_status_name(syncedmem_status_t status)
{
    return find_entry(status)->name;
}

const char *syncedmem_status_text(syncedmem_status_t status)
{
    return find_entry(status)->text;
}
