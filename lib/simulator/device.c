/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Life of a device.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blocks are cut in whole units, so the rest of an odd capacity could never be used. */
static bool usable_capacity(uint64_t bytes, size_t *out_capacity)
{
    *out_capacity = (size_t)bytes & ~(size_t)(ENGINE_ALIGNMENT - 1);
    return bytes <= PTRDIFF_MAX;
}

static struct engine_device *allocate(const struct engine_settings *settings)
{
    struct engine_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return NULL;
    device->settings = *settings;
    memcpy(device->countdown, settings->fail, sizeof device->countdown);
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->still, NULL);
    return device;
}

static void discard(struct engine_device *device)
{
    pthread_cond_destroy(&device->still);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static enum engine_result create(const struct engine_settings *settings,
                                 struct engine_device **out_device)
{
    struct engine_device *device = allocate(settings);
    if (device == NULL)
        return ENGINE_HOST_MEMORY;
    enum engine_result result = ENGINE_HOST_MEMORY;
    if (usable_capacity(settings->memory, &device->capacity))
        result = syncedmem_engine_memory_open(device, &device->memory);
    if (result != ENGINE_OK) {
        discard(device);
        return result;
    }
    if (settings->seed != 0)
        syncedmem_engine_schedule_join(device);
    *out_device = device;
    return ENGINE_OK;
}

enum engine_result syncedmem_engine_device_create(const struct engine_settings *settings,
                                                  struct engine_device **out_device)
{
    int kept = errno;
    *out_device = NULL;
    enum engine_result result = create(settings, out_device);
    errno = kept;
    return result;
}

void syncedmem_engine_device_destroy(struct engine_device *device)
{
    int kept = errno;
    if (device->settings.seed != 0) {
        syncedmem_engine_schedule_end(device);
        syncedmem_engine_schedule_quit();
    } else {
        syncedmem_engine_streams_end(device);
    }
    syncedmem_engine_memory_release(device->memory);
    discard(device);
    errno = kept;
}
