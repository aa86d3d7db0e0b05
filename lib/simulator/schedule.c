/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adversarial mode: the order of all that streams hold is thrown by dice.
 *
 * There are no workers. What is put on a stream stays there until a thread waits for something;
 * that thread then runs operations, each time of a stream picked at random among those of all
 * devices that can go on, until what it waits for has ended. So copies land as late as can be,
 * streams overtake one another, and yet each stream is worked off in order and no event is passed.
 * Now and then a submission or a question runs some as well: things may also be early.
 *
 * The dice are thrown for nothing else, and streams are looked at in the order they were made in:
 * the same seed and the same calls of one thread make the same order.
 *
 * One operation runs at a time. No lock is held meanwhile; others who wait, wait for its end. A
 * device with a seed takes no event of one without, nor the other way round.
 */
#include "internal.h"

#include <errno.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an operation has ended, or may begin */
    uint64_t dice;
    size_t devices;
    struct engine_stream *first; /* in the order they were made in */
    bool running;                /* an operation runs, without the lock */
} scheduler = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- Dice (splitmix64). The lock is held, as for all but the last part. ---- */

static uint64_t throw_dice(void)
{
    uint64_t z = scheduler.dice += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t limit)
{
    return throw_dice() % limit;
}

/* ---- Streams ---- */

static void unlink_stream(struct engine_stream *stream)
{
    struct engine_stream **link = &scheduler.first;
    while (*link != stream)
        link = &(*link)->scheduled_next;
    *link = stream->scheduled_next;
}

static bool holds_work(const struct engine_stream *stream)
{
    return stream->running || !atomic_load_explicit(&stream->empty, memory_order_relaxed);
}

static void end_stream(struct engine_stream *stream)
{
    struct engine_device *device = stream->device;
    unlink_stream(stream);
    pthread_mutex_lock(&device->lock);
    syncedmem_engine_stream_unlist(stream);
    pthread_mutex_unlock(&device->lock);
    syncedmem_engine_stream_discard(stream);
}

static bool can_go_on(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    const struct engine_operation *first = stream->first;
    bool can = first != NULL && (first->after == NULL ||
                                 syncedmem_engine_event_result(first->after) != ENGINE_PENDING);
    pthread_mutex_unlock(&stream->lock);
    return can;
}

static struct engine_stream *pick(void)
{
    uint64_t count = 0;
    struct engine_stream *stream;
    for (stream = scheduler.first; stream != NULL; stream = stream->scheduled_next)
        count += can_go_on(stream);
    if (count == 0)
        return NULL;
    uint64_t chosen = below(count);
    for (stream = scheduler.first; !can_go_on(stream) || chosen-- != 0;)
        stream = stream->scheduled_next;
    return stream;
}

/* ---- Operations ---- */

static void run_first(struct engine_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    struct engine_operation *operation = syncedmem_engine_stream_pop(stream);
    pthread_mutex_unlock(&stream->lock);
    stream->running = true;
    scheduler.running = true;
    pthread_mutex_unlock(&scheduler.lock);
    syncedmem_engine_stream_run(stream, operation);
    pthread_mutex_lock(&scheduler.lock);
    scheduler.running = false;
    stream->running = false;
    if (stream->released && !holds_work(stream))
        end_stream(stream);
    pthread_cond_broadcast(&scheduler.changed);
}

/* Runs one. False when none can, or none may begin any more, or another thread runs one. */
static bool step(void)
{
    if (scheduler.running || syncedmem_engine_left())
        return false;
    struct engine_stream *stream = pick();
    if (stream == NULL)
        return false;
    run_first(stream);
    return true;
}

/* What is waited for: an event, so many operations of a stream, or all of a device. */
struct goal {
    struct engine_event *event;
    struct engine_stream *stream;
    uint64_t count;
    struct engine_device *device;
};

static bool device_holds_work(const struct engine_device *device)
{
    for (struct engine_stream *stream = scheduler.first; stream; stream = stream->scheduled_next)
        if (stream->device == device && holds_work(stream))
            return true;
    return false;
}

