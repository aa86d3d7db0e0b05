/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor.h"

#include "try.h"

uint32_t tensor_count(struct tensor tensor)
{
    return tensor.rows * tensor.columns;
}

size_t tensor_bytes(struct tensor tensor)
{
    return (size_t)tensor.rows * tensor.columns * sizeof(float);
}

struct tensor tensor_lay(syncedmem_buffer *buffer, size_t *end, uint32_t rows, uint32_t columns)
{
    const struct tensor laid = {buffer, *end, rows, columns};
    *end += tensor_bytes(laid);
    return laid;
}

struct tensor tensor_rows(struct tensor tensor, uint32_t first, uint32_t count)
{
    tensor.offset += (size_t)first * tensor.columns * sizeof(float);
    tensor.rows = count;
    return tensor;
}

syncedmem_status_t tensor_read(struct tensor tensor, const void **out_elements)
{
    const void *start;
    *out_elements = NULL;
    TRY(syncedmem_cpu_data(tensor.buffer, &start));
    *out_elements = (const char *)start + tensor.offset;
    return SYNCEDMEM_OK;
}

syncedmem_status_t tensor_write(struct tensor tensor, void **out_elements)
{
    void *start;
    *out_elements = NULL;
    TRY(syncedmem_mutable_cpu_data(tensor.buffer, &start));
    *out_elements = (char *)start + tensor.offset;
    return SYNCEDMEM_OK;
}

/* ---- Operands ----
 *
 * A program without a library like this one would copy each operand that is read to the device
 * before the kernel, and each that is written back after it: `naive` counts those copies. */

static void count_to_device(struct device *device, struct tensor tensor)
{
    device->naive.to_device++;
    device->naive.bytes_to_device += tensor_bytes(tensor);
}

static void count_to_host(struct device *device, struct tensor tensor)
{
    device->naive.to_host++;
    device->naive.bytes_to_host += tensor_bytes(tensor);
}

static syncedmem_status_t reads(struct device *device, struct tensor tensor, kernels_in *out_in)
{
    count_to_device(device, tensor);
    out_in->offset = tensor.offset;
    return device->stream ? syncedmem_gpu_data(tensor.buffer, &out_in->address)
                          : syncedmem_cpu_data(tensor.buffer, &out_in->address);
}

static syncedmem_status_t writes(struct device *device, struct tensor tensor, kernels_out *out_out)
{
    count_to_host(device, tensor);
    out_out->offset = tensor.offset;
    return device->stream ? syncedmem_mutable_gpu_data(tensor.buffer, &out_out->address)
                          : syncedmem_mutable_cpu_data(tensor.buffer, &out_out->address);
}

static syncedmem_status_t updates(struct device *device, struct tensor tensor,
                                  kernels_out *out_inout)
{
    count_to_device(device, tensor);
    return writes(device, tensor, out_inout);
}

/* ---- Kernels ---- */

syncedmem_status_t tensor_matmul(struct device *device, struct tensor a, struct tensor b,
                                 struct tensor c)
{
    kernels_in a_in;
    kernels_in b_in;
    kernels_out c_out;
    TRY(reads(device, a, &a_in));
    TRY(reads(device, b, &b_in));
    TRY(writes(device, c, &c_out));
    return kernels_matmul(device->kernels, a_in, b_in, c_out, c.rows, c.columns, a.columns);
}

syncedmem_status_t tensor_matmul_at(struct device *device, struct tensor a, struct tensor b,
                                    struct tensor c)
{
    kernels_in a_in;
    kernels_in b_in;
    kernels_out c_out;
    TRY(reads(device, a, &a_in));
    TRY(reads(device, b, &b_in));
    TRY(writes(device, c, &c_out));
    return kernels_matmul_at(device->kernels, a_in, b_in, c_out, c.rows, c.columns, a.rows);
}

syncedmem_status_t tensor_matmul_bt(struct device *device, struct tensor a, struct tensor b,
                                    struct tensor c)
{
    kernels_in a_in;
    kernels_in b_in;
    kernels_out c_out;
    TRY(reads(device, a, &a_in));
    TRY(reads(device, b, &b_in));
    TRY(writes(device, c, &c_out));
    return kernels_matmul_bt(device->kernels, a_in, b_in, c_out, c.rows, c.columns, a.columns);
}

syncedmem_status_t tensor_add_bias(struct device *device, struct tensor bias, struct tensor inout)
{
    kernels_in bias_in;
    kernels_out both;
    TRY(reads(device, bias, &bias_in));
    TRY(updates(device, inout, &both));
    return kernels_add_bias(device->kernels, bias_in, both, inout.rows, inout.columns);
}

syncedmem_status_t tensor_bias_gradient(struct device *device, struct tensor gradient,
                                        struct tensor out)
{
    kernels_in gradient_in;
    kernels_out sums;
    TRY(reads(device, gradient, &gradient_in));
    TRY(writes(device, out, &sums));
    return kernels_bias_gradient(device->kernels, gradient_in, sums, gradient.rows,
                                 gradient.columns);
}

syncedmem_status_t tensor_relu(struct device *device, struct tensor inout)
{
    kernels_out both;
    TRY(updates(device, inout, &both));
    return kernels_relu(device->kernels, both, tensor_count(inout));
}

syncedmem_status_t tensor_relu_gradient(struct device *device, struct tensor activation,
                                        struct tensor inout)
{
    kernels_in activation_in;
    kernels_out both;
    TRY(reads(device, activation, &activation_in));
    TRY(updates(device, inout, &both));
    return kernels_relu_gradient(device->kernels, activation_in, both, tensor_count(inout));
}

syncedmem_status_t tensor_softmax_loss(struct device *device, struct tensor logits,
                                       struct tensor classes, struct tensor gradient,
                                       struct tensor losses)
{
    kernels_in logits_in;
    kernels_in classes_in;
    kernels_out gradient_out;
    kernels_out losses_out;
    TRY(reads(device, logits, &logits_in));
    TRY(reads(device, classes, &classes_in));
    TRY(writes(device, gradient, &gradient_out));
    TRY(writes(device, losses, &losses_out));
    return kernels_softmax_loss(device->kernels, logits_in, classes_in, gradient_out, losses_out,
                                logits.rows, logits.columns);
}

syncedmem_status_t tensor_argmax(struct device *device, struct tensor logits, struct tensor classes)
{
    kernels_in logits_in;
    kernels_out classes_out;
    TRY(reads(device, logits, &logits_in));
    TRY(writes(device, classes, &classes_out));
    return kernels_argmax(device->kernels, logits_in, classes_out, logits.rows, logits.columns);
}

syncedmem_status_t tensor_sgd(struct device *device, struct tensor gradient, struct tensor velocity,
                              struct tensor parameters, float rate, float momentum)
{
    kernels_in gradient_in;
    kernels_out velocity_both;
    kernels_out parameters_both;
    TRY(reads(device, gradient, &gradient_in));
    TRY(updates(device, velocity, &velocity_both));
    TRY(updates(device, parameters, &parameters_both));
    return kernels_sgd(device->kernels, gradient_in, velocity_both, parameters_both,
                       tensor_count(parameters), rate, momentum);
}
