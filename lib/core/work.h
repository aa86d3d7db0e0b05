/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of a root that was started and not waited for: transfers, fills of fresh bytes, and what
 * the holder of a lease put on a stream. Who comes after which, and what failed.
 *
 * Works are listed in the order in which they were started. Two conflict when their ranges overlap
 * and one writes a slot's bytes that the other reads or writes: then the later one comes after
 * the earlier one. A reader of the list can rely on that: what has ended has ended with all that
 * it came after, and these are looked at first.
 *
 * Everything here is under the root's lock, unless it says otherwise.
 */
#ifndef SYNCEDMEM_CORE_WORK_H
#define SYNCEDMEM_CORE_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "places/place.h"

struct root;

enum { NO_SLOT = -1 };

struct work {
    struct work *next;
    struct work *previous;
    atomic_uint references;       /* the list's, and those of who waits for its end */
    const syncedmem_place *place; /* whose stream it is on */
    struct backend_event *event;  /* NULL: never started */
    uint64_t stream;              /* number of the stream */
    uint64_t serial;              /* of the root's works, in their order */
    uint64_t begun;               /* it came after lower numbers only; of a lease: at its begin() */
    uint64_t trace;               /* its number in the trace, 0: none */
    bool moves;                   /* a transfer or a fill: when it fails someone has to be told */
    bool is_fill;                 /* of fresh bytes */
    int reads;                    /* slot, or NO_SLOT; of a fill the same as `writes` */
    int writes;                   /* slot, or NO_SLOT */
    size_t from;                  /* a range that holds all of it */
    size_t to;
    /* What arrives at `writes` and has not been overwritten since. */
    size_t count;
    size_t capacity;
    struct region *regions; /* `first` until there is no room for another cut */
    struct region first[];
};

struct works {
    struct work *first;
    struct work *last;
    uint64_t started;
};

/* ---- Life ---- */

/* Room for so many regions; NULL when there is no memory. One reference. */
struct work *syncedmem_work_alloc(size_t regions);
void syncedmem_work_retain(struct work *work);

/* Any thread, no lock needed. NULL is fine. */
void syncedmem_work_release(struct work *work);

/* Lists it, with its reference. */
void syncedmem_work_add(struct root *root, struct work *work);

/* Whether it has ended; without a lock. What is out of reach counts as ended. */
bool syncedmem_work_has_ended(const struct work *work);

/* Blocks until it has ended; without a lock. */
void syncedmem_work_wait(const struct work *work);

/* ---- Conflicts ---- */

/* What is going to be done with the bytes of a slot. */
struct use {
    int slot; /* NO_SLOT: of any, and everything conflicts */
    size_t from;
    size_t to;
    bool writing;
    bool leaving; /* the bytes will be gone: copies of them have to have arrived elsewhere */
};

static inline struct use use_of(unsigned slot, size_t from, size_t to, bool writing)
{
    return (struct use){.slot = (int)slot, .from = from, .to = to, .writing = writing};
}

/* Puts a stream's further work after all that conflicts. */
syncedmem_status_t syncedmem_work_order(struct root *root, struct use use,
                                        const syncedmem_place *place, struct stream_ref stream);

/* Blocks until what conflicts has ended; returns the first failure. The lock is kept. */
syncedmem_status_t syncedmem_work_settle(struct root *root, struct use use);

/* The same for all uses of a slot's memory. */
syncedmem_status_t syncedmem_work_settle_slot(struct root *root, unsigned slot);

/* The same for everything. */
syncedmem_status_t syncedmem_work_settle_all(struct root *root);

/* Blocks until what conflicts has ended, with the lock given back meanwhile: all that is known of the
 * root may be outdated afterwards. True: it waited. */
bool syncedmem_work_await(struct root *root, struct use use);

/* The same for what was started up to now. */
void syncedmem_work_await_all(struct root *root);

/* Blocks until all uses of a slot's memory have ended. The lock is kept, and what failed stays to be
 * told. */
void syncedmem_work_await_slot(struct root *root, unsigned slot);

/* ---- The end of work ---- */

/* Forgets what has ended; the first failure is returned, once. */
syncedmem_status_t syncedmem_work_reap(struct root *root);

/* Room for the next change of [from, to); see syncedmem_work_overwritten(). */
syncedmem_status_t syncedmem_work_reserve(struct root *root, size_t from, size_t to);

/* [from, to) has new bytes: no outcome of earlier work matters to them; but that of what brought
 * bytes to the slot that they were made from (NO_SLOT: from none). */
void syncedmem_work_overwritten(struct root *root, size_t from, size_t to, int made_from);

/* The work does not bring [from, to) any more; there has to be room. */
void syncedmem_work_cut(struct work *work, size_t from, size_t to);

/* The slot's memory is another one from now on, or none: no work concerns it. That a transfer failed is
 * still told: what was made of its bytes may be elsewhere. */
void syncedmem_work_leave_slot(struct root *root, unsigned slot);

/* Forgets all. */
void syncedmem_work_leave_all(struct root *root);

/* Everything that was started on a place's streams has failed, and the place is not asked. False: there
 * is no memory for that yet. */
bool syncedmem_work_abandon(struct root *root, const syncedmem_place *place);

#endif
