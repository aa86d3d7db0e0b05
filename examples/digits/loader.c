/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader.h"

#include <stdio.h>

#include "try.h"

/* ---- The thread ---- */

/*
 * Pushed on the loader's stream, so that it overlaps with kernels on the default stream. No one
 * waits for it here: what asks for the batch on the device does, if it has not arrived by then.
 * Kernels that still read what was in this batch before are not overtaken: the library knows that
 * gpu_data() gave the pointer out, and has the push wait for the default stream.
 */
static syncedmem_status_t prepare(struct loader *loader, struct batch *batch)
{
    TRY(source_fill(loader->source, batch));
    return loader->stream ? syncedmem_async_gpu_push(batch->buffer, loader->stream) : SYNCEDMEM_OK;
}

/* False when the thread is to end. */
static bool wait_for_room(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    while (!loader->stops && loader->prepared - loader->done > loader->ahead)
        pthread_cond_wait(&loader->is_done, &loader->lock);
    const bool goes_on = !loader->stops;
    pthread_mutex_unlock(&loader->lock);
    return goes_on;
}

static void hand_over(struct loader *loader, syncedmem_status_t status)
{
    pthread_mutex_lock(&loader->lock);
    if (status == SYNCEDMEM_OK)
        loader->prepared++;
    else /* the last error is one of this thread */
        snprintf(loader->error, sizeof loader->error, "%s", syncedmem_last_error());
    loader->status = status;
    pthread_cond_signal(&loader->is_prepared);
    pthread_mutex_unlock(&loader->lock);
}

static void *run(void *context)
{
    struct loader *loader = context;
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (uint64_t i = 0; i < loader->count && !status && wait_for_room(loader); i++) {
        status = prepare(loader, &loader->ring[i % (loader->ahead + 1)]);
        hand_over(loader, status);
    }
    return NULL;
}

/* ---- Life ---- */

static syncedmem_status_t start(struct loader *loader)
{
    loader->has_thread = pthread_create(&loader->thread, NULL, run, loader) == 0;
    loader->has_failed = !loader->has_thread;
    if (loader->has_thread)
        return SYNCEDMEM_OK;
    snprintf(loader->error, sizeof loader->error, "no thread to prepare batches");
    return SYNCEDMEM_OUT_OF_HOST_MEMORY;
}

syncedmem_status_t loader_create(const struct device *device, struct source *source,
                                 uint32_t digits, uint32_t ahead, uint64_t count,
                                 struct loader *out_loader)
{
    *out_loader = (struct loader){
        .source = source,
        .ahead = ahead,
        .count = count,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .is_prepared = PTHREAD_COND_INITIALIZER,
        .is_done = PTHREAD_COND_INITIALIZER,
    };
    for (uint32_t i = 0; i <= ahead; i++)
        TRY(batch_create(digits, &out_loader->ring[i]));
    if (ahead == 0)
        return SYNCEDMEM_OK;
    if (device->stream)
        TRY(syncedmem_stream_create(device->place, &out_loader->stream));
    return start(out_loader);
}

void loader_release(struct loader *loader)
{
    if (loader->has_thread) {
        pthread_mutex_lock(&loader->lock);
        loader->stops = true;
        pthread_cond_signal(&loader->is_done);
        pthread_mutex_unlock(&loader->lock);
        pthread_join(loader->thread, NULL);
        loader->has_thread = false;
    }
    for (uint32_t i = 0; i <= loader->ahead; i++)
        batch_release(&loader->ring[i]);
    syncedmem_stream_release(loader->stream);
    loader->stream = NULL;
}

/* ---- Use ---- */

syncedmem_status_t loader_next(struct loader *loader, const struct batch **out_batch)
{
    struct batch *next = &loader->ring[loader->done % (loader->ahead + 1)];
    *out_batch = next;
    if (!loader->has_thread)
        return source_fill(loader->source, next);
    pthread_mutex_lock(&loader->lock);
    while (!loader->status && loader->prepared == loader->done)
        pthread_cond_wait(&loader->is_prepared, &loader->lock);
    loader->has_failed = loader->prepared == loader->done;
    pthread_mutex_unlock(&loader->lock);
    return loader->has_failed ? loader->status : SYNCEDMEM_OK;
}

void loader_done(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->done++;
    pthread_cond_signal(&loader->is_done);
    pthread_mutex_unlock(&loader->lock);
}

const char *loader_error(const struct loader *loader)
{
    return loader->has_failed ? loader->error : NULL;
}
