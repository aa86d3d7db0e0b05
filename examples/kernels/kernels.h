/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels of a small neural network: the same calls for every kind of place.
 *
 * A kernel works on memory at one place. Memory is an address, as syncedmem_gpu_data() gives it
 * out (syncedmem_cpu_data() for the host), and an offset in bytes: on some backends the address
 * is a handle that no offset can be added to.
 *
 *     kernels_set *device_kernels;
 *     kernels_open(place, stream, &device_kernels);
 *     kernels_matmul(device_kernels, a, b, c, rows, columns, inner);  // queued, in order
 *     kernels_close(device_kernels);                                  // waits for them
 *
 * - Matrices are dense, row by row, of 32-bit floats. Classes are uint32_t.
 * - A call returns when the kernel is queued on the stream; on the host, when it is done.
 * - An output may not overlap an input, except where a parameter is named as both (`inout`).
 * - The order of the float operations is fixed: the same numbers give the same result, bit for bit,
 *   on the host and on a simulated device.
 * - One set is for one thread at a time.
 *
 *   backend.h   what a backend implements
 *   kernels.c   the calls below; chooses the backend
 *   plain.c     the kernels as C functions
 *   host.c      runs them on the host
 *   sim.c       runs them on a simulated device
 */
#ifndef EXAMPLES_KERNELS_H
#define EXAMPLES_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include <syncedmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels of one place, queued on one stream. */
typedef struct kernels_set kernels_set;

/* Memory that a kernel reads. */
typedef struct kernels_in {
    const void *address;
    size_t offset; /* in bytes */
} kernels_in;

/* Memory that a kernel writes, or reads and writes. */
typedef struct kernels_out {
    void *address;
    size_t offset; /* in bytes */
} kernels_out;

/*
 * Makes the kernels of a place ready. UNSUPPORTED where its backend has none.
 *
 * The stream is one of that place, and NULL for the host. It stays the caller's, who releases it
 * after kernels_close().
 */
syncedmem_status_t kernels_open(syncedmem_place *place, syncedmem_stream *stream,
                                kernels_set **out_kernels);

/* Waits for the kernels that were queued, then frees. NULL is fine. */
void kernels_close(kernels_set *kernels);

/*
 * One line about the latest failure of a call in this header on this thread; where the latest
 * one did not fail by itself, what syncedmem_last_error() says. Never NULL.
 */
const char *kernels_last_error(void);

/* c = a b: a has `rows` x `inner` floats, b `inner` x `columns`, c `rows` x `columns`. */
syncedmem_status_t kernels_matmul(kernels_set *kernels, kernels_in a, kernels_in b, kernels_out c,
                                  uint32_t rows, uint32_t columns, uint32_t inner);

/* c = aT b: a has `inner` x `rows` floats, b `inner` x `columns`, c `rows` x `columns`. */
syncedmem_status_t kernels_matmul_at(kernels_set *kernels, kernels_in a, kernels_in b,
                                     kernels_out c, uint32_t rows, uint32_t columns,
                                     uint32_t inner);

/* c = a bT: a has `rows` x `inner` floats, b `columns` x `inner`, c `rows` x `columns`. */
syncedmem_status_t kernels_matmul_bt(kernels_set *kernels, kernels_in a, kernels_in b,
                                     kernels_out c, uint32_t rows, uint32_t columns,
                                     uint32_t inner);

/* Adds the bias, `columns` floats, to every row. */
syncedmem_status_t kernels_add_bias(kernels_set *kernels, kernels_in bias, kernels_out inout,
                                    uint32_t rows, uint32_t columns);

/* The gradient of the bias: the sum of all rows, `columns` floats. */
syncedmem_status_t kernels_bias_gradient(kernels_set *kernels, kernels_in gradient, kernels_out out,
                                         uint32_t rows, uint32_t columns);

/* Every negative number becomes 0. */
syncedmem_status_t kernels_relu(kernels_set *kernels, kernels_out inout, uint32_t count);

/* The gradient becomes 0 where the activation, what kernels_relu() left, is 0. */
syncedmem_status_t kernels_relu_gradient(kernels_set *kernels, kernels_in activation,
                                         kernels_out inout, uint32_t count);

/*
 * Softmax and cross entropy in one: for each row its loss, and for each logit the gradient of the
 * mean loss of all rows. Every class must be less than `columns`.
 */
syncedmem_status_t kernels_softmax_loss(kernels_set *kernels, kernels_in logits, kernels_in classes,
                                        kernels_out gradient, kernels_out losses, uint32_t rows,
                                        uint32_t columns);

/* For each row the column of its largest number, as a class; the first of equal ones. */
syncedmem_status_t kernels_argmax(kernels_set *kernels, kernels_in logits, kernels_out classes,
                                  uint32_t rows, uint32_t columns);

/* velocity = momentum * velocity - rate * gradient; then parameters += velocity. */
syncedmem_status_t kernels_sgd(kernels_set *kernels, kernels_in gradient, kernels_out velocity,
                               kernels_out parameters, uint32_t count, float rate, float momentum);

#ifdef __cplusplus
}
#endif

#endif
