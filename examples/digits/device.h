/* SPDX-License-Identifier: BSD-2-Clause */
/* The place that computes, and what copying around every kernel would have moved. */
#ifndef DIGITS_DEVICE_H
#define DIGITS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <kernels.h>
#include <syncedmem.h>

/* Transfers and their bytes, in each direction. */
struct traffic {
    uint64_t to_device;
    uint64_t to_host;
    uint64_t bytes_to_device;
    uint64_t bytes_to_host;
};

struct device {
    syncedmem_place *place;
    syncedmem_stream *stream; /* NULL on the host */
    kernels_set *kernels;
    bool is_stand_in;     /* no GPU was found */
    struct traffic naive; /* counted by tensor.c */
};

/*
 * Opens the place with that name; for NULL the best GPU, or the simulated device where there is
 * none. Buffers of this thread live there from then on. Close it after a failure too.
 */
syncedmem_status_t device_open(const char *name, struct device *out_device);

/* Waits for the kernels, so that memory they use may go. */
void device_close(struct device *device);

/* What the library has moved in this process. */
syncedmem_status_t device_traffic(struct traffic *out_traffic);

#endif
