/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer with a crowded map: pieces written by leases, and the bytes it has to hold.
 *
 * Pieces of one length with gaps of one length between lie behind an edge that is dearer to merge
 * than all of them.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_CROWD_H
#define SYNCEDMEM_TESTS_UNIT_CROWD_H

#include <stdlib.h>

#include "core/map.h"
#include "support.h"

enum { PIECES = (MAP_LIMIT - 1) / 2, EDGE = 65536 };

/* Gaps that a merge down to MAP_EXACT has to close: each takes two segments away. */
enum { CLOSED = (2 * PIECES + 1 - MAP_EXACT + 1) / 2 };

struct crowd {
    syncedmem_buffer *buffer;
    size_t size;
    unsigned char *bytes; /* what the buffer holds */
};

static inline void crowd_make(struct crowd *crowd, size_t size)
{
    crowd->size = size;
    crowd->bytes = calloc(1, size);
    cr_assert_not_null(crowd->bytes);
    assert_ok(syncedmem_create(size, &crowd->buffer));
}

static inline void crowd_check(const struct crowd *crowd, unsigned device)
{
    const void *host;
    void *there;
    size_t offset;
    syncedmem_token_t token;
    unsigned char *copy = malloc(crowd->size);
    assert_ok(syncedmem_begin(crowd->buffer, sim(device), SYNCEDMEM_READ, 0, crowd->size, NULL,
                              &there, &offset, &token));
    device_read(device, there, copy, crowd->size);
    assert_ok(syncedmem_end(crowd->buffer, token));
    cr_assert(memcmp(copy, crowd->bytes, crowd->size) == 0, "device %u", device);
    assert_ok(syncedmem_cpu_data(crowd->buffer, &host));
    cr_assert(memcmp(host, crowd->bytes, crowd->size) == 0, "host");
    free(copy);
}

static inline void crowd_end(struct crowd *crowd)
{
    syncedmem_release(crowd->buffer);
    free(crowd->bytes);
}

/* device -1: the host. */
static inline syncedmem_status_t put(struct crowd *crowd, int device, size_t from, size_t length,
                                     unsigned char value)
{
    void *pointer;
    syncedmem_token_t token;
    syncedmem_place *place = device < 0 ? syncedmem_host() : sim((unsigned)device);
    const syncedmem_status_t status = syncedmem_begin(crowd->buffer, place, SYNCEDMEM_WRITE, from,
                                                      length, NULL, &pointer, NULL, &token);
    if (status != SYNCEDMEM_OK) {
        return status;
    }
    memset(crowd->bytes + from, value, length);
    if (device < 0) {
        memset(pointer, value, length);
    } else {
        device_write((unsigned)device, pointer, crowd->bytes + from, length);
    }
    return syncedmem_end(crowd->buffer, token);
}

static inline void fill_all(struct crowd *crowd, int device, unsigned char value)
{
    assert_ok(put(crowd, device, 0, crowd->size, value));
}

static inline size_t piece_start(size_t index, size_t length, size_t gap)
{
    return EDGE + index * (length + gap);
}

static inline size_t size_for(size_t pieces, size_t length, size_t gap)
{
    return piece_start(pieces, length, gap) + EDGE;
}

static inline void put_pieces(struct crowd *crowd, int device, size_t pieces, size_t length,
                              size_t gap)
{
    for (size_t i = 0; i < pieces; i++) {
        assert_ok(put(crowd, device, piece_start(i, length, gap), length, (unsigned char)(i | 1)));
    }
}

static inline size_t valid_at(const struct crowd *crowd, syncedmem_place *place)
{
    size_t bytes;
    assert_ok(syncedmem_valid_bytes(crowd->buffer, place, 0, crowd->size, &bytes));
    return bytes;
}

static inline uint64_t merges(const struct crowd *crowd)
{
    return stat_of(crowd->buffer, SYNCEDMEM_STAT_MERGES);
}

/* A change that changes nothing, and looks after the map as all do. */
static inline syncedmem_status_t nudge(struct crowd *crowd, int device, size_t length, size_t gap)
{
    const size_t at = piece_start(3, length, gap);
    return put(crowd, device, at, length, crowd->bytes[at]);
}

#endif
