/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device is lost, and comes back.
 *
 * The caller of a call that says ENGINE_LOST takes everything on the device for ended, and frees
 * its host memory. So a loss has three steps: no copy begins any more; those that run come to their
 * end; then what is queued ends as lost, and the others are told. Kernels are not waited for:
 * they may wait for the program, and what they use stays mapped.
 */
#include "internal.h"

#include <errno.h>

static atomic_bool left;

void syncedmem_engine_leave(void)
{
    atomic_store_explicit(&left, true, memory_order_release);
}

bool syncedmem_engine_left(void)
{
    return atomic_load_explicit(&left, memory_order_acquire);
}

/* ---- Copies that run ---- */

bool syncedmem_engine_enter(struct engine_memory *memory)
{
    struct engine_device *device = memory->device;
    pthread_mutex_lock(&device->lock);
    bool entered = !memory->lost;
    if (entered)
        device->moving++;
    pthread_mutex_unlock(&device->lock);
    return entered;
}

void syncedmem_engine_leave_memory(struct engine_memory *memory)
{
    struct engine_device *device = memory->device;
    pthread_mutex_lock(&device->lock);
    if (--device->moving == 0 && device->losing)
        pthread_cond_broadcast(&device->still);
    pthread_mutex_unlock(&device->lock);
}

/* ---- Looking ---- */

void syncedmem_engine_await_loss(struct engine_device *device)
{
    pthread_mutex_lock(&device->lock);
    while (device->losing)
        pthread_cond_wait(&device->still, &device->lock);
    pthread_mutex_unlock(&device->lock);
}

bool syncedmem_engine_stream_lost(struct engine_stream *stream)
{
    if (!atomic_load_explicit(&stream->lost, memory_order_acquire))
        return false;
    syncedmem_engine_await_loss(stream->device);
    return true;
}

bool syncedmem_engine_device_lost(struct engine_device *device)
{
    if (!syncedmem_engine_is_lost(device))
        return false;
    syncedmem_engine_await_loss(device);
    return true;
}

bool syncedmem_engine_is_lost(const struct engine_device *device)
{
    return atomic_load_explicit(&device->lost, memory_order_acquire);
}

uint64_t syncedmem_engine_losses(const struct engine_device *device)
{
    return atomic_load_explicit(&device->losses, memory_order_acquire);
}

uint64_t syncedmem_engine_faults(const struct engine_device *device)
{
    return atomic_load_explicit(&device->faults, memory_order_relaxed);
}

/* ---- Losing ---- */

/* False: it is lost already. The device's lock is held. */
static bool begin_loss(struct engine_device *device)
{
    if (syncedmem_engine_is_lost(device))
        return false;
    device->losing = true;
    device->memory->lost = true;
    atomic_store_explicit(&device->lost, true, memory_order_release);
    for (struct engine_stream *stream = device->streams; stream != NULL; stream = stream->next)
        atomic_store_explicit(&stream->lost, true, memory_order_release);
    while (device->moving != 0)
        pthread_cond_wait(&device->still, &device->lock);
    return true;
}

static void drop_work(struct engine_device *device)
{
    if (device->settings.seed != 0) {
        syncedmem_engine_schedule_drop(device);
        return;
    }
    pthread_mutex_lock(&device->lock);
    for (struct engine_stream *stream = device->streams; stream != NULL; stream = stream->next)
        syncedmem_engine_stream_drop(stream);
    pthread_mutex_unlock(&device->lock);
}

static void end_loss(struct engine_device *device)
{
    pthread_mutex_lock(&device->lock);
    syncedmem_engine_memory_forget(device->memory);
    device->default_stream = NULL;
    atomic_fetch_add_explicit(&device->losses, 1, memory_order_acq_rel);
    device->losing = false;
    pthread_cond_broadcast(&device->still);
    pthread_mutex_unlock(&device->lock);
}

void syncedmem_engine_lose(struct engine_device *device)
{
    int kept = errno;
    pthread_mutex_lock(&device->lock);
    bool begun = begin_loss(device);
    pthread_mutex_unlock(&device->lock);
    if (begun) {
        drop_work(device);
        end_loss(device);
    } else {
        syncedmem_engine_await_loss(device);
    }
    errno = kept;
}

/* ---- Coming back ---- */

/* The device's lock is held. Opened before the old one is closed: at other addresses. */
static enum engine_result renew(struct engine_device *device)
{
    struct engine_memory *memory;
    while (device->losing)
        pthread_cond_wait(&device->still, &device->lock);
    if (!syncedmem_engine_is_lost(device))
        return ENGINE_REFUSED;
    enum engine_result result = syncedmem_engine_memory_open(device, &memory);
    if (result != ENGINE_OK)
        return result;
    syncedmem_engine_memory_release(device->memory);
    device->memory = memory;
    atomic_store_explicit(&device->lost, false, memory_order_release);
    return ENGINE_OK;
}

enum engine_result syncedmem_engine_restore(struct engine_device *device)
{
    int kept = errno;
    pthread_mutex_lock(&device->lock);
    enum engine_result result = renew(device);
    pthread_mutex_unlock(&device->lock);
    syncedmem_engine_streams_tidy(device); /* workers of before */
    errno = kept;
    return result;
}
