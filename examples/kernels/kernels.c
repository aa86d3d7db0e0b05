/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

static const struct kernels_backend *const backends[] = {
    &kernels_backend_host,
    &kernels_backend_sim,
};

static const char *const names[KERNELS_COUNT] = {
    [KERNELS_MATMUL] = "matmul",
    [KERNELS_MATMUL_AT] = "matmul_at",
    [KERNELS_MATMUL_BT] = "matmul_bt",
    [KERNELS_ADD_BIAS] = "add_bias",
    [KERNELS_BIAS_GRADIENT] = "bias_gradient",
    [KERNELS_RELU] = "relu",
    [KERNELS_RELU_GRADIENT] = "relu_gradient",
    [KERNELS_SOFTMAX_LOSS] = "softmax_loss",
    [KERNELS_ARGMAX] = "argmax",
    [KERNELS_SGD] = "sgd",
};

/* ---- Errors ---- */

/* Empty: the latest call here did not fail by itself, so the library knows more. */
static _Thread_local char error_text[256];

syncedmem_status_t kernels_error(syncedmem_status_t status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_text, sizeof error_text, format, arguments);
    va_end(arguments);
    return status;
}

const char *kernels_last_error(void)
{
    return error_text[0] ? error_text : syncedmem_last_error();
}

const char *kernels_name(enum kernels_id kernel)
{
    return names[kernel];
}

/* ---- Open, close ---- */

static syncedmem_status_t find_backend(syncedmem_place *place,
                                       const struct kernels_backend **out_backend)
{
    const char *name;
    syncedmem_status_t status = syncedmem_device_text(place, SYNCEDMEM_PLACE_BACKEND, &name);
    if (status)
        return status;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (strcmp(backends[i]->name, name) == 0) {
            *out_backend = backends[i];
            return SYNCEDMEM_OK;
        }
    }
    return kernels_error(SYNCEDMEM_UNSUPPORTED, "there are no kernels for the backend \"%s\"",
                         name);
}

syncedmem_status_t kernels_open(syncedmem_place *place, syncedmem_stream *stream,
                                kernels_set **out_kernels)
{
    *out_kernels = NULL;
    error_text[0] = '\0';
    const struct kernels_backend *backend = NULL;
    syncedmem_status_t status = find_backend(place, &backend);
    if (status)
        return status;
    if (!stream != (place == syncedmem_host()))
        return kernels_error(SYNCEDMEM_INVALID_ARGUMENT,
                             "a device needs a stream, and the host has none");

    kernels_set *opened = calloc(1, sizeof *opened);
    if (!opened)
        return kernels_error(SYNCEDMEM_OUT_OF_HOST_MEMORY, "no host memory for the kernels");
    *opened = (kernels_set){.backend = backend, .place = place, .stream = stream};
    if (backend->open)
        status = backend->open(opened);
    if (status) {
        free(opened);
        return status;
    }
    *out_kernels = opened;
    return SYNCEDMEM_OK;
}

void kernels_close(kernels_set *kernels)
{
    if (!kernels)
        return;
    /* Nothing can be done here about work that failed: it is over either way. */
    if (kernels->stream)
        (void)syncedmem_stream_wait(kernels->stream);
    if (kernels->backend->close)
        kernels->backend->close(kernels);
    free(kernels);
}

/* ---- Kernels ---- */

static kernels_in in_of(kernels_out out)
{
    return (kernels_in){out.address, out.offset};
}

static syncedmem_status_t launch(kernels_set *kernels, const struct kernels_call *call)
{
    error_text[0] = '\0';
    for (size_t i = 0; i < call->memory_count; i++) {
        if (!call->memory[i].address)
            return kernels_error(SYNCEDMEM_INVALID_ARGUMENT, "an address for %s was NULL",
                                 names[call->kernel]);
    }
    return kernels->backend->launch(kernels, call);
}

