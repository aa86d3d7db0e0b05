/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failures on demand: a countdown for each kind, which is zero when nothing is asked for.
 */
#include "internal.h"

static bool count_down(uint64_t *countdown)
{
    return *countdown != 0 && --*countdown == 0;
}

bool syncedmem_engine_failure_due(struct engine_device *device, enum engine_failure what)
{
    pthread_mutex_lock(&device->lock);
    bool due = count_down(&device->countdown[what]);
    pthread_mutex_unlock(&device->lock);
    return due;
}

bool syncedmem_engine_loses_device(struct engine_device *device)
{
    if (!syncedmem_engine_failure_due(device, ENGINE_FAIL_DEVICE))
        return false;
    syncedmem_engine_lose(device);
    return true;
}

void syncedmem_engine_fail(struct engine_device *device, enum engine_failure what, uint64_t nth)
{
    pthread_mutex_lock(&device->lock);
    device->countdown[what] = nth;
    pthread_mutex_unlock(&device->lock);
}
