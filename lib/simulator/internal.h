/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine's files know of one another.
 *
 * Locks, in the order they are taken: the device's, then a stream's, then an event's.
 * None is held while bytes move, a kernel runs or a thread is waited for.
 */
#ifndef SYNCEDMEM_SIMULATOR_INTERNAL_H
#define SYNCEDMEM_SIMULATOR_INTERNAL_H

#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- Memory (memory.c) ---- */

struct engine_block {
    size_t offset; /* from the start of the device's memory, a multiple of ENGINE_ALIGNMENT */
    size_t size;   /* as asked for; the block occupies this rounded up */
};

struct engine_pin {
    struct engine_pin *next;
    uintptr_t address;
    size_t size;
};

struct engine_memory {
    /* These do not change in the life of the device, so that translation needs no lock. */
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
};

/* All fields of the memory but `capacity` are set here. Nothing is left behind on failure. */
enum engine_result syncedmem_engine_memory_open(struct engine_memory *memory);
void syncedmem_engine_memory_close(struct engine_memory *memory);

/* Whether all of `length` bytes lie in one live block. `length` > 0; the address may be anything.
 */
bool syncedmem_engine_holds(struct engine_device *device, const void *address, size_t length);

/* Makes bytes of the usable mapping zero, and gives the whole pages among them back. */
void syncedmem_engine_clear(const struct engine_memory *memory, unsigned char *bytes,
                            size_t length);

/* ---- Devices (device.c) ---- */

struct engine_device {
    struct engine_settings settings;
    struct engine_memory memory;
    pthread_mutex_t lock;
    uint64_t countdown[ENGINE_FAILURES];  /* the n-th from now fails; under the lock */
    struct engine_stream *streams;        /* all that have not been joined; under the lock */
    struct engine_stream *default_stream; /* one of them, or NULL; under the lock */
};

/* ---- Failures (failure.c) ---- */

/* Counts one operation of that kind, and says whether it is the one that fails. */
bool syncedmem_engine_failure_due(struct engine_device *device, enum engine_failure what);

/* ---- Events (event.c) ---- */

struct engine_event {
    atomic_uint references;
    atomic_int result; /* ENGINE_PENDING until it has ended */
    pthread_mutex_t lock;
    pthread_cond_t ended;
};

/* With one reference. `result` is ENGINE_PENDING, or how it has ended already. NULL: no memory. */
struct engine_event *syncedmem_engine_event_create(enum engine_result result);

/* Ends the event, once, and wakes those that wait. */
void syncedmem_engine_event_finish(struct engine_event *event, enum engine_result result);

/*
 * So often a thread looks again, letting others run in between, before it sleeps: some ten
 * microseconds. Being woken costs more than that, and most operations are short.
 */
enum { ENGINE_PATIENCE = 64 };

/* ---- Streams (stream.c) ---- */

/* What a queue holds. Kinds of work put this at the start of a block of their own. */
struct engine_operation {
    struct engine_operation *next;
    enum engine_result (*run)(struct engine_operation *operation); /* in the worker */
    uint64_t least_ns;                                             /* takes at least this long */
    struct engine_event *event; /* owned, or NULL where nobody asks */
};

struct engine_stream {
    struct engine_device *device;
    struct engine_stream *next; /* in the device's list; under the device's lock */
    pthread_t worker;
    atomic_bool ended; /* the last thing that the worker writes: it can be joined */

    pthread_mutex_t lock;
    pthread_cond_t work; /* something was put on the queue, or `released` was set */
    pthread_cond_t done; /* `completed` has grown */
    struct engine_operation *first;
    struct engine_operation **last; /* where the next one is hung up */
    atomic_bool empty;              /* as `first` says, for a look without the lock */
    uint64_t submitted;             /* how many were ever put on the queue */
    uint64_t completed;             /* how many of them have ended */
    unsigned waiting;               /* how many threads wait for `done` */
    bool released;                  /* no more will come */
    bool lent;                      /* a caller does an operation itself: the worker waits */
};

/* A block of `size` bytes that begins with an operation, and its event where one is asked for. */
struct engine_operation *syncedmem_engine_operation_create(size_t size, bool with_event);

/* For an operation that was not put on a stream. */
void syncedmem_engine_operation_discard(struct engine_operation *operation);

/* Puts it on the queue, which owns it from then on, and hands its event to the caller. */
void syncedmem_engine_stream_put(struct engine_stream *stream, struct engine_operation *operation,
                                 struct engine_event **out_event);

/* Does it in this thread where the stream is idle, else puts it there and waits. Owns it. */
enum engine_result syncedmem_engine_stream_do(struct engine_stream *stream,
                                              struct engine_operation *operation);

/* Ends all streams of a device when their work is done, and waits for that. */
void syncedmem_engine_streams_end(struct engine_device *device);

#endif