static bool reached(const struct goal *goal)
{
    if (goal->event != NULL)
        return syncedmem_engine_event_result(goal->event) != ENGINE_PENDING;
    if (goal->stream != NULL)
        return syncedmem_engine_stream_completed(goal->stream, goal->count);
    return !device_holds_work(goal->device);
}

/* When nothing can go on here another thread runs an operation, or the process ends. */
static void run_until(const struct goal *goal)
{
    while (!reached(goal))
        if (!step())
            pthread_cond_wait(&scheduler.changed, &scheduler.lock);
}

static void run_until_reached(struct goal goal)
{
    int kept = errno;
    pthread_mutex_lock(&scheduler.lock);
    run_until(&goal);
    pthread_mutex_unlock(&scheduler.lock);
    errno = kept;
}

/* ---- For the rest of the engine: the lock is taken here ---- */

void syncedmem_engine_schedule_join(const struct engine_device *device)
{
    pthread_mutex_lock(&scheduler.lock);
    if (scheduler.devices++ == 0)
        scheduler.dice = device->settings.seed;
    pthread_mutex_unlock(&scheduler.lock);
}

void syncedmem_engine_schedule_quit(void)
{
    pthread_mutex_lock(&scheduler.lock);
    scheduler.devices--;
    pthread_mutex_unlock(&scheduler.lock);
}

static void append_stream(struct engine_stream *stream)
{
    struct engine_stream **link = &scheduler.first;
    while (*link != NULL)
        link = &(*link)->scheduled_next;
    *link = stream;
}

void syncedmem_engine_schedule_lock(const struct engine_device *device)
{
    if (device->settings.seed != 0)
        pthread_mutex_lock(&scheduler.lock);
}

void syncedmem_engine_schedule_unlock(const struct engine_device *device,
                                      struct engine_stream *made)
{
    if (device->settings.seed == 0)
        return;
    if (made != NULL)
        append_stream(made);
    pthread_mutex_unlock(&scheduler.lock);
}

void syncedmem_engine_schedule_release(struct engine_stream *stream)
{
    pthread_mutex_lock(&scheduler.lock);
    stream->released = true;
    if (!holds_work(stream))
        end_stream(stream);
    pthread_mutex_unlock(&scheduler.lock);
}

void syncedmem_engine_schedule_stream(struct engine_stream *stream, uint64_t count)
{
    run_until_reached((struct goal){.stream = stream, .count = count});
}

void syncedmem_engine_schedule_event(struct engine_event *event)
{
    if (syncedmem_engine_event_result(event) == ENGINE_PENDING)
        run_until_reached((struct goal){.event = event});
}

void syncedmem_engine_schedule_end(struct engine_device *device)
{
    if (!syncedmem_engine_left())
        run_until_reached((struct goal){.device = device});
    pthread_mutex_lock(&scheduler.lock);
    while (device->streams != NULL)
        end_stream(device->streams);
    pthread_mutex_unlock(&scheduler.lock);
}

void syncedmem_engine_schedule_drop(struct engine_device *device)
{
    pthread_mutex_lock(&scheduler.lock);
    struct engine_stream *next;
    for (struct engine_stream *stream = scheduler.first; stream != NULL; stream = next) {
        next = stream->scheduled_next;
        if (stream->device != device)
            continue;
        syncedmem_engine_stream_drop(stream);
        if (stream->released && !holds_work(stream))
            end_stream(stream);
    }
    pthread_cond_broadcast(&scheduler.changed);
    pthread_mutex_unlock(&scheduler.lock);
}

/* Mostly none, at times some. Another thread's operation is not waited for. */
void syncedmem_engine_schedule_some(void)
{
    int kept = errno;
    pthread_mutex_lock(&scheduler.lock);
    uint64_t wanted = below(3) == 0 ? 1 + below(3) : 0;
    while (wanted != 0 && step())
        wanted--;
    pthread_mutex_unlock(&scheduler.lock);
    errno = kept;
}

bool syncedmem_engine_schedule_chance(void)
{
    pthread_mutex_lock(&scheduler.lock);
    bool yes = below(2) == 0;
    pthread_mutex_unlock(&scheduler.lock);
    return yes;
}
