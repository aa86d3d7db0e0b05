/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace: what the library did and which call caused it, in Chrome's trace-event format.
 *
 * On when the environment variable SYNCEDMEM_TRACE names a file. Off, it costs one load where
 * something could be traced, and nothing in a hot call.
 *
 *     const uint64_t start = trace_start();
 *     ... do it ...
 *     if (trace_is_on())
 *         syncedmem_trace(&(struct trace_event){.kind = TRACE_TRANSFER, .start = start, ...});
 *
 * A forked child has a file of its own if the name has the process id in it, from its first event
 * on, and no trace if not. The file is ended by a destructor of the library: after every handler
 * of atexit() and every destructor of what uses the library. An event after that is dropped.
 */
#ifndef SYNCEDMEM_TRACE_TRACE_H
#define SYNCEDMEM_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_kind {
    TRACE_TRANSFER,   /* bytes from one place to another; counted by SYNCEDMEM_STAT_TRANSFERS */
    TRACE_ZERO,       /* fresh bytes that were zeroed */
    TRACE_WAIT,       /* a call blocked until unfinished work had ended; ..._STAT_WAITS */
    TRACE_ORDER,      /* a stream was made to wait for it instead; ..._STAT_STREAM_WAITS */
    TRACE_ALLOCATION, /* a block; ..._STAT_HOST_ALLOCATIONS, ..._STAT_DEVICE_ALLOCATIONS */
    TRACE_FREE,       /* a block was given back */
    TRACE_EVICTION,   /* a copy gave way to others */
    TRACE_FAILURE,    /* work that had been started failed later */
    TRACE_KINDS
};

struct trace_event {
    enum trace_kind kind;
    uint64_t start;  /* what trace_start() returned; 0: now */
    uint64_t buffer; /* number of the buffer, from 1; 0: of none */
    uint64_t bytes;
    size_t regions;    /* how many parts the bytes are in */
    const char *place; /* where it happened; of a transfer: where the bytes went */
    const char *from;  /* of a transfer: where they came from; else NULL */
    uint64_t stream;   /* number of the stream; 0: none */
    bool is_started;   /* it was only started: its end is traced by syncedmem_trace_end() */
    uint64_t id;       /* of what was started, from syncedmem_trace_id(), else 0 */
};

/* Whether there is a trace. The environment is read by the first public call that does work. */
enum trace_state { TRACE_OFF, TRACE_ON, TRACE_UNREAD };

extern atomic_int syncedmem_trace_state;

static inline int trace_state(void)
{
    return atomic_load_explicit(&syncedmem_trace_state, memory_order_relaxed);
}

static inline bool trace_is_on(void)
{
    return __builtin_expect(trace_state() == TRACE_ON, 0);
}

uint64_t syncedmem_trace_clock(void);

/* The time now, where it matters. */
static inline uint64_t trace_start(void)
{
    return trace_is_on() ? syncedmem_trace_clock() : 0;
}

/* A number for work that is only started; never 0, never used twice. */
uint64_t syncedmem_trace_id(void);

/* Only when the trace is on. Locks may be held. Cannot fail: where the file cannot be written the
 * trace ends, and the log says so. Keeps errno. */
void syncedmem_trace(const struct trace_event *event);

/* What was started has been seen to have ended, in success or not. */
void syncedmem_trace_end(enum trace_kind kind, uint64_t id, bool failed);

/* The calling function, for the events of this thread until it leaves. Returns the function that
 * was there before, which leave() wants: a function of the user's that the library calls may call
 * the library, and what that does is the inner call's. */
const char *syncedmem_trace_enter(const char *call);
void syncedmem_trace_leave(const char *outer);

#endif
