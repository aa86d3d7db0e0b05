/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A root: the storage behind buffer handles and everything known of it.
 *
 * Untouched, a root is one small block. The first touch adds a body: the validity map, the copies
 * at places, leases, unfinished work and counters. All of it is guarded by the root's lock, but for
 * what hot calls read.
 *
 * Hot calls. A handle caches, for the four plain accessors, whether a call now would have
 * nothing to do, as bits in its stamp. The stamp also holds the root's version and the
 * process's epoch at the time it was made; every change of the root makes a new version, so an
 * outdated stamp differs. A hot call is therefore: load version, stamp and epoch, XOR them, one
 * test. The bits of a stamp are only ever true or missing, and pointers are kept after they
 * went out of use, so a call that races with a change answers as if it had come just before it.
 */
#ifndef SYNCEDMEM_CORE_ROOT_H
#define SYNCEDMEM_CORE_ROOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/epoch.h"
#include "base/lock.h"
#include "core/copies.h"
#include "core/counters.h"
#include "core/lease.h"
#include "core/map.h"
#include "core/work.h"
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

struct body {
    struct map map;
    struct copies copies;
    struct leases leases;
    struct works works;
    struct adoption *finished; /* whose release functions are due */
    struct counters counters;
    uint64_t number;                /* from 1, for people */
    uint64_t epoch;                 /* of the last look at what concerns all buffers */
    const syncedmem_place *cut_off; /* transfers went with it, and wait() has not said so yet */
};

struct root {
    _Atomic(uint64_t) version; /* all HOT_BITS set, so that XOR shows which a stamp lacks */
    size_t size;
    struct body *body; /* NULL until the first touch */
    syncedmem_place *home;
    struct lock lock;
    atomic_uint references; /* handles */
    bool orphaned;          /* no handle is left, but open leases */
    uint8_t policy;         /* syncedmem_host_policy_t, 0: the process's */
    bool touched;           /* successfully: the policy is captured */
    bool home_fixed;        /* a device was touched */
    struct syncedmem_buffer whole;
};

/* ---- Life ---- */

struct root *syncedmem_root_create(size_t size);
void syncedmem_root_retain(struct root *root);

/* Without references the root ends, at once or with its last open lease. */
void syncedmem_root_release(struct root *root);
void syncedmem_root_destroy(struct root *root);

/* ---- The lock. What follows is for its holder ---- */

/* Sees to what has happened to places since the last time. Without success nothing is locked. */
syncedmem_status_t syncedmem_root_catch_up(struct root *root);

static inline __attribute__((warn_unused_result)) syncedmem_status_t syncedmem_root_lock(
    struct root *root)
{
    const syncedmem_status_t status = syncedmem_lock(&root->lock);
    if (status == SYNCEDMEM_OK && root->body && root->body->epoch != epoch_now())
        return syncedmem_root_catch_up(root);
    return status;
}

/* Unlocks, and hands over the adoptions whose end has to be told, by the function after it. */
struct adoption *syncedmem_root_unlock_only(struct root *root);
void syncedmem_adoptions_tell(struct adoption *finished);

/* Both: release functions run with no lock held. */
static inline void syncedmem_root_unlock(struct root *root)
{
    syncedmem_adoptions_tell(syncedmem_root_unlock_only(root));
}

/* Whether neither handles nor leases are left: the caller unlocks it and destroys it. */
bool syncedmem_root_is_left(const struct root *root);

/* Whether nothing is unfinished. Most calls find it so: then there is nothing to look after, to wait for or
 * to overtake. */
static inline bool root_is_idle(const struct root *root)
{
    return !root->body->works.first;
}

/* The body, made if need be. */
syncedmem_status_t syncedmem_root_touch(struct root *root);

/* Whatever was hot is not any more. */
static inline void syncedmem_root_changed(struct root *root)
{
    const uint64_t version = atomic_load_explicit(&root->version, memory_order_relaxed);
    atomic_store_explicit(&root->version, version + VERSION_STEP, memory_order_release);
}

/* The handle's stamp and pointers as of now. */
void syncedmem_root_refresh_stamp(syncedmem_buffer *buffer);

/* Size 0 has a map as any other: of one byte that does not exist. */
static inline size_t syncedmem_root_span(const struct root *root)
{
    return root->size > 0 ? root->size : 1;
}

/* The range of a handle in the map. An empty view has none: from is to. */
static inline bool handle_is_view(const syncedmem_buffer *buffer)
{
    return buffer != &buffer->root->whole;
}

static inline size_t handle_from(const syncedmem_buffer *buffer)
{
    return buffer->offset;
}

static inline size_t handle_to(const syncedmem_buffer *buffer)
{
    return handle_is_view(buffer) ? buffer->offset + buffer->length
                                  : syncedmem_root_span(buffer->root);
}

/* Where the newest bytes of a range are. */
syncedmem_head_t syncedmem_root_head(const struct root *root, size_t from, size_t to);
const char *syncedmem_head_name(syncedmem_head_t head);

/* The place that gpu calls mean. Does not fix it. */
syncedmem_status_t syncedmem_root_home(const struct root *root, syncedmem_place **out_place);

#endif
