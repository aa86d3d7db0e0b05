/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine's files know of one another.
 *
 * Locks, in the order they are taken: the scheduler's, a device's, a stream's, an event's.
 * None is held while bytes move, a kernel runs or a thread is waited for.
 */
#ifndef SYNCEDMEM_SIMULATOR_INTERNAL_H
#define SYNCEDMEM_SIMULATOR_INTERNAL_H

#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- Memory (memory.c) ---- */

struct engine_block {
    size_t offset;   /* from the start of the device's memory, a multiple of ENGINE_ALIGNMENT */
    size_t size;     /* as asked for; the block occupies this rounded up */
    uint64_t serial; /* not 0; of this block alone, also among those at the same address */
};

struct engine_pin {
    struct engine_pin *next;
    uintptr_t address;
    size_t size;
};

/* What a device has from its beginning to its loss. Work that was submitted keeps it mapped. */
struct engine_memory {
    atomic_uint references;
    struct engine_device *device;

    /* These do not change, so that translation needs no lock. */
    int file; /* the memfd behind both mappings */
    size_t page;
    size_t capacity;           /* what blocks are cut from */
    size_t mapped;             /* the capacity in whole pages, at least one */
    unsigned char *handed_out; /* PROT_NONE: the addresses that users see */
    unsigned char *usable;     /* the same bytes, for the engine and for kernels */

    /* The rest is under the device's lock. */
    struct engine_block *blocks; /* the live ones by offset; what lies between them is free */
    size_t count;
    size_t room;   /* how many the array holds */
    size_t packed; /* so many leading blocks have no gap before them: the search starts there */
    size_t used;   /* bytes that blocks occupy */
    struct engine_pin *pins;
    uint64_t pinned; /* bytes in pins */
    bool lost;
};

/* With one reference; nothing is left behind on failure. */
enum engine_result syncedmem_engine_memory_open(struct engine_device *device,
                                                struct engine_memory **out_memory);
void syncedmem_engine_memory_release(struct engine_memory *memory);

/* All blocks and registrations are gone. The device's lock is held. */
void syncedmem_engine_memory_forget(struct engine_memory *memory);

/* The memory that the device has now, with a reference. */
struct engine_memory *syncedmem_engine_memory_of(struct engine_device *device);

/*
 * The serial of the live block that all of `length` bytes lie in; 0: they do not. `length` > 0; the
 * address may be anything.
 */
uint64_t syncedmem_engine_block_of(struct engine_memory *memory, const void *address,
                                   size_t length);

void *syncedmem_engine_usable(const struct engine_memory *memory, const void *address);

/* Whether host memory is registered with the device, all of it in one piece. */
bool syncedmem_engine_is_pinned(struct engine_device *device, const void *address, size_t length);

/* Makes bytes of the usable mapping zero, and gives the whole pages among them back. */
void syncedmem_engine_clear(const struct engine_memory *memory, unsigned char *bytes,
                            size_t length);

/* ---- Devices (device.c) ---- */

struct engine_device {
    struct engine_settings settings;
    size_t capacity; /* what blocks are cut from */
    pthread_mutex_t lock;
    struct engine_memory *memory;         /* under the lock: another one after a loss */
    uint64_t serials;                     /* how many blocks there ever were; under the lock */
    uint64_t countdown[ENGINE_FAILURES];  /* the n-th from now fails; under the lock */
    struct engine_stream *streams;        /* all that have not been joined; under the lock */
    struct engine_stream *default_stream; /* one of them, or NULL; under the lock */

    atomic_bool lost;     /* written under the lock */
    bool losing;          /* lost, and copies still run; under the lock */
    unsigned moving;      /* copies and fills that move bytes now; under the lock */
    pthread_cond_t still; /* `moving` is 0, or `losing` is over */
    _Atomic(uint64_t) losses;
    _Atomic(uint64_t) faults;
};

/* ---- Loss (loss.c) ---- */

/*
 * Bytes of the memory move between these two, so that no loss comes to its end meanwhile. False:
 * the memory is lost.
 */
bool syncedmem_engine_enter(struct engine_memory *memory);
void syncedmem_engine_leave_memory(struct engine_memory *memory);

/* Whoever learns of a loss acts on it: not before the last copy has ended. */
void syncedmem_engine_await_loss(struct engine_device *device);

/* Whether what is put on the stream is lost. Returns true only when the loss has come to its end.
 */
bool syncedmem_engine_stream_lost(struct engine_stream *stream);
bool syncedmem_engine_device_lost(struct engine_device *device);

/* Whether no operation begins any more. */
bool syncedmem_engine_left(void);

/* ---- Failures (failure.c) ---- */

/* Counts one operation of that kind, and says whether it is the one that fails. */
bool syncedmem_engine_failure_due(struct engine_device *device, enum engine_failure what);

/* Counts one operation towards the loss of the device, and loses it when it is its turn. */
bool syncedmem_engine_loses_device(struct engine_device *device);

/* ---- Events (event.c) ---- */

struct engine_event {
    atomic_uint references;
    atomic_int result; /* ENGINE_PENDING until it has ended */
    bool scheduled;    /* whoever waits for it runs operations; constant once it is seen */
    pthread_mutex_t lock;
    pthread_cond_t ended;
};

/* With one reference. `result` is ENGINE_PENDING, or how it has ended already. NULL: no memory. */
struct engine_event *syncedmem_engine_event_create(enum engine_result result);

/* Ends the event, once, and wakes those that wait. */
void syncedmem_engine_event_finish(struct engine_event *event, enum engine_result result);

