/* SPDX-License-Identifier: BSD-2-Clause */
/* Some digits in a synced buffer: the host fills it, the device reads it. */
#ifndef DIGITS_BATCH_H
#define DIGITS_BATCH_H

#include "data.h"
#include "random.h"
#include "tensor.h"

struct batch {
    syncedmem_buffer *buffer; /* one, so that a batch is one transfer */
    struct tensor pixels;     /* floats from 0 to 1 */
    struct tensor classes;
};

/* Needs its release, also after a failure. */
syncedmem_status_t batch_create(uint32_t digits, struct batch *out_batch);
void batch_release(struct batch *batch);

/*
 * Fills the batch with the digits at these indices, as many as it holds.
 *
 * With random numbers some are moved a pixel to the left or right, so that the network sees more
 * digits than there are, and learns that where one stands says nothing. NULL: as they are.
 */
syncedmem_status_t batch_fill(struct batch *batch, const struct data *data, const uint32_t *indices,
                              struct random *random);

#endif
