/* SPDX-License-Identifier: BSD-2-Clause */
/* The other side of a transfer: memory of both kinds, and plain copies between. */
#ifndef SYNCEDMEM_BENCH_RAW_H
#define SYNCEDMEM_BENCH_RAW_H

#include <stdlib.h>

#include "plain.h"
#include "run.h"

struct raw {
    void *host;
    void *device;
    size_t size;
};

static inline void copy_to_device(void *context)
{
    const struct raw *raw = context;
    plain_copy(raw->device, raw->host, raw->size);
}

static inline struct raw make_raw(size_t size)
{
    struct raw raw = {.host = malloc(size), .device = plain_device_alloc(size), .size = size};
    BENCH_REQUIRE(raw.host != NULL && raw.device != NULL);
    plain_write(raw.host, size, WRITE_EVERY_BYTE);
    plain_write(raw.device, size, WRITE_EVERY_BYTE);
    return raw;
}

static inline void end_raw(const struct raw *raw)
{
    plain_device_free(raw->device, raw->size);
    free(raw->host);
}

#endif
