/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues, their worker threads, and the order between them.
 *
 * A stream lives until its worker has been joined, which leaves when the stream is released, or lost
 * with its device. Whoever makes or releases a stream, or brings a device back, joins the workers
 * that have ended meanwhile, and the device joins the rest.
 */
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* ---- Operations ---- */

struct engine_operation *syncedmem_engine_operation_create(size_t size, bool with_event)
{
    struct engine_operation *operation = malloc(size);
    if (operation == NULL)
        return NULL;
    *operation = (struct engine_operation){0};
    if (!with_event)
        return operation;
    operation->event = syncedmem_engine_event_create(ENGINE_PENDING);
    if (operation->event != NULL)
        return operation;
    free(operation);
    return NULL;
}

void syncedmem_engine_operation_discard(struct engine_operation *operation)
{
    if (operation->discard != NULL)
        operation->discard(operation);
    if (operation->event != NULL)
        syncedmem_engine_event_release(operation->event);
    if (operation->after != NULL)
        syncedmem_engine_event_release(operation->after);
    free(operation);
}

static struct timespec later(struct timespec time, uint64_t ns)
{
    const uint64_t second = 1000000000u;
    uint64_t fraction = (uint64_t)time.tv_nsec + ns % second;
    time.tv_sec += (time_t)(ns / second + fraction / second);
    time.tv_nsec = (long)(fraction % second);
    return time;
}

static enum engine_result run_at_least(struct engine_operation *operation)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    enum engine_result result = operation->run(operation);
    struct timespec end = later(start, operation->least_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        continue;
    return result;
}

/* With a seed only the order counts. */
static enum engine_result run_in_time(struct engine_operation *operation)
{
    if (syncedmem_engine_stream_lost(operation->stream))
        return ENGINE_LOST;
    bool at_once = operation->least_ns == 0 || operation->stream->scheduled;
    return at_once ? operation->run(operation) : run_at_least(operation);
}

static void end(struct engine_operation *operation, enum engine_result result)
{
    if (operation->event != NULL)
        syncedmem_engine_event_finish(operation->event, result);
    syncedmem_engine_operation_discard(operation);
}

/* ---- The queue ---- */

/* False: the worker has left with its device. */
static bool append(struct engine_stream *stream, struct engine_operation *operation)
{
    pthread_mutex_lock(&stream->lock);
    bool open = !stream->closed;
    if (open) {
        *stream->last = operation;
        stream->last = &operation->next;
        stream->submitted++;
        atomic_store_explicit(&stream->empty, false, memory_order_relaxed);
        pthread_cond_signal(&stream->work);
    }
    pthread_mutex_unlock(&stream->lock);
    return open;
}

void syncedmem_engine_stream_put(struct engine_stream *stream, struct engine_operation *operation,
                                 struct engine_event **out_event)
{
    bool scheduled = stream->scheduled;
    operation->stream = stream;
    if (operation->event != NULL)
        operation->event->scheduled = scheduled;
    /* Before it is on the queue: from then on the worker may free it at any moment. */
    if (out_event != NULL) {
        syncedmem_engine_event_retain(operation->event);
        *out_event = operation->event;
    }
    if (!append(stream, operation))
        end(operation, ENGINE_LOST);
    else if (scheduled)
        syncedmem_engine_schedule_some();
}

/* The stream's lock is held. */
static struct engine_operation *pop_all(struct engine_stream *stream)
{
    struct engine_operation *first = stream->first;
    stream->first = NULL;
    stream->last = &stream->first;
    atomic_store_explicit(&stream->empty, true, memory_order_relaxed);
    return first;
}

struct engine_operation *syncedmem_engine_stream_pop(struct engine_stream *stream)
{
    struct engine_operation *operation = stream->first;
    if (operation == NULL || operation->next == NULL)
        return pop_all(stream);
    stream->first = operation->next;
    return operation;
}

/* One has ended, and with it those that were dropped behind it. The stream's lock is held. */
static void complete(struct engine_stream *stream)
{
    stream->completed += 1 + stream->dropped;
    stream->dropped = 0;
    if (stream->waiting != 0)
        pthread_cond_broadcast(&stream->done);
}

