/* SPDX-License-Identifier: BSD-2-Clause */
/* The other side of every comparison: what a program does without the library. */
#ifndef SYNCEDMEM_BENCH_PLAIN_H
#define SYNCEDMEM_BENCH_PLAIN_H

#include <stddef.h>

/* ---- A class like Caffe's SyncedMemory: no locks, no checks, ordinary memory for a device ---- */

struct plain_buffer;

struct plain_buffer *plain_create(size_t size);
void plain_release(struct plain_buffer *buffer);
const void *plain_cpu_data(struct plain_buffer *buffer);
void *plain_mutable_cpu_data(struct plain_buffer *buffer);
const void *plain_gpu_data(struct plain_buffer *buffer);
void *plain_mutable_gpu_data(struct plain_buffer *buffer);

/* ---- A block from its allocation to its end ---- */

enum plain_writes { WRITE_NOTHING, WRITE_ONE_BYTE, WRITE_EVERY_PAGE, WRITE_EVERY_BYTE };

/* Both sides write by this one. */
void plain_write(void *bytes, size_t size, enum plain_writes writes);

void plain_malloc_free(size_t size);
void plain_malloc_memset_free(size_t size, enum plain_writes writes);
void plain_calloc_free(size_t size, enum plain_writes writes);
void plain_mmap_munmap(size_t size, enum plain_writes writes);
/* With MADV_HUGEPAGE. */
void plain_huge_mmap_munmap(size_t size, enum plain_writes writes);

/* ---- Copies ---- */

/* Memory as a simulated device has it: a memfd mapped shared. NULL where that is refused. */
void *plain_device_alloc(size_t size);
void plain_device_free(void *bytes, size_t size);
void plain_copy(void *to, const void *from, size_t size);

#endif
