/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library and the model side by side, while a stream of operations runs on both.
 *
 * There is one world a process. A difference ends the run: EXPECT() jumps out of it, and what
 * the library holds then is left as it is, for a bad run is the last one of its process.
 */
#ifndef SYNCEDMEM_TESTS_RANGES_WORLD_H
#define SYNCEDMEM_TESTS_RANGES_WORLD_H

#include <setjmp.h>

#include "model.h"
#include "ops.h"
#include "syncedmem/sim.h"

enum {
    ROOTS = 4,
    HANDLES = 12,
    BLOCKS = 24,
    LEASES = 8,
    SIGHTS = 24,
    STREAMS = 3, /* a device: the default stream, and two */
    SCATTERS_MOST = 5,
    SIZE_LARGEST = 100000,
};

/* Memory of the caller's that a buffer was given. */
struct block {
    bool used;
    int place;
    void *start;             /* as allocated */
    unsigned char *pointer;  /* as handed in */
    size_t size;             /* of the buffer */
    unsigned char *original; /* for memory that the library may only read */
    bool has_release;        /* and so it is freed in there */
    unsigned released;
};

struct root {
    bool live;
    struct model model;
    unsigned handles;
    unsigned char *base[PLACES_MOST]; /* what pointers said, NULL: not known */
    bool exposed[PLACES_MOST];        /* a plain call has given the pointer out */
    struct block *block[PLACES_MOST];
    unsigned ended[PLACES_MOST]; /* of the model's figure, what has been looked after */
    bool inexact;                /* more segments than the map holds apart */
    bool grown;                  /* no memory could be had to merge segments */
    uint64_t merges;
    bool unsure; /* figures and places are to be asked for once */
};

struct handle {
    syncedmem_buffer *buffer; /* NULL: a free slot */
    struct root *root;
    struct range range;
    unsigned references;
    bool view;
};

struct lease {
    bool open;
    struct root *root;
    int number; /* in the model */
    int place;
    syncedmem_mode_t mode;
    struct range range;
    unsigned stream;
    unsigned char *pointer;
    syncedmem_token_t token;
};

/* Device bytes on their way to us: a kernel on a stream copies them while we go on. */
struct sight {
    bool used;
    int place;
    unsigned stream;
    size_t length;
    unsigned step;
    unsigned char *seen, *wanted;
};

struct world {
    int places;
    syncedmem_place *place[PLACES_MOST];
    syncedmem_stream *stream[PLACES_MOST][STREAMS];
    void *foreign[PLACES_MOST]; /* memory there that no buffer has anything to do with */
    struct root root[ROOTS];
    struct handle handle[HANDLES];
    struct block block[BLOCKS];
    struct lease lease[LEASES];
    struct sight sight[SIGHTS];
    syncedmem_token_t ended_token;
    uint64_t host_bytes, device_bytes, memory_free[PLACES_MOST]; /* at the beginning */
    uint64_t open_leases;
    unsigned scattered;

    int fault;          /* what is to fail in the next call, 0: nothing */
    unsigned fault_nth; /* which one */
    bool struck;        /* the last call ran with a fault and failed by it */
    bool late;          /* the last call ran with a late fault */

    unsigned step;
    enum op_kind doing;
    bool trace, careful, planted;
    const char *complaint; /* of a release function, which cannot jump */
    jmp_buf out;
    char message[1024];
};

extern struct world world;

/* ---- Differences ---- */

__attribute__((format(printf, 1, 2))) _Noreturn void differ(const char *format, ...);
__attribute__((format(printf, 1, 2))) void trace(const char *format, ...);

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            differ(__VA_ARGS__);                                                                   \
        }                                                                                          \
    } while (0)

/* One line for each call of the library, when someone wants to read the stream. */
#define TRACE(...)                                                                                 \
    do {                                                                                           \
        if (world.trace) {                                                                         \
            trace(__VA_ARGS__);                                                                    \
        }                                                                                          \
    } while (0)

void expect_status(syncedmem_status_t status, status_set may, const char *what);

