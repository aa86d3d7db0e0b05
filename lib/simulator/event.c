/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion of one operation.
 *
 * An event has a lock of its own, so that it needs neither its stream nor its device.
 * The result is atomic as well: whoever asks after the end takes no lock.
 */
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

struct engine_event *syncedmem_engine_event_create(enum engine_result result)
{
    struct engine_event *event = malloc(sizeof *event);
    if (event == NULL)
        return NULL;
    atomic_init(&event->references, 1u);
    atomic_init(&event->result, (int)result);
    event->scheduled = false;
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->ended, NULL);
    return event;
}

void syncedmem_engine_event_retain(struct engine_event *event)
{
    atomic_fetch_add_explicit(&event->references, 1u, memory_order_relaxed);
}

void syncedmem_engine_event_release(struct engine_event *event)
{
    if (atomic_fetch_sub_explicit(&event->references, 1u, memory_order_acq_rel) != 1)
        return;
    int kept = errno;
    pthread_cond_destroy(&event->ended);
    pthread_mutex_destroy(&event->lock);
    free(event);
    errno = kept;
}

enum engine_result syncedmem_engine_event_result(struct engine_event *event)
{
    return (enum engine_result)atomic_load_explicit(&event->result, memory_order_acquire);
}

enum engine_result syncedmem_engine_event_query(struct engine_event *event)
{
    enum engine_result result = syncedmem_engine_event_result(event);
    if (result != ENGINE_PENDING || !event->scheduled)
        return result;
    syncedmem_engine_schedule_some();
    return syncedmem_engine_event_result(event);
}

static enum engine_result wait_briefly(struct engine_event *event)
{
    enum engine_result result = syncedmem_engine_event_result(event);
    for (int i = 0; i < ENGINE_PATIENCE && result == ENGINE_PENDING; i++) {
        sched_yield();
        result = syncedmem_engine_event_result(event);
    }
    return result;
}

static bool is_lost(struct engine_stream *stream)
{
    return stream != NULL && atomic_load_explicit(&stream->lost, memory_order_acquire);
}

void syncedmem_engine_event_wait_on(struct engine_event *event, struct engine_stream *stream)
{
    if (wait_briefly(event) != ENGINE_PENDING)
        return;
    pthread_mutex_lock(&event->lock);
    while (syncedmem_engine_event_result(event) == ENGINE_PENDING && !is_lost(stream))
        pthread_cond_wait(&event->ended, &event->lock);
    pthread_mutex_unlock(&event->lock);
}

enum engine_result syncedmem_engine_event_wait(struct engine_event *event)
{
    if (event->scheduled)
        syncedmem_engine_schedule_event(event);
    else
        syncedmem_engine_event_wait_on(event, NULL);
    return syncedmem_engine_event_result(event);
}

void syncedmem_engine_event_wake(struct engine_event *event)
{
    pthread_mutex_lock(&event->lock);
    pthread_cond_broadcast(&event->ended);
    pthread_mutex_unlock(&event->lock);
}

void syncedmem_engine_event_finish(struct engine_event *event, enum engine_result result)
{
    pthread_mutex_lock(&event->lock);
    atomic_store_explicit(&event->result, (int)result, memory_order_release);
    pthread_cond_broadcast(&event->ended);
    pthread_mutex_unlock(&event->lock);
}
