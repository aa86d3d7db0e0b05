/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock that a forked child can live with.
 *
 * What another thread held when the process was forked stays locked in the child for ever. So
 * a child asks who took the lock last: this process, and then waiting is right, or one before the
 * fork, and then it is never waited for.
 */
#ifndef SYNCEDMEM_BASE_LOCK_H
#define SYNCEDMEM_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/epoch.h"

struct lock {
    pthread_mutex_t mutex;
    _Atomic(uint32_t) forks; /* of the process that took it last */
};

#define LOCK_INITIALIZER                                                                           \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, 0                                                               \
    }

static inline void syncedmem_lock_init(struct lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
    atomic_init(&lock->forks, syncedmem_forks());
}

/* FORKED when it is held by a thread that was left behind by a fork. */
syncedmem_status_t syncedmem_lock_in_child(struct lock *lock);

static inline __attribute__((warn_unused_result)) syncedmem_status_t syncedmem_lock(
    struct lock *lock)
{
    const uint32_t forks = syncedmem_forks();
    if (__builtin_expect(forks > 0, 0))
        return syncedmem_lock_in_child(lock);
    pthread_mutex_lock(&lock->mutex);
    return SYNCEDMEM_OK;
}

/* For a thread of this process that gave it back a moment ago. */
static inline void syncedmem_relock(struct lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    atomic_store_explicit(&lock->forks, syncedmem_forks(), memory_order_release);
}

static inline void syncedmem_unlock(struct lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

#endif