/* ---- Faults: the n-th allocation or copy of one call ---- */

enum { FAULT_HOST_ALLOC = 5, FAULTS = 6 }; /* the others are SYNCEDMEM_SIM_FAIL_ */

void fault_arm(void);
syncedmem_status_t fault_disarm(syncedmem_status_t status);
#define TRIED(call) (fault_arm(), fault_disarm(call))

/* Calls; when that failed by a fault, does `recover` and calls again. */
#define ATTEMPT(status, call, recover)                                                             \
    do {                                                                                           \
        (status) = TRIED(call);                                                                    \
        if (world.struck) {                                                                        \
            TRACE("  failed: %s", syncedmem_last_error());                                         \
            recover;                                                                               \
            (status) = TRIED(call);                                                                \
        }                                                                                          \
    } while (0)

/* ---- Devices ---- */

bool device_write(int place, unsigned stream, void *address, const void *bytes, size_t length);
bool device_read(int place, unsigned stream, const void *address, void *bytes, size_t length);
void device_slow(int place, unsigned stream, unsigned microseconds);
void device_wait(int place, unsigned stream);
void device_wait_all(void);

/* ---- The parts of a world ---- */

/* Once a process; false when the devices cannot be had. */
bool world_setup(int devices);
void world_begin(void);
/* Everything is released and nothing may be left. */
void world_end(void);

struct handle *handle_pick(unsigned number);
struct handle *handle_free_slot(void);
struct handle *handle_of(const struct root *root, unsigned number);
struct root *root_free_slot(void);
unsigned number_of_handle(const struct handle *handle);
unsigned number_of_root(const struct root *root);
void handle_drop(struct handle *handle);

struct block *block_make(int place, size_t size, size_t slack, unsigned seed, bool has_release);
void block_read_only(struct block *block, const unsigned char *bytes);
void block_end(struct block *block, bool was_adopted);
void block_release(void *user);

/* ---- Bytes ---- */

unsigned char pattern_byte(unsigned seed, size_t index);
void pattern_fill(unsigned char *bytes, size_t length, unsigned seed);

/* What the model says of a range; false when some of it is unspecified. */
bool model_read(const struct model *model, struct range range, unsigned char *bytes);

/* Has device bytes of a range copied by a stream, to be compared later. */
void sight_take(struct root *root, int place, unsigned stream, const unsigned char *pointer,
                struct range range);
void sights_collect(void);
bool stream_has_sights(int place, unsigned stream);

void expect_host_bytes(const struct root *root, const unsigned char *pointer, struct range range);
/* The pointer to the range at the place is where it was. */
void expect_pointer(struct root *root, int place, const void *pointer, struct range range);

/* ---- Checks ---- */

/* All that can be seen of a root without asking for bytes. */
void check_root(struct root *root);
/* And all bytes where they are valid. */
void check_bytes(struct root *root);
/* Asks the library for the places of each byte, and checks that they can be so. */
void settle(struct root *root);
void settle_range(struct root *root, struct range range);
/* Whether what a call has started arrives, when there may be a late fault. */
bool arrives(const struct handle *handle);
/* After a call failed by a fault. */
void recover(struct root *root);
/* The same after one that may have left some bytes of a range changed. */
void recover_range(struct root *root, struct range range, const unsigned char *wanted);

/* ---- Steps ---- */

void step_take(const struct op *op);
void step_plain(const struct op *op);
void step_push(const struct op *op);
void step_adopt(const struct op *op);
void step_begin(const struct op *op);
void step_write(const struct op *op);
void step_end(const struct op *op);
void step_prefetch(const struct op *op);
void step_mark(const struct op *op);
void step_copy(const struct op *op);
void step_fill(const struct op *op);
void step_drop(const struct op *op);
void step_scatter(const struct op *op);
void step_refused(const struct op *op);
void step_look(const struct op *op);

void lease_end(struct lease *lease, struct handle *handle);
void end_leases_of(struct root *root);

#endif
