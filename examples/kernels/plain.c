/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels as C functions. Loops run so that memory is read along rows, and never change the
 * order of a sum, so the compiler cannot either: results are the same wherever this runs.
 */
#include <math.h>

#include "backend.h"

static void matmul(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *a = addresses[0];
    const float *b = addresses[1];
    float *c = addresses[2];
    const size_t columns = with->columns;
    const size_t inner = with->inner;
    (void)count;

    for (size_t i = 0; i < with->rows; i++) {
        float *c_row = c + i * columns;
        for (size_t j = 0; j < columns; j++)
            c_row[j] = 0;
        for (size_t k = 0; k < inner; k++) {
            const float factor = a[i * inner + k];
            const float *b_row = b + k * columns;
            for (size_t j = 0; j < columns; j++)
                c_row[j] += factor * b_row[j];
        }
    }
}

static void matmul_at(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *a = addresses[0];
    const float *b = addresses[1];
    float *c = addresses[2];
    const size_t rows = with->rows;
    const size_t columns = with->columns;
    (void)count;

    for (size_t i = 0; i < rows * columns; i++)
        c[i] = 0;
    for (size_t k = 0; k < with->inner; k++) {
        const float *b_row = b + k * columns;
        for (size_t i = 0; i < rows; i++) {
            const float factor = a[k * rows + i];
            float *c_row = c + i * columns;
            for (size_t j = 0; j < columns; j++)
                c_row[j] += factor * b_row[j];
        }
    }
}

static void matmul_bt(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *a = addresses[0];
    const float *b = addresses[1];
    float *c = addresses[2];
    const size_t columns = with->columns;
    const size_t inner = with->inner;
    (void)count;

    for (size_t i = 0; i < with->rows; i++) {
        const float *a_row = a + i * inner;
        for (size_t j = 0; j < columns; j++) {
            const float *b_row = b + j * inner;
            float sum = 0;
            for (size_t k = 0; k < inner; k++)
                sum += a_row[k] * b_row[k];
            c[i * columns + j] = sum;
        }
    }
}

static void add_bias(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *bias = addresses[0];
    float *inout = addresses[1];
    const size_t columns = with->columns;
    (void)count;

    for (size_t i = 0; i < with->rows; i++) {
        for (size_t j = 0; j < columns; j++)
            inout[i * columns + j] += bias[j];
    }
}

static void bias_gradient(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *gradient = addresses[0];
    float *out = addresses[1];
    const size_t columns = with->columns;
    (void)count;

    for (size_t j = 0; j < columns; j++)
        out[j] = 0;
    for (size_t i = 0; i < with->rows; i++) {
        for (size_t j = 0; j < columns; j++)
            out[j] += gradient[i * columns + j];
    }
}

static void relu(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    float *inout = addresses[0];
    (void)count;

    for (size_t i = 0; i < with->count; i++) {
        if (inout[i] < 0)
            inout[i] = 0;
    }
}

static void relu_gradient(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *activation = addresses[0];
    float *inout = addresses[1];
    (void)count;

    for (size_t i = 0; i < with->count; i++) {
        if (activation[i] <= 0)
            inout[i] = 0;
    }
}

static size_t largest(const float *row, size_t columns)
{
    size_t best = 0;
    for (size_t j = 1; j < columns; j++) {
        if (row[j] > row[best])
            best = j;
    }
    return best;
}

static void softmax_loss(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *logits = addresses[0];
    const uint32_t *classes = addresses[1];
    float *gradient = addresses[2];
    float *losses = addresses[3];
    const size_t columns = with->columns;
    const float share = 1.0F / (float)with->rows;
    (void)count;

    for (size_t i = 0; i < with->rows; i++) {
        const float *row = logits + i * columns;
        float *slope = gradient + i * columns;
        /* The largest is taken off first: exp() of it cannot overflow then. */
        const float top = row[largest(row, columns)];
        float sum = 0;
        for (size_t j = 0; j < columns; j++) {
            slope[j] = expf(row[j] - top);
            sum += slope[j];
        }
        for (size_t j = 0; j < columns; j++)
            slope[j] = slope[j] / sum * share;
        slope[classes[i]] -= share;
        losses[i] = logf(sum) - (row[classes[i]] - top);
    }
}

static void argmax(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *logits = addresses[0];
    uint32_t *classes = addresses[1];
    (void)count;

    for (size_t i = 0; i < with->rows; i++)
        classes[i] = (uint32_t)largest(logits + i * with->columns, with->columns);
}

static void sgd(void *arguments, void *const *addresses, size_t count)
{
    const struct kernels_arguments *with = arguments;
    const float *gradient = addresses[0];
    float *velocity = addresses[1];
    float *parameters = addresses[2];
    (void)count;

    for (size_t i = 0; i < with->count; i++) {
        velocity[i] = with->momentum * velocity[i] - with->rate * gradient[i];
        parameters[i] += velocity[i];
    }
}

const kernels_plain_fn kernels_plain[KERNELS_COUNT] = {
    [KERNELS_MATMUL] = matmul,
    [KERNELS_MATMUL_AT] = matmul_at,
    [KERNELS_MATMUL_BT] = matmul_bt,
    [KERNELS_ADD_BIAS] = add_bias,
    [KERNELS_BIAS_GRADIENT] = bias_gradient,
    [KERNELS_RELU] = relu,
    [KERNELS_RELU_GRADIENT] = relu_gradient,
    [KERNELS_SOFTMAX_LOSS] = softmax_loss,
    [KERNELS_ARGMAX] = argmax,
    [KERNELS_SGD] = sgd,
};