void syncedmem_engine_stream_run(struct engine_stream *stream, struct engine_operation *operation)
{
    end(operation, run_in_time(operation));
    pthread_mutex_lock(&stream->lock);
    complete(stream);
    pthread_mutex_unlock(&stream->lock);
}

/* The stream's lock is held. */
static void drop(struct engine_stream *stream)
{
    uint64_t dropped = 0;
    struct engine_operation *next;
    for (struct engine_operation *operation = pop_all(stream); operation != NULL;
         operation = next) {
        next = operation->next;
        end(operation, ENGINE_LOST);
        dropped++;
    }
    bool one_runs = stream->submitted - stream->completed - stream->dropped > dropped;
    stream->dropped += dropped;
    if (one_runs)
        return;
    stream->completed += stream->dropped;
    stream->dropped = 0;
    if (stream->waiting != 0)
        pthread_cond_broadcast(&stream->done);
}

void syncedmem_engine_stream_drop(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    drop(stream);
    if (stream->awaited != NULL)
        syncedmem_engine_event_wake(stream->awaited);
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
}

/* ---- Workers ---- */

static bool will_get_more(struct engine_stream *stream)
{
    return !stream->released && !atomic_load_explicit(&stream->lost, memory_order_relaxed);
}

/* The next operation; NULL when there will be none. The stream's lock is held. */
static struct engine_operation *take(struct engine_stream *stream)
{
    while (stream->lent || (stream->first == NULL && will_get_more(stream)))
        pthread_cond_wait(&stream->work, &stream->lock);
    stream->closed = stream->first == NULL;
    return syncedmem_engine_left() ? NULL : syncedmem_engine_stream_pop(stream);
}

static void wait_briefly(struct engine_stream *stream)
{
    for (int i = 0; i < ENGINE_PATIENCE; i++) {
        if (!atomic_load_explicit(&stream->empty, memory_order_relaxed))
            return;
        sched_yield();
    }
}

static void work_off(struct engine_stream *stream)
{
    struct engine_operation *operation;
    pthread_mutex_lock(&stream->lock);
    while ((operation = take(stream)) != NULL) {
        pthread_mutex_unlock(&stream->lock);
        syncedmem_engine_stream_run(stream, operation);
        wait_briefly(stream);
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
}

static void *worker_main(void *argument)
{
    struct engine_stream *stream = argument;
    /* Costs are sleeps: without this they would take 50 microseconds more than asked for. */
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    work_off(stream);
    atomic_store_explicit(&stream->ended, true, memory_order_release);
    return NULL;
}

/* ---- Life of a stream ---- */

/* Signals go to threads of the program, never to a worker. */
static bool start_worker(struct engine_stream *stream)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&stream->worker, NULL, worker_main, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(stream->worker, "syncedmem-sim");
    return error == 0;
}

void syncedmem_engine_stream_discard(struct engine_stream *stream)
{
    drop(stream);
    pthread_cond_destroy(&stream->done);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static struct engine_stream *start(struct engine_device *device)
{
    struct engine_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->device = device;
    stream->scheduled = device->settings.seed != 0;
    stream->last = &stream->first;
    atomic_init(&stream->ended, false);
    atomic_init(&stream->lost, false);
    atomic_init(&stream->empty, true);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->done, NULL);
    if (stream->scheduled || start_worker(stream))
        return stream;
    syncedmem_engine_stream_discard(stream);
    return NULL;
}

/* Once. The device's lock is held, unless no one else is there. */
static void join(struct engine_stream *stream)
{
    if (!stream->joined)
        pthread_join(stream->worker, NULL);
    stream->joined = true;
}

/* Joins the workers that have ended, and takes the streams that no one holds any more off the list. The
 * device's lock is held. */
static struct engine_stream *take_ended(struct engine_device *device)
{
    struct engine_stream *ended = NULL;
    struct engine_stream **link = &device->streams;
    while (*link != NULL) {
        struct engine_stream *stream = *link;
        bool has_ended = atomic_load_explicit(&stream->ended, memory_order_acquire);
        if (has_ended)
            join(stream);
        if (has_ended && stream->released) {
            *link = stream->next;
            stream->next = ended;
            ended = stream;
        } else {
            link = &stream->next;
        }
    }
    return ended;
}

static void discard_all(struct engine_stream *stream)
{
    while (stream != NULL) {
        struct engine_stream *next = stream->next;
        join(stream);
        syncedmem_engine_stream_discard(stream);
        stream = next;
    }
}

