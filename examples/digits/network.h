/* SPDX-License-Identifier: BSD-2-Clause */
/* The network: pixels, a hidden layer with ReLU, a class. Its numbers live in synced buffers. */
#ifndef DIGITS_NETWORK_H
#define DIGITS_NETWORK_H

#include "data.h"
#include "random.h"
#include "tensor.h"

enum {
    NETWORK_HIDDEN = 128,
    NETWORK_PARAMETERS = (DATA_PIXELS + 1) * NETWORK_HIDDEN + (NETWORK_HIDDEN + 1) * DATA_CLASSES
};

/* One number per parameter, in one buffer: the parameters, their gradients or velocities. */
struct parameters {
    syncedmem_buffer *buffer;
    struct tensor all; /* the four below as one row */
    struct tensor hidden_weights;
    struct tensor hidden_bias;
    struct tensor output_weights;
    struct tensor output_bias;
};

/* What the network makes of so many digits. */
struct activations {
    syncedmem_buffer *buffer;
    struct tensor hidden;
    struct tensor logits;
    struct tensor hidden_gradient;
    struct tensor logits_gradient;
};

struct network {
    struct device *device;
    struct parameters parameters;
    struct parameters gradients;
    struct parameters velocities;
};

/* Both need their release, also after a failure. Release nothing before the device is closed. */
syncedmem_status_t network_create(struct device *device, struct random *random,
                                  struct network *out_network);
void network_release(struct network *network);

syncedmem_status_t activations_create(uint32_t rows, struct activations *out_activations);
void activations_release(struct activations *activations);

/* One step of that size in learning from a batch; leaves the loss of each digit in `losses`. */
syncedmem_status_t network_learn(struct network *network, struct activations *activations,
                                 struct tensor pixels, struct tensor classes, struct tensor losses,
                                 float rate);

/* Reads digits: leaves the class of each in `classes`. */
syncedmem_status_t network_classify(struct network *network, struct activations *activations,
                                    struct tensor pixels, struct tensor classes);

#endif
