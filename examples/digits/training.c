/* SPDX-License-Identifier: BSD-2-Clause */
#include "training.h"

#include "try.h"

static const float first_rate = 0.1F;
static const float rate_decay = 0.97F;

static syncedmem_status_t create_learning(struct training *training)
{
    const uint32_t losses = training->batches * TRAINING_BATCH;
    size_t end = 0;
    TRY(activations_create(TRAINING_BATCH, &training->batch_activations));
    TRY(syncedmem_create(losses * sizeof(float), &training->losses_buffer));
    training->losses = tensor_lay(training->losses_buffer, &end, losses, 1);
    return SYNCEDMEM_OK;
}

static syncedmem_status_t create_reading(struct training *training)
{
    size_t end = 0;
    TRY(batch_create(TRAINING_HELD_OUT, &training->held_out));
    TRY(activations_create(TRAINING_HELD_OUT, &training->held_out_activations));
    TRY(syncedmem_create(TRAINING_HELD_OUT * sizeof(uint32_t), &training->read_as_buffer));
    training->read_as = tensor_lay(training->read_as_buffer, &end, TRAINING_HELD_OUT, 1);
    return source_fill_held_out(&training->source, &training->held_out);
}

syncedmem_status_t training_create(struct device *device, const struct data *data, struct plan plan,
                                   struct training *out_training)
{
    struct random random = {plan.seed};
    *out_training = (struct training){
        .data = data,
        .learned = data->count - TRAINING_HELD_OUT,
        .batches = (data->count - TRAINING_HELD_OUT) / TRAINING_BATCH,
        .rate = first_rate,
    };
    struct training *training = out_training;
    TRY(network_create(device, &random, &training->network));
    TRY(source_create(data, training->learned, random, &training->source));
    TRY(create_learning(training));
    TRY(create_reading(training));
    /* The last, because the source is the loader's from now on. */
    return loader_create(device, &training->source, TRAINING_BATCH, plan.ahead,
                         (uint64_t)plan.epochs * training->batches, &training->loader);
}

void training_release(struct training *training)
{
    loader_release(&training->loader);
    source_release(&training->source);
    network_release(&training->network);
    activations_release(&training->batch_activations);
    syncedmem_release(training->losses_buffer);
    batch_release(&training->held_out);
    activations_release(&training->held_out_activations);
    syncedmem_release(training->read_as_buffer);
    *training = (struct training){0};
}

const char *training_error(const struct training *training)
{
    const char *error = loader_error(&training->loader);
    return error ? error : kernels_last_error();
}

static syncedmem_status_t learn(struct training *training)
{
    for (uint32_t i = 0; i < training->batches; i++) {
        const struct batch *batch;
        TRY(loader_next(&training->loader, &batch));
        TRY(network_learn(
            &training->network, &training->batch_activations, batch->pixels, batch->classes,
            tensor_rows(training->losses, i * TRAINING_BATCH, TRAINING_BATCH), training->rate));
        loader_done(&training->loader);
    }
    training->rate *= rate_decay;
    return SYNCEDMEM_OK;
}

static syncedmem_status_t mean_loss(struct training *training, double *out_loss)
{
    const void *elements;
    TRY(tensor_read(training->losses, &elements));
    const float *losses = elements;
    double sum = 0;
    for (uint32_t i = 0; i < training->losses.rows; i++)
        sum += (double)losses[i];
    *out_loss = sum / training->losses.rows;
    return SYNCEDMEM_OK;
}

static syncedmem_status_t count_right(struct training *training, uint32_t *out_right)
{
    const uint32_t *read_as;
    TRY(training_read_as(training, &read_as));
    *out_right = 0;
    for (uint32_t i = 0; i < TRAINING_HELD_OUT; i++) {
        if (read_as[i] == training->data->digits[training->learned + i].class)
            ++*out_right;
    }
    return SYNCEDMEM_OK;
}

syncedmem_status_t training_epoch(struct training *training, struct epoch *out_epoch)
{
    *out_epoch = (struct epoch){0};
    TRY(learn(training));
    TRY(network_classify(&training->network, &training->held_out_activations,
                         training->held_out.pixels, training->read_as));
    TRY(mean_loss(training, &out_epoch->loss));
    return count_right(training, &out_epoch->right);
}

syncedmem_status_t training_read_as(struct training *training, const uint32_t **out_classes)
{
    const void *elements;
    *out_classes = NULL;
    TRY(tensor_read(training->read_as, &elements));
    *out_classes = elements;
    return SYNCEDMEM_OK;
}

/* FNV-1a, by Fowler, Noll and Vo. */
syncedmem_status_t training_fingerprint(struct training *training, uint64_t *out_hash)
{
    const void *elements;
    *out_hash = 0;
    TRY(tensor_read(training->network.parameters.all, &elements));
    const unsigned char *bytes = elements;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < tensor_bytes(training->network.parameters.all); i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    *out_hash = hash;
    return SYNCEDMEM_OK;
}
