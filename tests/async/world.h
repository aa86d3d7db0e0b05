/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program works on, and what is known of it. One program a process. */
#ifndef SYNCEDMEM_TESTS_ASYNC_WORLD_H
#define SYNCEDMEM_TESTS_ASYNC_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "syncedmem.h"
#include "syncedmem/sim.h"

enum {
    BUFFERS = 3,
    VIEWS = 2,
    STREAMS = 4,
    LEASES = 4,
    BLOCKS_MOST = 64,
    IDENTITIES_MOST = 128,
    HOST = 0, /* places by number: the host, and the devices */
    PLACES = 3,
    GUARD = 16
};

/* Memory of the program's own that a buffer is made to use. Guards lie before and behind. */
struct block {
    bool exists;
    bool freed;
    int place;
    unsigned char *raw;
    size_t size;
    bool has_callback;
    unsigned called;
    bool ended; /* the program has it back, and has poisoned it */
    bool read_only;
    unsigned char before[SIZE_MOST]; /* what is in it while it is read only */
};

struct view {
    syncedmem_buffer *handle;
    size_t offset;
    size_t length;
};

struct buffer {
    syncedmem_buffer *handle; /* NULL: there is none */
    int identity;
    size_t size;
    struct view views[VIEWS];
    struct model_byte bytes[SIZE_MOST];
    struct block *blocks[PLACES];
};

struct stream {
    syncedmem_stream *handle; /* NULL: there is none */
    int place;
};

struct lease {
    struct buffer *buffer; /* NULL: not open */
    syncedmem_token_t token;
    syncedmem_mode_t mode;
    int place;
    struct stream *stream; /* NULL: the default stream */
    size_t from;
    size_t to;
    void *pointer;
    bool written;
    unsigned epoch;
};

/* A range of a buffer through one of its handles. */
struct range {
    struct buffer *buffer;
    syncedmem_buffer *handle;
    size_t base; /* of the handle, in the buffer */
    size_t length_all;
    size_t from; /* in the buffer */
    size_t to;
};

struct world {
    uint64_t dice;
    bool fails; /* transfers fail at times */
    bool trace;
    unsigned step;
    syncedmem_place *places[PLACES];
    struct buffer buffers[BUFFERS];
    struct stream streams[STREAMS];
    struct lease leases[LEASES];
    struct block blocks[BLOCKS_MOST];
    size_t blocks_made;
    int identities;
    unsigned epochs[IDENTITIES_MOST]; /* by identity: how often a failure may have been told */
    unsigned armed;                   /* failures that were asked for */
    unsigned told;                    /* and returned */
    jmp_buf out;
    char message[600];
};

extern struct world world;

/* ---- Dice ---- */

uint64_t throw_dice(void);
size_t below(size_t limit);
bool chance(unsigned percent);

/* ---- Faults and the trace ---- */

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail(__VA_ARGS__);                                                                     \
        }                                                                                          \
    } while (0)

#define EXPECT_OK(call) EXPECT((call) == SYNCEDMEM_OK, "%s: %s", #call, syncedmem_last_error())

/* ---- What may be expected of calls ---- */

/* An open lease excludes it. */
bool is_busy(const struct buffer *buffer, size_t from, size_t to, bool writing);
bool is_leased_at(const struct buffer *buffer, int place);
bool is_leased(const struct buffer *buffer);

/* Whether the call did what it was to do; faults when it may not end like that. */
bool took(struct buffer *buffer, const char *what, syncedmem_status_t status, bool busy);

/* The same for a call on two buffers. */
bool took_both(struct buffer *one, struct buffer *other, const char *what,
               syncedmem_status_t status, bool busy);

/* How a use of memory ended is told no one. */
void forget_failures(const struct buffer *buffer);

/* ---- Bytes ---- */

/* Reads them on the host, and compares. */
void read_host(struct buffer *buffer, const void *pointer, size_t from, size_t to,
               const char *what);

/* Writes new ones on the host. */
void write_host(struct buffer *buffer, void *pointer, size_t from, size_t to);

/* What kernels do. `keeps`: on top of what may fail; else nothing takes it back. */
struct kernel {
    struct buffer *buffer;
    size_t from;
    size_t to;
    bool reads;
    bool writes;
    bool keeps;
    bool blurred; /* the range may have been taken back since the pointer was given out */
};

/* Puts one on a stream; the model has its outcome at once. NULL: the default stream of the place. */
void put_kernel(const struct kernel *kernel, int place, syncedmem_stream *stream,
                const void *pointer);

/* Puts a kernel on a stream that writes given bytes. */
void put_bytes(syncedmem_stream *stream, void *pointer, const unsigned char *bytes, size_t size);

/* Whether device memory holds given bytes; waits. */
bool has_bytes(int place, const void *pointer, const unsigned char *bytes, size_t size);

/* Faults when a kernel saw other bytes than it should have. */
void check_kernels(void);

/* ---- Blocks ---- */

/* Memory with random bytes, which are on a device when what is on the stream has been done. */
struct block *block_make(int place, size_t size, syncedmem_stream *stream);
void *block_memory(const struct block *block);
void block_release(void *block); /* the release function */

/* The bytes of a new block. */
const unsigned char *block_bytes(const struct block *block);

/* The call that ended its use has returned: it is poisoned, or freed. NULL is fine. */
void block_end(struct block **link);

/* After each step: read-only blocks that were left behind. */
void blocks_sweep(void);
void blocks_check(void);

/* ---- Steps ---- */

struct buffer *some_buffer(void);
struct stream *some_stream(int place); /* of a place, or NULL: the default stream */
struct range some_range(struct buffer *buffer);
const char *place_name(int place);

void step_read_host(void);
void step_write_host(void);
void step_read_device(void);
void step_write_device(void);
void step_push(void);
void step_prefetch(void);
void step_fill(void);
void step_copy(void);
void step_mark(void);
void step_drop(void);
void step_adopt(void);
void step_wait(void);
void step_begin(void);
void step_work(void);
void step_end(void);
void end_lease(struct lease *lease);
void end_leases_of(const struct buffer *buffer);

/* ---- The program ---- */

/* NULL when all went well, else what did not. In a process that has used no device. */
const char *program_run(uint64_t seed, bool fails, bool trace);

#endif
