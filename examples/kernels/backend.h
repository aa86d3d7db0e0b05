/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a backend of the kernels implements: one file, one `const struct kernels_backend`.
 *
 * A call carries everything that a kernel needs in two parts: memory, in the order inputs, then
 * outputs, as the parameters of kernels.h; and arguments, the same small struct for all kernels,
 * so that a GPU takes it by value.
 */
#ifndef EXAMPLES_KERNELS_BACKEND_H
#define EXAMPLES_KERNELS_BACKEND_H

#include "kernels.h"

enum kernels_id {
    KERNELS_MATMUL,
    KERNELS_MATMUL_AT,
    KERNELS_MATMUL_BT,
    KERNELS_ADD_BIAS,
    KERNELS_BIAS_GRADIENT,
    KERNELS_RELU,
    KERNELS_RELU_GRADIENT,
    KERNELS_SOFTMAX_LOSS,
    KERNELS_ARGMAX,
    KERNELS_SGD,
    KERNELS_COUNT
};

/* A kernel reads only the ones that it has. */
struct kernels_arguments {
    uint32_t rows;
    uint32_t columns;
    uint32_t inner;
    uint32_t count;
    float rate;
    float momentum;
};

enum { KERNELS_MEMORY_LIMIT = 4 };

struct kernels_call {
    enum kernels_id kernel;
    struct kernels_arguments arguments;
    kernels_in memory[KERNELS_MEMORY_LIMIT];
    size_t memory_count;
};

struct kernels_backend {
    const char *name; /* as SYNCEDMEM_PLACE_BACKEND says it */

    /* Prepare and clean up `state`. Both NULL where there is nothing to do. */
    syncedmem_status_t (*open)(kernels_set *kernels);
    void (*close)(kernels_set *kernels);

    /* Queues one kernel. No address is NULL. */
    syncedmem_status_t (*launch)(kernels_set *kernels, const struct kernels_call *call);
};

struct kernels_set {
    const struct kernels_backend *backend;
    syncedmem_place *place;
    syncedmem_stream *stream; /* NULL: the host */
    void *state;              /* the backend's own */
};

extern const struct kernels_backend kernels_backend_host;
extern const struct kernels_backend kernels_backend_sim;

/* Name of a kernel, "matmul": what it is called in a GPU's source. */
const char *kernels_name(enum kernels_id kernel);

/* Keeps one line for kernels_last_error() and returns the status. */
syncedmem_status_t kernels_error(syncedmem_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The kernels as C functions, as syncedmem_sim_launch() takes them; offsets are applied already. */
typedef void (*kernels_plain_fn)(void *arguments, void *const *addresses, size_t count);
extern const kernels_plain_fn kernels_plain[KERNELS_COUNT];

#endif
