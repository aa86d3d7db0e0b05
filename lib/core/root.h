/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A root: the storage behind a buffer handle and everything known of it.
 *
 * Untouched, a root is one small block. The first touch adds a body: the validity map, the copies
 * at places, unfinished work and counters. All of it is guarded by the root's lock, but for
 * what hot calls read.
 *
 * Hot calls. A handle caches, for the four plain accessors, whether a call now would have
 * nothing to do, as bits in its stamp. The stamp also holds the root's version and the
 * process's epoch at the time it was made; every change of the root makes a new version,
 * so an outdated stamp differs. A hot call is therefore: load version, stamp and epoch, XOR them, one
 * test. The bits of a stamp are only ever true or missing, and pointers are kept after they
 * went out of use, so a call that races with a change answers as if it had come just before it.
 */
#ifndef SYNCEDMEM_CORE_ROOT_H
#define SYNCEDMEM_CORE_ROOT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/counters.h"
#include "core/epoch.h"
#include "core/map.h"
#include "places/place.h"

/* ---- The stamp: bits 0 to 3 the hot calls, 4 to 47 the version, from 48 on the epoch ---- */

enum {
    HOT_CPU_READ = 1,
    HOT_CPU_WRITE = 2,
    HOT_GPU_READ = 4,
    HOT_GPU_WRITE = 8,
    HOT_BITS = 15,
    VERSION_STEP = 16
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "hot calls need atomic 64-bit loads");

enum side { HOST_SIDE, DEVICE_SIDE, SIDES };

struct syncedmem_buffer {
    struct root *root;
    _Atomic(uint64_t) stamp;
    _Atomic(void *) pointers[SIDES]; /* what a hot call returns */
    size_t offset;                   /* of the handle's range in the root */
    size_t length;
    atomic_uint references;
};

/* ---- The root ---- */

/* Slot 0 of a root is the host; devices get slots as they are touched. A slot is a bit in the map. */
enum { HOST_SLOT = 0 };

enum pin_state { PIN_NOT_TRIED, PIN_DONE, PIN_REFUSED };

/* What one place has of the root. */
struct copy {
    syncedmem_place *place;
    void *memory;
    bool present;  /* there is memory, or size 0 needs none */
    bool owned;    /* allocated by the library */
    bool exposed;  /* a plain call gave its pointer out */
    bool zeroed;   /* bytes that the map calls fresh are zero in this memory */
    uint8_t pin;   /* enum pin_state; a host block only */
    syncedmem_place *pinned_with;
};

/* A transfer that was started and not waited for. */
struct work {
    struct work *next;
    const struct backend *backend;
    struct backend_event *event;
    unsigned reads;  /* slot */
    unsigned writes; /* slot */
    size_t from;     /* of the range, in both */
    size_t to;
};

enum { FIRST_COPIES = 2 };

struct body {
    struct map map;
    struct copy *copies; /* by slot */
    size_t copies_count;
    size_t copies_capacity;
    struct work *works;
    struct counters counters;
    struct copy first_copies[FIRST_COPIES];
};

struct root {
    _Atomic(uint64_t) version; /* all HOT_BITS set, so that XOR shows which a stamp lacks */
    size_t size;
    struct body *body; /* NULL until the first touch */
    syncedmem_place *home;
    pthread_mutex_t lock;
    atomic_uint references;
    uint8_t policy; /* syncedmem_host_policy_t, 0: the process's */
    struct syncedmem_buffer whole;
};

/* ---- Life ---- */

struct root *syncedmem_root_create(size_t size);
void syncedmem_root_release(struct root *root);

/* Under the root's lock: the body, made if need be. */
syncedmem_status_t syncedmem_root_touch(struct root *root);

/* Under the lock: whatever was hot is not any more. */
static inline void syncedmem_root_changed(struct root *root)
{
    const uint64_t version = atomic_load_explicit(&root->version, memory_order_relaxed);
    atomic_store_explicit(&root->version, version + VERSION_STEP, memory_order_release);
}

