/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plain.h"

/* ---- The class ---- */

enum head { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED };

struct plain_buffer {
    void *cpu;
    void *gpu;
    size_t size;
    enum head head;
};

struct plain_buffer *plain_create(size_t size)
{
    struct plain_buffer *buffer = malloc(sizeof *buffer);
    if (buffer)
        *buffer = (struct plain_buffer){.size = size};
    return buffer;
}

void plain_release(struct plain_buffer *buffer)
{
    free(buffer->cpu);
    free(buffer->gpu);
    free(buffer);
}

static void *zeroed(size_t size)
{
    void *bytes = malloc(size);
    if (!bytes)
        abort();
    return memset(bytes, 0, size);
}

static void copy_side(void **to, const void *from, size_t size)
{
    if (!*to)
        *to = zeroed(size);
    memcpy(*to, from, size);
}

/* Apart, so that a call with nothing to do is as short as it can be. */
static __attribute__((noinline)) void fill_cpu(struct plain_buffer *buffer)
{
    if (buffer->head == UNINITIALIZED) {
        buffer->cpu = zeroed(buffer->size);
        buffer->head = HEAD_AT_CPU;
    } else {
        copy_side(&buffer->cpu, buffer->gpu, buffer->size);
        buffer->head = SYNCED;
    }
}

static __attribute__((noinline)) void fill_gpu(struct plain_buffer *buffer)
{
    if (buffer->head == UNINITIALIZED) {
        buffer->gpu = zeroed(buffer->size);
        buffer->head = HEAD_AT_GPU;
    } else {
        copy_side(&buffer->gpu, buffer->cpu, buffer->size);
        buffer->head = SYNCED;
    }
}

static inline void to_cpu(struct plain_buffer *buffer)
{
    switch (buffer->head) {
    case UNINITIALIZED:
    case HEAD_AT_GPU:
        fill_cpu(buffer);
        break;
    case HEAD_AT_CPU:
    case SYNCED:
        break;
    }
}

static inline void to_gpu(struct plain_buffer *buffer)
{
    switch (buffer->head) {
    case UNINITIALIZED:
    case HEAD_AT_CPU:
        fill_gpu(buffer);
        break;
    case HEAD_AT_GPU:
    case SYNCED:
        break;
    }
}

const void *plain_cpu_data(struct plain_buffer *buffer)
{
    to_cpu(buffer);
    return buffer->cpu;
}

void *plain_mutable_cpu_data(struct plain_buffer *buffer)
{
    to_cpu(buffer);
    buffer->head = HEAD_AT_CPU;
    return buffer->cpu;
}

const void *plain_gpu_data(struct plain_buffer *buffer)
{
    to_gpu(buffer);
    return buffer->gpu;
}

void *plain_mutable_gpu_data(struct plain_buffer *buffer)
{
    to_gpu(buffer);
    buffer->head = HEAD_AT_GPU;
    return buffer->gpu;
}

/* ---- Blocks ---- */

static void write_every_page(unsigned char *bytes, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t offset = 0; offset < size; offset += page)
        *(volatile unsigned char *)(bytes + offset) = 1;
}

void plain_write(void *bytes, size_t size, enum plain_writes writes)
{
    switch (writes) {
    case WRITE_NOTHING:
        break;
    case WRITE_ONE_BYTE:
        *((volatile unsigned char *)bytes + size / 2) = 1;
        break;
    case WRITE_EVERY_PAGE:
        write_every_page(bytes, size);
        break;
    case WRITE_EVERY_BYTE:
        memset(bytes, 1, size);
        break;
    }
}

static void *checked(void *bytes)
{
    if (!bytes || bytes == MAP_FAILED)
        abort(); /* the benchmark runs in a process of its own, which is then reported */
    return bytes;
}

void plain_malloc_free(size_t size)
{
    free(checked(malloc(size)));
}

void plain_malloc_memset_free(size_t size, enum plain_writes writes)
{
    void *bytes = checked(malloc(size));
    memset(bytes, 0, size);
    plain_write(bytes, size, writes);
    free(bytes);
}

void plain_calloc_free(size_t size, enum plain_writes writes)
{
    void *bytes = checked(calloc(1, size));
    plain_write(bytes, size, writes);
    free(bytes);
}

static void *map_pages(size_t size)
{
    return checked(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void plain_mmap_munmap(size_t size, enum plain_writes writes)
{
    void *bytes = map_pages(size);
    plain_write(bytes, size, writes);
    munmap(bytes, size);
}

void plain_huge_mmap_munmap(size_t size, enum plain_writes writes)
{
    void *bytes = map_pages(size);
    madvise(bytes, size, MADV_HUGEPAGE); /* where it is refused, these are ordinary pages */
    plain_write(bytes, size, writes);
    munmap(bytes, size);
}

/* ---- Copies ---- */

static void *map_file(int file, size_t size)
{
    if (ftruncate(file, (off_t)size) != 0)
        return NULL;
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

void *plain_device_alloc(size_t size)
{
    const int file = memfd_create("syncedmem-bench", MFD_CLOEXEC);
    if (file < 0)
        return NULL;
    void *bytes = map_file(file, size);
    close(file);
    return bytes;
}

void plain_device_free(void *bytes, size_t size)
{
    munmap(bytes, size);
}

void plain_copy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}
