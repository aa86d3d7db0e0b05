/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues, their worker threads, and the work that moves no bytes.
 *
 * A stream lives until its worker has been joined. Whoever makes or releases a stream joins
 * the workers that have ended meanwhile, and the device joins the rest.
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
    if (operation->event != NULL)
        syncedmem_engine_event_release(operation->event);
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

static enum engine_result run_in_time(struct engine_operation *operation)
{
    return operation->least_ns == 0 ? operation->run(operation) : run_at_least(operation);
}

static void run(struct engine_operation *operation)
{
    enum engine_result result = run_in_time(operation);
    if (operation->event != NULL)
        syncedmem_engine_event_finish(operation->event, result);
    syncedmem_engine_operation_discard(operation);
}

/* ---- The queue ---- */

void syncedmem_engine_stream_put(struct engine_stream *stream, struct engine_operation *operation,
                                 struct engine_event **out_event)
{
    /* Before it is on the queue: from then on the worker may free it at any moment. */
    if (out_event != NULL) {
        syncedmem_engine_event_retain(operation->event);
        *out_event = operation->event;
    }
    pthread_mutex_lock(&stream->lock);
    *stream->last = operation;
    stream->last = &operation->next;
    stream->submitted++;
    atomic_store_explicit(&stream->empty, false, memory_order_relaxed);
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
}

/* The next operation; NULL when there will be none. The stream's lock is held. */
static struct engine_operation *take(struct engine_stream *stream)
{
    while (stream->lent || (stream->first == NULL && !stream->released))
        pthread_cond_wait(&stream->work, &stream->lock);
    struct engine_operation *operation = stream->first;
    if (operation == NULL)
        return NULL;
    stream->first = operation->next;
    if (stream->first == NULL) {
        stream->last = &stream->first;
        atomic_store_explicit(&stream->empty, true, memory_order_relaxed);
    }
    return operation;
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
        run(operation);
        pthread_mutex_lock(&stream->lock);
        stream->completed++;
        if (stream->waiting != 0)
            pthread_cond_broadcast(&stream->done);
        pthread_mutex_unlock(&stream->lock);
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

static void discard(struct engine_stream *stream)
{
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
    stream->last = &stream->first;
    atomic_init(&stream->ended, false);
    atomic_init(&stream->empty, true);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->done, NULL);
    if (start_worker(stream))
        return stream;
    discard(stream);
    return NULL;
}

/* Takes the streams whose workers have ended off the list. The device's lock is held. */
static struct engine_stream *take_ended(struct engine_device *device)
{
    struct engine_stream *ended = NULL;
    struct engine_stream **link = &device->streams;
    while (*link != NULL) {
        struct engine_stream *stream = *link;
        if (atomic_load_explicit(&stream->ended, memory_order_acquire)) {
            *link = stream->next;
            stream->next = ended;
            ended = stream;
        } else {
            link = &stream->next;
        }
    }
    return ended;
}

static void join_all(struct engine_stream *stream)
{
    while (stream != NULL) {
        struct engine_stream *next = stream->next;
        pthread_join(stream->worker, NULL);
        discard(stream);
        stream = next;
    }
}

/* The device's lock is held. */
static struct engine_stream *start_listed(struct engine_device *device)
{
    struct engine_stream *stream = start(device);
    if (stream == NULL)
        return NULL;
    stream->next = device->streams;
    device->streams = stream;
    return stream;
}

enum engine_result syncedmem_engine_stream_create(struct engine_device *device,
                                                  struct engine_stream **out_stream)
{
    int kept = errno;
    pthread_mutex_lock(&device->lock);
    struct engine_stream *ended = take_ended(device);
    *out_stream = start_listed(device);
    pthread_mutex_unlock(&device->lock);
    join_all(ended);
    errno = kept;
    return *out_stream != NULL ? ENGINE_OK : ENGINE_HOST_MEMORY;
}

enum engine_result syncedmem_engine_stream_default(struct engine_device *device,
                                                   struct engine_stream **out_stream)
{
    int kept = errno;
    pthread_mutex_lock(&device->lock);
    if (device->default_stream == NULL)
        device->default_stream = start_listed(device);
    *out_stream = device->default_stream;
    pthread_mutex_unlock(&device->lock);
    errno = kept;
    return *out_stream != NULL ? ENGINE_OK : ENGINE_HOST_MEMORY;
}

static void let_end(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->released = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
}

void syncedmem_engine_stream_release(struct engine_stream *stream)
{
    int kept = errno;
    struct engine_device *device = stream->device;
    /* Under the device's lock no one else can join this worker and free what we are using. */
    pthread_mutex_lock(&device->lock);
    struct engine_stream *ended = take_ended(device);
    let_end(stream);
    pthread_mutex_unlock(&device->lock);
    join_all(ended);
    errno = kept;
}