/* Under the lock: the handle's stamp and pointers as of now. */
void syncedmem_root_refresh_stamp(syncedmem_buffer *buffer);

/* Size 0 has a map as any other: of one byte that does not exist. */
static inline size_t syncedmem_root_span(const struct root *root)
{
    return root->size > 0 ? root->size : 1;
}

/* Under the lock: where the newest bytes of a range are. */
syncedmem_head_t syncedmem_root_head(const struct root *root, size_t from, size_t to);

/* Under the lock: the place that gpu calls mean. Does not fix it. */
syncedmem_status_t syncedmem_root_home(const struct root *root, syncedmem_place **out_place);

/* Under the lock: whether a device has been touched, which fixes the home. */
bool syncedmem_root_home_is_fixed(const struct root *root);

/* ---- Copies (copies.c), under the lock ---- */

/* The slot of a place, made if need be. */
syncedmem_status_t syncedmem_copy_slot(struct root *root, syncedmem_place *place,
                                       unsigned *out_slot);

/* The slot of a place that has one, else false. */
bool syncedmem_copy_find(const struct body *body, const syncedmem_place *place,
                         unsigned *out_slot);

/* Allocates the memory of a slot if there is none. */
syncedmem_status_t syncedmem_copy_ensure(struct root *root, unsigned slot);

/* Ends the use of a slot's memory and frees it if it is ours. The root's own work has ended. */
void syncedmem_copy_free(struct root *root, unsigned slot);

/* The caller's memory takes the place of the slot's. The root's own work has ended. */
void syncedmem_copy_adopt(struct root *root, unsigned slot, void *memory);

/* Whether [address, address + length) touches memory that the library allocated for this root. */
bool syncedmem_copy_overlaps_own(const struct root *root, const void *address, size_t length);

/* ---- Unfinished work (work.c), under the lock ---- */

/* Forgets what has ended; the first failure is returned, once. */
syncedmem_status_t syncedmem_work_reap(struct root *root);

/* Blocks until no work conflicts with reading (or writing) a slot's bytes in a range. */
syncedmem_status_t syncedmem_work_settle(struct root *root, unsigned slot, size_t from, size_t to,
                                         bool writing);

/* Blocks until all of it has ended. */
syncedmem_status_t syncedmem_work_settle_all(struct root *root);

/* ---- Transfers (transfer.c), under the lock ---- */

/* Makes the bytes of a slot current in a range: fills what is fresh, copies what is
 * stale, and returns when they are there. Does not change the map. */
syncedmem_status_t syncedmem_transfer_in(struct root *root, unsigned slot, size_t from, size_t to);

/* Starts one copy of a range and returns it as work to be listed. */
syncedmem_status_t syncedmem_transfer_start(struct root *root, unsigned to_slot, unsigned from_slot,
                                            size_t from, size_t to,
                                            struct backend_stream *stream, struct work *work);

/* ---- Access (access.c), under the lock ---- */

enum access_mode { ACCESS_READ, ACCESS_READ_WRITE };

/* The one path for bytes: memory, transfers, map. */
syncedmem_status_t syncedmem_access(struct root *root, syncedmem_place *place,
                                    enum access_mode mode, size_t from, size_t to,
                                    unsigned *out_slot);

/* The caller's memory becomes the place's, and its bytes the newest. */
syncedmem_status_t syncedmem_adopt(struct root *root, syncedmem_place *place, void *memory,
                                   size_t length);

/* Starts the transfer from the host to the home device. stream NULL: the default one. */
syncedmem_status_t syncedmem_push(struct root *root, syncedmem_place *place,
                                  struct backend_stream *stream, size_t from, size_t to);

/* ---- Policy of host memory ---- */

extern _Atomic(int32_t) syncedmem_default_policy;

#endif
