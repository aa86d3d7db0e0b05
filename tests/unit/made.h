/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers that tests of forks and of losses begin with. */
#ifndef SYNCEDMEM_TESTS_UNIT_MADE_H
#define SYNCEDMEM_TESTS_UNIT_MADE_H

#include "support.h"

enum { SIZE = 50000, HALF = SIZE / 2, OLD = 1, NEW = 2, OTHER = 3 };

/* OLD, never on a device. */
static inline syncedmem_buffer *made_at_host(void)
{
    syncedmem_buffer *buffer;
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, OLD);
    return buffer;
}

/* OLD at both. */
static inline syncedmem_buffer *made_synced(void)
{
    const void *pointer;
    syncedmem_buffer *buffer = made_at_host();
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    return buffer;
}

/* NEW there, OLD on the host. */
static inline syncedmem_buffer *made_at_device(void)
{
    void *pointer;
    syncedmem_buffer *buffer = made_at_host();
    assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
    device_pattern_write(0, pointer, SIZE, NEW);
    return buffer;
}

#endif
