/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock that a forked child, and a process that ends, can live with.
 *
 * What another thread held when the process was forked stays locked in the child for ever; and when the
 * process ends, a thread may hold a lock while it waits for a driver that will never answer. So
 * whoever finds a lock taken asks when: in this era (base/epoch.h), and then waiting is right, or
 * in one before, and then it is not waited for.
 */
#ifndef SYNCEDMEM_BASE_LOCK_H
#define SYNCEDMEM_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/epoch.h"

struct lock {
    pthread_mutex_t mutex;
    _Atomic(uint32_t) era; /* in which it was taken last */
};

#define LOCK_INITIALIZER                                                                           \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, 0                                                               \
    }

static inline void syncedmem_lock_init(struct lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
    atomic_init(&lock->era, era_now());
}

/* FORKED when it is held by a thread that was left behind by a fork, NO_DEVICE when the process ends. */
syncedmem_status_t syncedmem_lock_of_before(struct lock *lock);

static inline __attribute__((warn_unused_result)) syncedmem_status_t syncedmem_lock(
    struct lock *lock)
{
    const uint32_t era = era_now();
    if (__builtin_expect(atomic_load_explicit(&lock->era, memory_order_relaxed) != era, 0))
        return syncedmem_lock_of_before(lock);
    pthread_mutex_lock(&lock->mutex);
    return SYNCEDMEM_OK;
}

/* For a thread of this process that gave it back a moment ago. */
static inline void syncedmem_relock(struct lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    atomic_store_explicit(&lock->era, era_now(), memory_order_release);
}

static inline void syncedmem_unlock(struct lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

#endif
