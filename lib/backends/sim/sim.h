/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulated devices: the table of operations over the engine in lib/simulator. */
#ifndef SYNCEDMEM_BACKENDS_SIM_H
#define SYNCEDMEM_BACKENDS_SIM_H

#include "backends/ops.h"
#include "syncedmem/sim.h"

extern const struct backend syncedmem_backend_sim;

/* What api/sim.c calls, with handles taken apart. */
syncedmem_status_t syncedmem_sim_backend_configure(const char *specification);
syncedmem_status_t syncedmem_sim_backend_launch(struct backend_stream *stream,
                                                syncedmem_sim_kernel_fn kernel,
                                                const void *arguments, size_t arguments_size,
                                                const void *const *addresses, size_t count);
syncedmem_status_t syncedmem_sim_backend_alloc(struct backend_device *device, size_t size,
                                               void **out_pointer);
syncedmem_status_t syncedmem_sim_backend_free(struct backend_device *device, void *pointer);
syncedmem_status_t syncedmem_sim_backend_fail(struct backend_device *device, int32_t what,
                                              uint64_t nth);
syncedmem_status_t syncedmem_sim_backend_lose(struct backend_device *device);
syncedmem_status_t syncedmem_sim_backend_restore(struct backend_device *device);
uint64_t syncedmem_sim_backend_faults(const struct backend_device *device);

#endif
