/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the n-th allocation of a thread fail.
 *
 * Counts malloc, calloc, realloc, aligned_alloc, mmap, memfd_create and pthread_create, called
 * by the library or by the test itself. Other threads are neither counted nor failed.
 */
#ifndef SYNCEDMEM_TESTS_SUPPORT_WRAP_ALLOC_H
#define SYNCEDMEM_TESTS_SUPPORT_WRAP_ALLOC_H

#include <stdbool.h>

/*
 * From now on the n-th allocation of this thread fails, once, as it would for lack of memory
 * (pthread_create with EAGAIN). 1 is the very next; 0 takes the failure back.
 */
void wrap_fail_nth(unsigned long n);

/* Allocations of this thread since wrap_fail_nth(). */
unsigned long wrap_count(void);

/* The failure has happened. */
bool wrap_fired(void);

#endif
