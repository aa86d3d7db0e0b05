/* SPDX-License-Identifier: BSD-2-Clause */
/* Where batches come from: the digits to learn from in a new order for each epoch, without end. */
#ifndef DIGITS_SOURCE_H
#define DIGITS_SOURCE_H

#include "batch.h"

struct source {
    const struct data *data;
    struct random random;
    syncedmem_buffer *order_buffer; /* used on the host only, so it is never anywhere else */
    uint32_t *order;                /* indices of all digits; those to learn from are shuffled */
    uint32_t learned;               /* how many digits to learn from; the rest is held out */
    uint32_t next;
};

/* The data stays the caller's. Needs its release, also after a failure. */
syncedmem_status_t source_create(const struct data *data, uint32_t learned, struct random random,
                                 struct source *out_source);
void source_release(struct source *source);

/* Fills the batch with the next digits. What is left of an epoch and fills no batch is skipped. */
syncedmem_status_t source_fill(struct source *source, struct batch *batch);

/* Fills the batch with the digits held out, as they are. */
syncedmem_status_t source_fill_held_out(const struct source *source, struct batch *batch);

#endif
