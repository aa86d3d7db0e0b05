/* SPDX-License-Identifier: BSD-2-Clause */
/* Learning from most of the digits, and reading those that were held out. */
#ifndef DIGITS_TRAINING_H
#define DIGITS_TRAINING_H

#include "loader.h"
#include "network.h"

enum {
    TRAINING_BATCH = 50,
    TRAINING_HELD_OUT = 297, /* the last ones, which the network never learns from */
    TRAINING_LEAST = TRAINING_BATCH + TRAINING_HELD_OUT
};

struct training {
    const struct data *data;
    uint32_t learned; /* how many digits to learn from; the rest is held out */
    uint32_t batches; /* in an epoch */
    float rate;       /* size of the steps, smaller in each epoch */
    struct network network;

    struct source source;
    struct loader loader;
    struct activations batch_activations;
    syncedmem_buffer *losses_buffer;
    struct tensor losses; /* of the digits of an epoch */

    struct batch held_out;
    struct activations held_out_activations;
    syncedmem_buffer *read_as_buffer;
    struct tensor read_as; /* classes of the digits held out, as the network reads them */
};

struct epoch {
    double loss;    /* mean of the digits learned from */
    uint32_t right; /* of the digits held out */
};

struct plan {
    uint64_t seed;
    uint32_t epochs;
    uint32_t ahead; /* batches to prepare ahead */
};

/*
 * Needs at least TRAINING_LEAST digits, which stay the caller's, and its release, also after a
 * failure. Release it after device_close(), which waits for the kernels that use its memory.
 */
syncedmem_status_t training_create(struct device *device, const struct data *data, struct plan plan,
                                   struct training *out_training);
void training_release(struct training *training);

/* One line about the latest failure of any of these. Never NULL. */
const char *training_error(const struct training *training);

/* Goes through the digits once, in a new order, then reads those held out: as often as planned. */
syncedmem_status_t training_epoch(struct training *training, struct epoch *out_epoch);

/* What the digits held out were read as, after an epoch: one class for each. */
syncedmem_status_t training_read_as(struct training *training, const uint32_t **out_classes);

/* A hash over all bits of the parameters. */
syncedmem_status_t training_fingerprint(struct training *training, uint64_t *out_hash);

#endif
