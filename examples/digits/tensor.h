/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matrices in synced buffers, and the kernels on them.
 *
 * Each operation asks the library for its operands at the device, for reading or for writing, and
 * queues the kernel. What is there already does not move; no code here says what moves when.
 */
#ifndef DIGITS_TENSOR_H
#define DIGITS_TENSOR_H

#include "device.h"

/* Elements of 4 bytes: floats, or classes. Several tensors may share a buffer. */
struct tensor {
    syncedmem_buffer *buffer;
    size_t offset; /* in bytes */
    uint32_t rows;
    uint32_t columns;
};

uint32_t tensor_count(struct tensor tensor);
size_t tensor_bytes(struct tensor tensor);

/* Lays a tensor over a buffer, behind the ones laid before; *end is where it stops, in bytes. */
struct tensor tensor_lay(syncedmem_buffer *buffer, size_t *end, uint32_t rows, uint32_t columns);

/* Rows of a tensor, in its place. */
struct tensor tensor_rows(struct tensor tensor, uint32_t first, uint32_t count);

/* The bytes on the host. */
syncedmem_status_t tensor_read(struct tensor tensor, const void **out_elements);
syncedmem_status_t tensor_write(struct tensor tensor, void **out_elements);

/* c = a b; c = aT b; c = a bT. */
syncedmem_status_t tensor_matmul(struct device *device, struct tensor a, struct tensor b,
                                 struct tensor c);
syncedmem_status_t tensor_matmul_at(struct device *device, struct tensor a, struct tensor b,
                                    struct tensor c);
syncedmem_status_t tensor_matmul_bt(struct device *device, struct tensor a, struct tensor b,
                                    struct tensor c);

syncedmem_status_t tensor_add_bias(struct device *device, struct tensor bias, struct tensor inout);
syncedmem_status_t tensor_bias_gradient(struct device *device, struct tensor gradient,
                                        struct tensor out);
syncedmem_status_t tensor_relu(struct device *device, struct tensor inout);
syncedmem_status_t tensor_relu_gradient(struct device *device, struct tensor activation,
                                        struct tensor inout);
syncedmem_status_t tensor_softmax_loss(struct device *device, struct tensor logits,
                                       struct tensor classes, struct tensor gradient,
                                       struct tensor losses);
syncedmem_status_t tensor_argmax(struct device *device, struct tensor logits,
                                 struct tensor classes);
syncedmem_status_t tensor_sgd(struct device *device, struct tensor gradient, struct tensor velocity,
                              struct tensor parameters, float rate, float momentum);

#endif
