/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the header and the contract say of one root, byte by byte, kept apart from the library.
 *
 * Each place has an array with a byte for every byte of the root, and each byte of the root has the
 * set of places where it is valid. No byte is known twice: a transfer in the model copies from one
 * array to another, and all valid places must then agree.
 *
 * may_ functions answer which statuses a call may have (where several errors apply at once, any
 * of them); the others apply what a call that succeeded has done.
 */
#ifndef SYNCEDMEM_TESTS_RANGES_MODEL_H
#define SYNCEDMEM_TESTS_RANGES_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "syncedmem.h"

/* Place 0 is the host, place 1 + n the device n. */
enum { PLACE_HOST = 0, PLACES_MOST = 8, LEASES_MOST = 8, NO_PLACE = -1 };

/* The map is exact up to 512, less what one call may split; some room above that is the library's
 * affair, but not any number. */
enum { SEGMENTS_SURE = 500, SEGMENTS_MOST = 1100 };

/* A set of statuses, a bit for each. */
typedef uint64_t status_set;
#define STATUS(status) (UINT64_C(1) << -(status))
#define MAY_OK STATUS(SYNCEDMEM_OK)

/* Of the root, from `from` to before `to`. */
struct range {
    size_t from, to;
};

struct model_lease {
    bool open;
    int place;
    bool writes;
    struct range range;
};

/* What one place has of the root. */
struct model_copy {
    unsigned char *bytes; /* what is there of bytes that are valid there */
    bool memory;
    bool adopted;
    bool read_only;
    unsigned ended; /* how often a use of adopted memory has ended */
};

struct model {
    size_t size;
    int places;
    int home;        /* NO_PLACE: not yet */
    uint8_t *valid;  /* for each byte the places, a bit each; none: fresh */
    uint8_t *loose;  /* for each byte: its value is unspecified, for a WRITE lease left it out */
    uint8_t phantom; /* places of the byte that a root of size 0 does not have */
    struct model_copy copy[PLACES_MOST];
    struct model_lease lease[LEASES_MOST];
    uint64_t bytes_to_device, bytes_to_host;
    uint64_t to_device, to_host; /* transfers: one for all that a call moves from a place */
};

/* False when there is no memory. */
bool model_open(struct model *model, size_t size, int places);
void model_close(struct model *model);

/* ---- Looking ---- */

bool range_is_empty(struct range range);
bool ranges_overlap(struct range one, struct range other);

/* The bytes of the range that are valid at the place. */
size_t model_valid_bytes(const struct model *model, int place, struct range range);
syncedmem_head_t model_head(const struct model *model, struct range range);
/* The places where every byte of the range is valid that is not fresh; none when all are fresh. */
uint8_t model_holders(const struct model *model, struct range range);
/* A place where the byte is valid, or NO_PLACE. */
int model_source(const struct model *model, size_t at);
unsigned char model_byte(const struct model *model, size_t at);
/* Neighbours with the same places are one segment. */
size_t model_segments(const struct model *model);
bool model_leased(const struct model *model, struct range range, bool only_writers);
bool model_place_leased(const struct model *model, int place);
unsigned model_open_leases(const struct model *model);

/* ---- What may come out ---- */

status_set may_access(const struct model *model, int place, struct range range, bool writes);
status_set may_push(const struct model *model, int device, struct range range);
status_set may_mark(const struct model *model, int place, struct range range);
status_set may_adopt(const struct model *model);
status_set may_drop(const struct model *model, int place);
status_set may_fill(const struct model *model, struct range range);

/* ---- What has been done ---- */

/* Brings the range to the place: allocates, zeroes what is fresh, copies what is stale. */
void model_bring(struct model *model, int place, struct range range);
/* The range is valid at the place only; its bytes are as they were there. */
void model_own(struct model *model, int place, struct range range);
/* The same, said by someone who wrote the memory himself. */
void model_mark(struct model *model, int place, struct range range);
/* The range is about to be overwritten at the place: nothing is brought. */
void model_overwrite(struct model *model, int place, struct range range);
/* Bytes appear at the place through a pointer. */
void model_write(struct model *model, int place, size_t from, const unsigned char *bytes,
                 size_t length);
void model_adopt(struct model *model, int place, const unsigned char *bytes, bool read_only);
void model_drop(struct model *model, int place);
/* All uses of adopted memory end. */
void model_release(struct model *model);
/* The library says that these are the places of the byte; false when that cannot be. */
bool model_settle(struct model *model, size_t at, uint8_t places);

/* Returns the number of the lease. */
int model_begin(struct model *model, int place, bool writes, struct range range);
void model_end(struct model *model, int lease);

#endif
