/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The validity map: which places hold the newest bytes of each part of a root.
 *
 * A partition of [0, span) into segments, each with a set of valid places; neighbours
 * differ. The empty set means fresh: no one has written or been handed these
 * bytes, so they are zero everywhere. A place is a bit, the number of its slot in the root. LOST
 * stands alone: the newest bytes were at one place, and went with it.
 *
 * Changes cannot fail: syncedmem_map_reserve() comes first, while nothing has been done yet. Their
 * ranges are not empty.
 */
#ifndef SYNCEDMEM_CORE_MAP_H
#define SYNCEDMEM_CORE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t place_set;

enum { PLACE_SET_MAX = 63 };

#define LOST ((place_set)1 << PLACE_SET_MAX)

/* Exact up to so many segments. Above MAP_LIMIT the map is merged down to MAP_EXACT; the room
 * between spares most changes of a crowded map the search for what to merge. */
enum { MAP_EXACT = 512, MAP_LIMIT = 1024 };

struct segment {
    size_t start; /* ends where the next one starts, the last one at the span */
    place_set valid;
};

struct map {
    size_t span;
    size_t count;
    size_t capacity;
    struct segment *segments; /* &single until it has to grow */
    struct segment single;
};

void syncedmem_map_init(struct map *map, size_t span);
void syncedmem_map_destroy(struct map *map);

/* Room for a change of [from, to); false when there is no memory. */
bool syncedmem_map_reserve(struct map *map, size_t from, size_t to);

/* The index of the segment that holds the byte. */
size_t syncedmem_map_find(const struct map *map, size_t offset);

/* Where the segment ends. */
size_t syncedmem_map_end(const struct map *map, size_t index);

/* In [from, to): exactly these places hold the newest bytes. False: nothing changed. */
bool syncedmem_map_assign(struct map *map, size_t from, size_t to, place_set valid);

/* In [from, to): these places hold the newest bytes as well. False: nothing changed. */
bool syncedmem_map_add(struct map *map, size_t from, size_t to, place_set valid);

/* In [from, to): these places do not hold the newest bytes any more, except where no other does. */
void syncedmem_map_remove(struct map *map, size_t from, size_t to, place_set stale);

/* In [from, to): these places do not hold the newest bytes any more; where no other does, `instead`
 * is what there is. */
void syncedmem_map_withdraw(struct map *map, size_t from, size_t to, place_set stale,
                            place_set instead);

/* Joins all neighbours that are equal. */
void syncedmem_map_join_all(struct map *map);

/* How many bytes of [from, to) are valid at all of these places. */
size_t syncedmem_map_valid_bytes(const struct map *map, size_t from, size_t to, place_set places);

/* What the segments of a range have in common. */
struct map_summary {
    place_set in_all; /* valid in every segment that is not fresh */
    place_set in_any; /* valid in at least one segment; LOST if one is */
    bool has_fresh;
};

struct map_summary syncedmem_map_summary(const struct map *map, size_t from, size_t to);

#endif