void syncedmem_engine_streams_tidy(struct engine_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct engine_stream *ended = take_ended(device);
    pthread_mutex_unlock(&device->lock);
    discard_all(ended);
}

void syncedmem_engine_stream_unlist(struct engine_stream *stream)
{
    struct engine_stream **link = &stream->device->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
}

/* The device's lock is held. */
static enum engine_result start_listed(struct engine_device *device,
                                       struct engine_stream **out_stream)
{
    *out_stream = NULL;
    if (syncedmem_engine_is_lost(device))
        return ENGINE_LOST;
    struct engine_stream *stream = start(device);
    if (stream == NULL)
        return ENGINE_HOST_MEMORY;
    stream->next = device->streams;
    device->streams = stream;
    *out_stream = stream;
    return ENGINE_OK;
}

enum engine_result syncedmem_engine_stream_create(struct engine_device *device,
                                                  struct engine_stream **out_stream)
{
    int kept = errno;
    syncedmem_engine_schedule_lock(device);
    pthread_mutex_lock(&device->lock);
    struct engine_stream *ended = take_ended(device);
    enum engine_result result = start_listed(device, out_stream);
    pthread_mutex_unlock(&device->lock);
    syncedmem_engine_schedule_unlock(device, *out_stream);
    discard_all(ended);
    if (result == ENGINE_LOST)
        syncedmem_engine_await_loss(device);
    errno = kept;
    return result;
}

/* Makes it where it is not there. The device's lock is held. */
static enum engine_result make_default(struct engine_device *device,
                                       struct engine_stream **out_made)
{
    *out_made = NULL;
    if (device->default_stream != NULL)
        return syncedmem_engine_is_lost(device) ? ENGINE_LOST : ENGINE_OK;
    enum engine_result result = start_listed(device, out_made);
    device->default_stream = *out_made;
    return result;
}

enum engine_result syncedmem_engine_stream_default(struct engine_device *device,
                                                   struct engine_stream **out_stream)
{
    int kept = errno;
    struct engine_stream *made;
    syncedmem_engine_schedule_lock(device);
    pthread_mutex_lock(&device->lock);
    enum engine_result result = make_default(device, &made);
    *out_stream = result == ENGINE_OK ? device->default_stream : NULL;
    pthread_mutex_unlock(&device->lock);
    syncedmem_engine_schedule_unlock(device, made);
    if (result == ENGINE_LOST)
        syncedmem_engine_await_loss(device);
    errno = kept;
    return result;
}

static void let_end(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->released = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
}

static void release_worker(struct engine_stream *stream)
{
    struct engine_device *device = stream->device;
    /* Under the device's lock no one else can join this worker and free what we are using. */
    pthread_mutex_lock(&device->lock);
    struct engine_stream *ended = take_ended(device);
    let_end(stream);
    pthread_mutex_unlock(&device->lock);
    discard_all(ended);
}

void syncedmem_engine_stream_release(struct engine_stream *stream)
{
    int kept = errno;
    if (stream->scheduled)
        syncedmem_engine_schedule_release(stream);
    else
        release_worker(stream);
    errno = kept;
}

void syncedmem_engine_streams_end(struct engine_device *device)
{
    for (struct engine_stream *stream = device->streams; stream != NULL; stream = stream->next)
        let_end(stream);
    discard_all(device->streams);
}

/* ---- Work done by the caller ---- */