void syncedmem_engine_streams_end(struct engine_device *device)
{
    for (struct engine_stream *stream = device->streams; stream != NULL; stream = stream->next)
        let_end(stream);
    join_all(device->streams);
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
    stream->completed++;
    stream->lent = false;
    if (stream->first != NULL || stream->released)
        pthread_cond_signal(&stream->work);
    if (stream->waiting != 0)
        pthread_cond_broadcast(&stream->done);
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
    if (!borrow(stream))
        return put_and_wait(stream, operation);
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

static bool has_completed(struct engine_stream *stream, uint64_t count)
{
    pthread_mutex_lock(&stream->lock);
    bool completed = stream->completed >= count;
    pthread_mutex_unlock(&stream->lock);
    return completed;
}

enum engine_result syncedmem_engine_stream_synchronize(struct engine_stream *stream)
{
    uint64_t target = submitted(stream);
    for (int i = 0; i < ENGINE_PATIENCE; i++) {
        if (has_completed(stream, target))
            return ENGINE_OK;
        sched_yield();
    }
    pthread_mutex_lock(&stream->lock);
    stream->waiting++;
    while (stream->completed < target)
        pthread_cond_wait(&stream->done, &stream->lock);
    stream->waiting--;
    pthread_mutex_unlock(&stream->lock);
    return ENGINE_OK;
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
    if (has_completed(stream, submitted(stream))) {
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
    if (out_event == NULL)
        return ENGINE_OK;
    int kept = errno;
    *out_event = NULL;
    enum engine_result result = record(stream, out_event);
    errno = kept;
    return result;
}

struct wait {
    struct engine_operation operation;
    struct engine_event *event; /* owned */
};

static enum engine_result run_wait(struct engine_operation *operation)
{
    struct wait *wait = (struct wait *)operation;
    syncedmem_engine_event_wait(wait->event);
    syncedmem_engine_event_release(wait->event);
    return ENGINE_OK;
}

enum engine_result syncedmem_engine_stream_wait_event(struct engine_stream *stream,
                                                      struct engine_event *event)
{
    if (syncedmem_engine_event_query(event) != ENGINE_PENDING)
        return ENGINE_OK;
    int kept = errno;
    struct wait *wait = (struct wait *)syncedmem_engine_operation_create(sizeof *wait, false);
    errno = kept;
    if (wait == NULL)
        return ENGINE_HOST_MEMORY;
    wait->operation.run = run_wait;
    wait->event = event;
    syncedmem_engine_event_retain(event);
    syncedmem_engine_stream_put(stream, &wait->operation, NULL);
    return ENGINE_OK;
}

/* ---- Kernels ---- */

struct launch {
    struct engine_operation operation;
    engine_kernel_fn kernel;
    void *arguments; /* the caller's, or a copy at the end of this block */
    size_t count;
    void *addresses[]; /* translated */
};

static enum engine_result run_launch(struct engine_operation *operation)
{
    struct launch *launch = (struct launch *)operation;
    launch->kernel(launch->arguments, launch->addresses, launch->count);
    return ENGINE_OK;
}

static bool launch_addresses_valid(struct engine_device *device, const void *const *addresses,
                                   size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (addresses[i] != NULL && !syncedmem_engine_holds(device, addresses[i], 1))
            return false;
    return true;
}

/* Where the copied arguments start: at the end, aligned for anything. */
static size_t launch_size(size_t count)
{
    size_t unit = _Alignof(max_align_t);
    size_t size = sizeof(struct launch) + count * sizeof(void *);
    return (size + unit - 1) / unit * unit;
}

static struct launch *launch_create(size_t count, const void *arguments, size_t arguments_size,
                                    bool with_event)
{
    if (count > SIZE_MAX / 4 / sizeof(void *) || arguments_size > SIZE_MAX / 2)
        return NULL;
    size_t size = launch_size(count);
    struct launch *launch =
        (struct launch *)syncedmem_engine_operation_create(size + arguments_size, with_event);
    if (launch == NULL)
        return NULL;
    launch->arguments = (void *)(uintptr_t)arguments;
    if (arguments_size != 0)
        launch->arguments = memcpy((unsigned char *)launch + size, arguments, arguments_size);
    return launch;
}

enum engine_result syncedmem_engine_launch(struct engine_stream *stream, engine_kernel_fn kernel,
                                           const void *arguments, size_t arguments_size,
                                           const void *const *addresses, size_t count,
                                           struct engine_event **out_event)
{
    struct engine_device *device = stream->device;
    if (out_event != NULL)
        *out_event = NULL;
    if (!launch_addresses_valid(device, addresses, count))
        return ENGINE_BAD_ADDRESS;
    int kept = errno;
    struct launch *launch = launch_create(count, arguments, arguments_size, out_event != NULL);
    errno = kept;
    if (launch == NULL)
        return ENGINE_HOST_MEMORY;
    launch->operation.run = run_launch;
    launch->operation.least_ns = device->settings.launch_ns;
    launch->kernel = kernel;
    launch->count = count;
    for (size_t i = 0; i < count; i++)
        launch->addresses[i] =
            addresses[i] != NULL ? syncedmem_engine_translate(device, addresses[i]) : NULL;
    syncedmem_engine_stream_put(stream, &launch->operation, out_event);
    return ENGINE_OK;
}