static syncedmem_status_t matmul(kernels_set *kernels, enum kernels_id kernel,
                                 const kernels_in *a_b_c, uint32_t rows, uint32_t columns,
                                 uint32_t inner)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = kernel,
                               .arguments = {.rows = rows, .columns = columns, .inner = inner},
                               .memory = {a_b_c[0], a_b_c[1], a_b_c[2]},
                               .memory_count = 3,
                           });
}

syncedmem_status_t kernels_matmul(kernels_set *kernels, kernels_in a, kernels_in b, kernels_out c,
                                  uint32_t rows, uint32_t columns, uint32_t inner)
{
    const kernels_in memory[] = {a, b, in_of(c)};
    return matmul(kernels, KERNELS_MATMUL, memory, rows, columns, inner);
}

syncedmem_status_t kernels_matmul_at(kernels_set *kernels, kernels_in a, kernels_in b,
                                     kernels_out c, uint32_t rows, uint32_t columns, uint32_t inner)
{
    const kernels_in memory[] = {a, b, in_of(c)};
    return matmul(kernels, KERNELS_MATMUL_AT, memory, rows, columns, inner);
}

syncedmem_status_t kernels_matmul_bt(kernels_set *kernels, kernels_in a, kernels_in b,
                                     kernels_out c, uint32_t rows, uint32_t columns, uint32_t inner)
{
    const kernels_in memory[] = {a, b, in_of(c)};
    return matmul(kernels, KERNELS_MATMUL_BT, memory, rows, columns, inner);
}

syncedmem_status_t kernels_add_bias(kernels_set *kernels, kernels_in bias, kernels_out inout,
                                    uint32_t rows, uint32_t columns)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = KERNELS_ADD_BIAS,
                               .arguments = {.rows = rows, .columns = columns},
                               .memory = {bias, in_of(inout)},
                               .memory_count = 2,
                           });
}

syncedmem_status_t kernels_bias_gradient(kernels_set *kernels, kernels_in gradient, kernels_out out,
                                         uint32_t rows, uint32_t columns)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = KERNELS_BIAS_GRADIENT,
                               .arguments = {.rows = rows, .columns = columns},
                               .memory = {gradient, in_of(out)},
                               .memory_count = 2,
                           });
}

syncedmem_status_t kernels_relu(kernels_set *kernels, kernels_out inout, uint32_t count)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = KERNELS_RELU,
                               .arguments = {.count = count},
                               .memory = {in_of(inout)},
                               .memory_count = 1,
                           });
}

syncedmem_status_t kernels_relu_gradient(kernels_set *kernels, kernels_in activation,
                                         kernels_out inout, uint32_t count)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = KERNELS_RELU_GRADIENT,
                               .arguments = {.count = count},
                               .memory = {activation, in_of(inout)},
                               .memory_count = 2,
                           });
}

syncedmem_status_t kernels_softmax_loss(kernels_set *kernels, kernels_in logits, kernels_in classes,
                                        kernels_out gradient, kernels_out losses, uint32_t rows,
                                        uint32_t columns)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = KERNELS_SOFTMAX_LOSS,
                               .arguments = {.rows = rows, .columns = columns},
                               .memory = {logits, classes, in_of(gradient), in_of(losses)},
                               .memory_count = 4,
                           });
}

syncedmem_status_t kernels_argmax(kernels_set *kernels, kernels_in logits, kernels_out classes,
                                  uint32_t rows, uint32_t columns)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = KERNELS_ARGMAX,
                               .arguments = {.rows = rows, .columns = columns},
                               .memory = {logits, in_of(classes)},
                               .memory_count = 2,
                           });
}

syncedmem_status_t kernels_sgd(kernels_set *kernels, kernels_in gradient, kernels_out velocity,
                               kernels_out parameters, uint32_t count, float rate, float momentum)
{
    return launch(kernels, &(struct kernels_call){
                               .kernel = KERNELS_SGD,
                               .arguments = {.count = count, .rate = rate, .momentum = momentum},
                               .memory = {gradient, in_of(velocity), in_of(parameters)},
                               .memory_count = 3,
                           });
}
