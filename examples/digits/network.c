/* SPDX-License-Identifier: BSD-2-Clause */
#include "network.h"

#include <math.h>

#include "try.h"

static const float momentum = 0.9F;

/* ---- Life ---- */

static syncedmem_status_t parameters_create(struct parameters *parameters)
{
    TRY(syncedmem_create(NETWORK_PARAMETERS * sizeof(float), &parameters->buffer));
    syncedmem_buffer *buffer = parameters->buffer;
    size_t end = 0;
    parameters->all = tensor_lay(buffer, &end, 1, NETWORK_PARAMETERS);
    end = 0;
    parameters->hidden_weights = tensor_lay(buffer, &end, DATA_PIXELS, NETWORK_HIDDEN);
    parameters->hidden_bias = tensor_lay(buffer, &end, 1, NETWORK_HIDDEN);
    parameters->output_weights = tensor_lay(buffer, &end, NETWORK_HIDDEN, DATA_CLASSES);
    parameters->output_bias = tensor_lay(buffer, &end, 1, DATA_CLASSES);
    return SYNCEDMEM_OK;
}

/* Evenly between two limits that keep the size of the numbers from layer to layer (He, 2015). */
static syncedmem_status_t fill_weights(struct tensor weights, struct random *random)
{
    void *elements;
    TRY(tensor_write(weights, &elements));
    float *numbers = elements;
    const float limit = sqrtf(6.0F / (float)weights.rows);
    for (uint32_t i = 0; i < tensor_count(weights); i++)
        numbers[i] = random_within(random, limit);
    return SYNCEDMEM_OK;
}

syncedmem_status_t network_create(struct device *device, struct random *random,
                                  struct network *out_network)
{
    *out_network = (struct network){.device = device};
    TRY(parameters_create(&out_network->parameters));
    TRY(parameters_create(&out_network->gradients));
    TRY(parameters_create(&out_network->velocities));
    /* Biases and velocities start as 0, which every new buffer is, wherever it is used first. */
    TRY(fill_weights(out_network->parameters.hidden_weights, random));
    return fill_weights(out_network->parameters.output_weights, random);
}

void network_release(struct network *network)
{
    syncedmem_release(network->parameters.buffer);
    syncedmem_release(network->gradients.buffer);
    syncedmem_release(network->velocities.buffer);
    *network = (struct network){0};
}

syncedmem_status_t activations_create(uint32_t rows, struct activations *out_activations)
{
    *out_activations = (struct activations){0};
    const size_t row = 2 * (NETWORK_HIDDEN + DATA_CLASSES) * sizeof(float);
    TRY(syncedmem_create(rows * row, &out_activations->buffer));
    syncedmem_buffer *buffer = out_activations->buffer;
    size_t end = 0;
    out_activations->hidden = tensor_lay(buffer, &end, rows, NETWORK_HIDDEN);
    out_activations->logits = tensor_lay(buffer, &end, rows, DATA_CLASSES);
    out_activations->hidden_gradient = tensor_lay(buffer, &end, rows, NETWORK_HIDDEN);
    out_activations->logits_gradient = tensor_lay(buffer, &end, rows, DATA_CLASSES);
    return SYNCEDMEM_OK;
}

void activations_release(struct activations *activations)
{
    syncedmem_release(activations->buffer);
    *activations = (struct activations){0};
}

/* ---- Work ---- */

static syncedmem_status_t forward(struct network *network, struct activations *activations,
                                  struct tensor pixels)
{
    struct device *device = network->device;
    const struct parameters *with = &network->parameters;
    TRY(tensor_matmul(device, pixels, with->hidden_weights, activations->hidden));
    TRY(tensor_add_bias(device, with->hidden_bias, activations->hidden));
    TRY(tensor_relu(device, activations->hidden));
    TRY(tensor_matmul(device, activations->hidden, with->output_weights, activations->logits));
    return tensor_add_bias(device, with->output_bias, activations->logits);
}

static syncedmem_status_t backward(struct network *network, struct activations *activations,
                                   struct tensor pixels)
{
    struct device *device = network->device;
    const struct parameters *into = &network->gradients;
    const struct tensor logits = activations->logits_gradient;
    const struct tensor hidden = activations->hidden_gradient;
    TRY(tensor_matmul_at(device, activations->hidden, logits, into->output_weights));
    TRY(tensor_bias_gradient(device, logits, into->output_bias));
    TRY(tensor_matmul_bt(device, logits, network->parameters.output_weights, hidden));
    TRY(tensor_relu_gradient(device, activations->hidden, hidden));
    TRY(tensor_matmul_at(device, pixels, hidden, into->hidden_weights));
    return tensor_bias_gradient(device, hidden, into->hidden_bias);
}

syncedmem_status_t network_learn(struct network *network, struct activations *activations,
                                 struct tensor pixels, struct tensor classes, struct tensor losses,
                                 float rate)
{
    TRY(forward(network, activations, pixels));
    TRY(tensor_softmax_loss(network->device, activations->logits, classes,
                            activations->logits_gradient, losses));
    TRY(backward(network, activations, pixels));
    return tensor_sgd(network->device, network->gradients.all, network->velocities.all,
                      network->parameters.all, rate, momentum);
}

syncedmem_status_t network_classify(struct network *network, struct activations *activations,
                                    struct tensor pixels, struct tensor classes)
{
    TRY(forward(network, activations, pixels));
    return tensor_argmax(network->device, activations->logits, classes);
}