/* Just looks. */
enum engine_result syncedmem_engine_event_result(struct engine_event *event);

/* Waits as event_wait does, or until the stream is lost. */
void syncedmem_engine_event_wait_on(struct engine_event *event, struct engine_stream *stream);

/* Wakes those that wait, to look again. */
void syncedmem_engine_event_wake(struct engine_event *event);

/*
 * So often a thread looks again, letting others run in between, before it sleeps: some ten
 * microseconds. Being woken costs more than that, and most operations are short.
 */
enum { ENGINE_PATIENCE = 64 };

/* ---- Streams (stream.c) ---- */

/* What a queue holds. Kinds of work put this at the start of a block of their own. */
struct engine_operation {
    struct engine_operation *next;
    struct engine_stream *stream;                                  /* that it was put on */
    enum engine_result (*run)(struct engine_operation *operation); /* in the worker */
    void (*discard)(struct engine_operation *operation); /* what it owns, run or not; or NULL */
    uint64_t least_ns;                                   /* takes at least this long */
    struct engine_event *event;                          /* owned, or NULL where nobody asks */
    struct engine_event *after; /* owned, or NULL: the event that it waits for */
};

struct engine_stream {
    struct engine_device *device;
    struct engine_stream *next; /* in the device's list; under the device's lock */
    pthread_t worker;
    atomic_bool ended; /* the last thing that the worker writes: it can be joined */
    bool joined;       /* under the device's lock */
    atomic_bool lost;  /* with its device, and for ever */

    /* Only with a seed, and instead of the worker; constant, and under the scheduler's lock. */
    bool scheduled;
    bool running;
    struct engine_stream *scheduled_next;

    pthread_mutex_t lock;
    pthread_cond_t work; /* something was put on the queue, or `released` was set */
    pthread_cond_t done; /* `completed` has grown */
    struct engine_operation *first;
    struct engine_operation **last; /* where the next one is hung up */
    atomic_bool empty;              /* as `first` says, for a look without the lock */
    uint64_t submitted;             /* how many were ever put on the queue */
    uint64_t completed;             /* how many of them have ended */
    uint64_t dropped;               /* so many more have, behind one that still runs */
    struct engine_event *awaited;   /* that the worker waits for; borrowed */
    unsigned waiting;               /* how many threads wait for `done` */
    bool released;                  /* no more will come; written under the device's lock, too */
    bool closed;                    /* the worker takes nothing any more */
    bool lent;                      /* a caller does an operation itself: the worker waits */
};

/* A block of `size` bytes that begins with an operation, and its event where one is asked for. */
struct engine_operation *syncedmem_engine_operation_create(size_t size, bool with_event);

/* Frees an operation, with what it owns. */
void syncedmem_engine_operation_discard(struct engine_operation *operation);

/* Puts it on the queue, which owns it from then on, and hands its event to the caller. */
void syncedmem_engine_stream_put(struct engine_stream *stream, struct engine_operation *operation,
                                 struct engine_event **out_event);

/* Does it in this thread where the stream is idle, else puts it there and waits. Owns it. */
enum engine_result syncedmem_engine_stream_do(struct engine_stream *stream,
                                              struct engine_operation *operation);

/* The first operation, which stays there, and off with it. The stream's lock is held. */
struct engine_operation *syncedmem_engine_stream_pop(struct engine_stream *stream);

/* Runs or, where it is lost, only ends it, and counts it. No lock is held. */
void syncedmem_engine_stream_run(struct engine_stream *stream, struct engine_operation *operation);

/* Ends all that is queued with ENGINE_LOST, and wakes the worker from its waiting. */
void syncedmem_engine_stream_drop(struct engine_stream *stream);

/* Whether so many operations have ended, of those that were ever put on the queue. */
bool syncedmem_engine_stream_completed(struct engine_stream *stream, uint64_t count);

/* Takes it off its device's list, whose lock is held. */
void syncedmem_engine_stream_unlist(struct engine_stream *stream);

/* Frees a stream that is on no list, has no worker, and is not used by anyone. */
void syncedmem_engine_stream_discard(struct engine_stream *stream);

/* Ends all streams of a device when their work is done, and waits for that. */
void syncedmem_engine_streams_end(struct engine_device *device);

/* Joins the workers that have ended. */
void syncedmem_engine_streams_tidy(struct engine_device *device);

/* ---- The adversarial mode (schedule.c) ---- */

/* The first device that comes sets the dice by its seed. */
void syncedmem_engine_schedule_join(const struct engine_device *device);
void syncedmem_engine_schedule_quit(void);

/* Around the making of a stream, so that all lists are in the same order and none is missed. The
 * stream may be NULL. Nothing for a device without a seed. */
void syncedmem_engine_schedule_lock(const struct engine_device *device);
void syncedmem_engine_schedule_unlock(const struct engine_device *device,
                                      struct engine_stream *made);

/* Frees the stream at once where nothing is queued, else when that has run. */
void syncedmem_engine_schedule_release(struct engine_stream *stream);

/* Runs operations until so many have ended, or the event has. */
void syncedmem_engine_schedule_stream(struct engine_stream *stream, uint64_t count);
void syncedmem_engine_schedule_event(struct engine_event *event);

/* Runs what the device's streams hold, and frees them. */
void syncedmem_engine_schedule_end(struct engine_device *device);

/* Drops what the device's streams hold, see stream_drop. */
void syncedmem_engine_schedule_drop(struct engine_device *device);

/* Runs some operations or none, by the dice. */
void syncedmem_engine_schedule_some(void);

/* Yes or no, by the dice. */
bool syncedmem_engine_schedule_chance(void);

#endif
