/* SPDX-License-Identifier: BSD-2-Clause */
/* The linker's --wrap sends calls of malloc() to __wrap_malloc(); __real_malloc() is the real one. */
/* mmap() is mmap64() where offsets in files have 64 bits. */
#include "wrap_alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static _Thread_local unsigned long fail_at;
static _Thread_local unsigned long count;
static _Thread_local bool fired;

void wrap_fail_nth(unsigned long n)
{
    fail_at = n;
    count = 0;
    fired = false;
}

unsigned long wrap_count(void)
{
    return count;
}

bool wrap_fired(void)
{
    return fired;
}

/* Counts one allocation; true when it is the one that fails. */
static bool fails(void)
{
    count++;
    if (count != fail_at)
        return false;
    fired = true;
    errno = ENOMEM;
    return true;
}

/* ---- What the linker puts in the place of the functions ---- */

typedef void *(start_fn)(void *);

/* clang-format off */
#define WRAP(type, name, parameters, arguments, failure)                                           \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails() ? (failure) : __real_##name arguments;                                      \
    }

WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t items, size_t size), (items, size), NULL)
WRAP(void *, realloc, (void *block, size_t size), (block, size), NULL)
WRAP(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL)
WRAP(void *, mmap, (void *address, size_t length, int protection, int flags, int file, long offset),
     (address, length, protection, flags, file, offset), MAP_FAILED)
WRAP(void *, mmap64, (void *address, size_t length, int protection, int flags, int file, off64_t offset),
     (address, length, protection, flags, file, offset), MAP_FAILED)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, pthread_create,
     (pthread_t *thread, const pthread_attr_t *attributes, start_fn *start, void *argument),
     (thread, attributes, start, argument), EAGAIN)
/* clang-format on */
