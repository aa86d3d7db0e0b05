/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that each place has of a root, by slot. Slot 0 is the host; devices get
 * slots as they are touched. A slot's number is its bit in the map.
 *
 * Everything here is under the root's lock.
 */
#ifndef SYNCEDMEM_CORE_COPIES_H
#define SYNCEDMEM_CORE_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "places/place.h"

struct root;
struct body;

enum { HOST_SLOT = 0, FIRST_COPIES = 2 };

enum pin_state { PIN_NOT_TRIED, PIN_DONE, PIN_REFUSED };

/* What to call when the use of adopted memory has ended. */
struct adoption {
    struct adoption *next;
    syncedmem_release_fn release;
    void *user;
};

/* What one place has of the root. */
struct copy {
    syncedmem_place *place;
    void *memory;
    bool present;    /* there is memory, or size 0 needs none */
    bool owned;      /* allocated by the library */
    bool exposed;    /* a plain call gave its pointer out */
    bool read_only;  /* adopted so: never written */
    bool zeroed;     /* bytes that the map calls fresh are zero in this memory */
    bool lost;       /* its device was lost with it, and no call has said so yet */
    uint8_t pin;     /* enum pin_state; a host block only */
    uint64_t losses; /* of the device when the memory came */
    syncedmem_place *pinned_with;
    uint64_t pinned_losses;    /* of that device when it was pinned */
    struct adoption *adoption; /* NULL: nothing to call */
};

struct copies {
    struct copy *slots;
    size_t count;
    size_t capacity;
    struct copy first[FIRST_COPIES];
};

extern _Atomic(int32_t) syncedmem_default_policy;

void syncedmem_copies_init(struct copies *copies);
void syncedmem_copies_destroy(struct root *root);

/* The first touch that succeeds decides the policy. */
void syncedmem_copies_capture_policy(struct root *root);

static inline place_set slot_bit(unsigned slot)
{
    return (place_set)1 << slot;
}

/* The slot of a place, made if need be. */
syncedmem_status_t syncedmem_copy_slot(struct root *root, syncedmem_place *place,
                                       unsigned *out_slot);

/* The slot of a place that has one, else false. */
bool syncedmem_copy_find(const struct body *body, const syncedmem_place *place, unsigned *out_slot);

/* Allocates the memory of a slot if there is none. [from, to) is about to be overwritten, so
 * that it need not be zero. */
syncedmem_status_t syncedmem_copy_ensure(struct root *root, unsigned slot, size_t from, size_t to);

/* Moves a read-only slot to memory of its own, with all its valid bytes outside [from, to). */
syncedmem_status_t syncedmem_copy_make_writable(struct root *root, unsigned slot, size_t from,
                                                size_t to);

/* Ends the use of a slot's memory. A block of ours goes when unfinished work is done with it;
 * adopted memory is in use no more when this returns. */
void syncedmem_copy_free(struct root *root, unsigned slot);

/* The device is gone, and with it the memory: what was only there is LOST. */
void syncedmem_copy_lose(struct root *root, unsigned slot);

/* Whether the drivers of all places may still be called. */
bool syncedmem_copies_in_reach(const struct root *root);

/* DATA_LOST when bytes of the range are nowhere any more. */
syncedmem_status_t syncedmem_copies_check_lost(const struct root *root, size_t from, size_t to);

/* The caller's memory takes the place of the slot's. */
void syncedmem_copy_adopt(struct root *root, unsigned slot, void *memory, bool read_only,
                          struct adoption *adoption);

/* Whether [address, address + length) touches memory that the library allocated for this root. */
bool syncedmem_copy_overlaps_own(const struct root *root, const void *address, size_t length);

/* The address of a byte: fixed pointers where there is no memory. */
void *syncedmem_copy_address(const struct root *root, unsigned slot, size_t offset, size_t length);

#endif
