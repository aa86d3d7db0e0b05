/* SPDX-License-Identifier: BSD-2-Clause */
#include <syncedmem/sim.h>

#include "backend.h"

static syncedmem_status_t launch(kernels_set *kernels, const struct kernels_call *call)
{
    const void *addresses[KERNELS_MEMORY_LIMIT];
    for (size_t i = 0; i < call->memory_count; i++)
        addresses[i] = (const char *)call->memory[i].address + call->memory[i].offset;
    return syncedmem_sim_launch(kernels->stream, kernels_plain[call->kernel], &call->arguments,
                                sizeof call->arguments, addresses, call->memory_count);
}

const struct kernels_backend kernels_backend_sim = {
    .name = "sim",
    .launch = launch,
};