/* Only an idle stream: what is on a queue comes first. */
static bool borrow(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool idle = stream->completed == stream->submitted;
    if (idle) {
        stream->submitted++;
        stream->lent = true;
    }
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

static void give_back(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    complete(stream);
    stream->lent = false;
    if (stream->first != NULL || !will_get_more(stream))
        pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
}

static enum engine_result put_and_wait(struct engine_stream *stream,
                                       struct engine_operation *operation)
{
    struct engine_event *event;
    operation->event = syncedmem_engine_event_create(ENGINE_PENDING);
    if (operation->event == NULL) {
        syncedmem_engine_operation_discard(operation);
        return ENGINE_HOST_MEMORY;
    }
    syncedmem_engine_stream_put(stream, operation, &event);
    enum engine_result result = syncedmem_engine_event_wait(event);
    syncedmem_engine_event_release(event);
    return result;
}

enum engine_result syncedmem_engine_stream_do(struct engine_stream *stream,
                                              struct engine_operation *operation)
{
    if (stream->scheduled || !borrow(stream))
        return put_and_wait(stream, operation);
    operation->stream = stream;
    enum engine_result result = run_in_time(operation);
    give_back(stream);
    syncedmem_engine_operation_discard(operation);
    return result;
}

/* ---- Waiting for a stream ---- */

static uint64_t submitted(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    uint64_t count = stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    return count;
}

bool syncedmem_engine_stream_completed(struct engine_stream *stream, uint64_t count)
{
    pthread_mutex_lock(&stream->lock);
    bool completed = stream->completed >= count;
    pthread_mutex_unlock(&stream->lock);
    return completed;
}

static void wait_until(struct engine_stream *stream, uint64_t target)
{
    for (int i = 0; i < ENGINE_PATIENCE; i++) {
        if (syncedmem_engine_stream_completed(stream, target))
            return;
        sched_yield();
    }
    pthread_mutex_lock(&stream->lock);
    stream->waiting++;
    while (stream->completed < target)
        pthread_cond_wait(&stream->done, &stream->lock);
    stream->waiting--;
    pthread_mutex_unlock(&stream->lock);
}

enum engine_result syncedmem_engine_stream_synchronize(struct engine_stream *stream)
{
    uint64_t target = submitted(stream);
    if (stream->scheduled)
        syncedmem_engine_schedule_stream(stream, target);
    else
        wait_until(stream, target);
    return syncedmem_engine_stream_lost(stream) ? ENGINE_LOST : ENGINE_OK;
}

/* ---- Events of a stream ---- */

static enum engine_result run_nothing(struct engine_operation *operation)
{
    (void)operation;
    return ENGINE_OK;
}

static enum engine_result record(struct engine_stream *stream, struct engine_event **out_event)
{
    /* Nothing to come after: spares the worker being woken. */
    if (syncedmem_engine_stream_completed(stream, submitted(stream))) {
        *out_event = syncedmem_engine_event_create(ENGINE_OK);
        return *out_event != NULL ? ENGINE_OK : ENGINE_HOST_MEMORY;
    }
    struct engine_operation *operation = syncedmem_engine_operation_create(sizeof *operation, true);
    if (operation == NULL)
        return ENGINE_HOST_MEMORY;
    operation->run = run_nothing;
    syncedmem_engine_stream_put(stream, operation, out_event);
    return ENGINE_OK;
}

enum engine_result syncedmem_engine_record(struct engine_stream *stream,
                                           struct engine_event **out_event)
{
    if (out_event != NULL)
        *out_event = NULL;
    if (syncedmem_engine_stream_lost(stream))
        return ENGINE_LOST;
    if (out_event == NULL)
        return ENGINE_OK;
    int kept = errno;
    enum engine_result result = record(stream, out_event);
    errno = kept;
    return result;
}

static void set_awaited(struct engine_stream *stream, struct engine_event *event)
{
    pthread_mutex_lock(&stream->lock);
    stream->awaited = event;
    pthread_mutex_unlock(&stream->lock);
}

/* With a seed it has ended when this runs. */
static enum engine_result run_wait(struct engine_operation *operation)
{
    struct engine_stream *stream = operation->stream;
    set_awaited(stream, operation->after);
    syncedmem_engine_event_wait_on(operation->after, stream);
    set_awaited(stream, NULL);
    return ENGINE_OK;
}

enum engine_result syncedmem_engine_stream_wait_event(struct engine_stream *stream,
                                                      struct engine_event *event)
{
    if (syncedmem_engine_stream_lost(stream))
        return ENGINE_LOST;
    if (syncedmem_engine_event_result(event) != ENGINE_PENDING)
        return ENGINE_OK;
    int kept = errno;
    struct engine_operation *wait = syncedmem_engine_operation_create(sizeof *wait, false);
    errno = kept;
    if (wait == NULL)
        return ENGINE_HOST_MEMORY;
    wait->run = run_wait;
    wait->after = event;
    syncedmem_engine_event_retain(event);
    syncedmem_engine_stream_put(stream, wait, NULL);
    return ENGINE_OK;
}
