/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend.h"

/* Runs at once, on the caller's thread. */
static syncedmem_status_t launch(kernels_set *kernels, const struct kernels_call *call)
{
    (void)kernels;
    struct kernels_arguments arguments = call->arguments;
    void *addresses[KERNELS_MEMORY_LIMIT];
    for (size_t i = 0; i < call->memory_count; i++)
        addresses[i] = (char *)call->memory[i].address + call->memory[i].offset;
    kernels_plain[call->kernel](&arguments, addresses, call->memory_count);
    return SYNCEDMEM_OK;
}

const struct kernels_backend kernels_backend_host = {
    .name = "host",
    .launch = launch,
};
