/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "core/map.h"

enum { FIRST_CAPACITY = 16 };

void syncedmem_map_init(struct map *map, size_t span)
{
    *map = (struct map){.span = span, .count = 1, .capacity = 1, .segments = &map->single};
}

void syncedmem_map_destroy(struct map *map)
{
    if (map->segments != &map->single)
        free(map->segments);
}

static __attribute__((cold)) bool grow(struct map *map)
{
    const size_t capacity = map->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : map->capacity * 2;
    struct segment *segments = malloc(capacity * sizeof *segments);
    if (!segments)
        return false;
    memcpy(segments, map->segments, map->count * sizeof *segments);
    syncedmem_map_destroy(map);
    map->segments = segments;
    map->capacity = capacity;
    return true;
}

bool syncedmem_map_reserve(struct map *map, size_t from, size_t to)
{
    /* A change may cut at each end of its range that is not an end of the span. */
    const size_t cuts = (size_t)(from > 0) + (size_t)(to < map->span);
    return map->count + cuts <= map->capacity || grow(map);
}

size_t syncedmem_map_find(const struct map *map, size_t offset)
{
    size_t low = 0, high = map->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (map->segments[middle].start <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

size_t syncedmem_map_end(const struct map *map, size_t index)
{
    return index + 1 < map->count ? map->segments[index + 1].start : map->span;
}

/* Makes `offset` the start of a segment and returns its index; count at the end of the span. */
static size_t cut(struct map *map, size_t offset)
{
    if (offset == map->span)
        return map->count;
    const size_t index = syncedmem_map_find(map, offset);
    if (map->segments[index].start == offset)
        return index;
    memmove(&map->segments[index + 2], &map->segments[index + 1],
            (map->count - index - 1) * sizeof *map->segments);
    map->segments[index + 1] =
        (struct segment){.start = offset, .valid = map->segments[index].valid};
    map->count++;
    return index + 1;
}

/* Joins neighbours in [first, last] that have become equal, the ones on either side included. */
static void join(struct map *map, size_t first, size_t last)
{
    size_t kept = first > 0 ? first - 1 : 0;
    size_t next = kept + 1;
    for (; next < map->count && next <= last; next++)
        if (map->segments[next].valid != map->segments[kept].valid)
            map->segments[++kept] = map->segments[next];
    if (next == kept + 1)
        return;
    memmove(&map->segments[kept + 1], &map->segments[next],
            (map->count - next) * sizeof *map->segments);
    map->count -= next - kept - 1;
}

void syncedmem_map_join_all(struct map *map)
{
    join(map, 0, map->count);
}

struct change {
    place_set places;
    place_set instead; /* used by a withdrawal only */
};

typedef place_set (*change_fn)(place_set valid, struct change change);

static place_set assign(place_set valid, struct change change)
{
    (void)valid;
    return change.places;
}

static place_set add(place_set valid, struct change change)
{
    return valid | change.places;
}

static place_set remove_unless_last(place_set valid, struct change change)
{
    return valid & ~change.places ? valid & ~change.places : valid;
}

static place_set withdraw(place_set valid, struct change change)
{
    if (!(valid & change.places))
        return valid;
    return valid & ~change.places ? valid & ~change.places : change.instead;
}

/* A range inside of one segment, with something left of it on either side: no neighbour can be
 * equal to it, and all that comes after moves once. */
static inline void split(struct map *map, size_t index, size_t from, size_t to, place_set valid)
{
    struct segment *segment = &map->segments[index];
    memmove(segment + 3, segment + 1, (map->count - index - 1) * sizeof *segment);
    segment[1] = (struct segment){.start = from, .valid = valid};
    segment[2] = (struct segment){.start = to, .valid = segment->valid};
    map->count += 2;
}

static inline void change_many(struct map *map, size_t from, size_t to, change_fn function,
                               struct change change)
{
    const size_t first = cut(map, from);
    const size_t last = cut(map, to);
    for (size_t i = first; i < last; i++)
        map->segments[i].valid = function(map->segments[i].valid, change);
    join(map, first, last);
}

/* Most ranges lie in one segment, and most of these change nothing. */
static inline bool apply(struct map *map, size_t from, size_t to, change_fn function,
                         struct change change)
{
    const size_t index = syncedmem_map_find(map, from);
    const size_t end = syncedmem_map_end(map, index);
    const place_set valid = function(map->segments[index].valid, change);
    if (to <= end && valid == map->segments[index].valid)
        return false;
    if (map->segments[index].start < from && to < end)
        split(map, index, from, to, valid);
    else
        change_many(map, from, to, function, change);
    return true;
}

bool syncedmem_map_assign(struct map *map, size_t from, size_t to, place_set valid)
{
    return apply(map, from, to, assign, (struct change){valid, 0});
}

bool syncedmem_map_add(struct map *map, size_t from, size_t to, place_set valid)
{
    return apply(map, from, to, add, (struct change){valid, 0});
}

void syncedmem_map_remove(struct map *map, size_t from, size_t to, place_set stale)
{
    apply(map, from, to, remove_unless_last, (struct change){stale, 0});
}

void syncedmem_map_withdraw(struct map *map, size_t from, size_t to, place_set stale,
                            place_set instead)
{
    apply(map, from, to, withdraw, (struct change){stale, instead});
}

struct map_summary syncedmem_map_summary(const struct map *map, size_t from, size_t to)
{
    struct map_summary summary = {.in_all = ~(place_set)0};
    if (from == to)
        return summary;
    for (size_t i = syncedmem_map_find(map, from); i < map->count && map->segments[i].start < to;
         i++) {
        const place_set valid = map->segments[i].valid;
        if (valid)
            summary.in_all &= valid;
        else
            summary.has_fresh = true;
        summary.in_any |= valid;
    }
    return summary;
}

static size_t overlap(const struct map *map, size_t index, size_t from, size_t to)
{
    const size_t start = map->segments[index].start, end = syncedmem_map_end(map, index);
    return (end < to ? end : to) - (start > from ? start : from);
}

size_t syncedmem_map_valid_bytes(const struct map *map, size_t from, size_t to, place_set places)
{
    size_t bytes = 0;
    for (size_t i = syncedmem_map_find(map, from); i < map->count && map->segments[i].start < to;
         i++)
        if ((map->segments[i].valid & places) == places)
            bytes += overlap(map, i, from, to);
    return bytes;
}
