/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The backend without devices: what a machine without any driver has, and the template of a
 * new backend. Copy this folder, add the table to places/backends.c, and fill in:
 *
 *   open           opens the driver by its versioned soname, looks every symbol up, finds the
 *                  devices. Called once. A failure sets the last error to the reason, in one line.
 *   device_count   how many were found, device_at each of them. Only after open() succeeded, and
 *   and the rest   then with devices, streams, events and memory of this backend only. That is why
 *                  nothing but discovery is filled in here: without a device it is never called.
 */
#include "backends/none/none.h"
#include "base/error.h"

static syncedmem_status_t none_open(void)
{
    return syncedmem_error(SYNCEDMEM_NO_DEVICE, "backend none has no devices");
}

static size_t none_device_count(void)
{
    return 0;
}

static struct backend_device *none_device_at(size_t index)
{
    (void)index;
    return NULL;
}

static bool none_wanted(void)
{
    return false;
}

static void none_classify(const void *address, struct memory_facts *out_facts)
{
    (void)address;
    *out_facts = (struct memory_facts){.kind = MEMORY_UNKNOWN};
}

const struct backend syncedmem_backend_none = {
    .name = "none",
    .by_name_only = true,
    .open = none_open,
    .device_count = none_device_count,
    .device_at = none_device_at,
    .wanted = none_wanted,
    .classify = none_classify,
};
