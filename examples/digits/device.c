/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#include <stdlib.h>

#include "try.h"

static syncedmem_status_t choose(const char *name, struct device *device)
{
    if (name)
        return syncedmem_device_find(name, &device->place);
    const syncedmem_status_t status = syncedmem_device_current(&device->place);
    /* Who names a device in the environment wants that one and no other. */
    const char *wish = getenv("SYNCEDMEM_DEVICE");
    if (status != SYNCEDMEM_NO_DEVICE || (wish && *wish))
        return status;
    /* The library never takes a simulated device by itself: it has to be named. */
    device->is_stand_in = true;
    return syncedmem_device_find("sim:0", &device->place);
}

syncedmem_status_t device_open(const char *name, struct device *out_device)
{
    *out_device = (struct device){0};
    TRY(choose(name, out_device));
    if (out_device->place != syncedmem_host()) {
        TRY(syncedmem_device_set_current(out_device->place));
        /* The default stream: kernels and transfers of the plain calls are in one order there. */
        TRY(syncedmem_stream_default(out_device->place, &out_device->stream));
    }
    return kernels_open(out_device->place, out_device->stream, &out_device->kernels);
}

void device_close(struct device *device)
{
    kernels_close(device->kernels);
    syncedmem_stream_release(device->stream);
    *device = (struct device){0};
}

syncedmem_status_t device_traffic(struct traffic *out_traffic)
{
    TRY(syncedmem_stat(NULL, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE, &out_traffic->to_device));
    TRY(syncedmem_stat(NULL, SYNCEDMEM_STAT_TRANSFERS_TO_HOST, &out_traffic->to_host));
    TRY(syncedmem_stat(NULL, SYNCEDMEM_STAT_BYTES_TO_DEVICE, &out_traffic->bytes_to_device));
    return syncedmem_stat(NULL, SYNCEDMEM_STAT_BYTES_TO_HOST, &out_traffic->bytes_to_host);
}
