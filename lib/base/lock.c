/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>

#include "base/error.h"
#include "base/lock.h"

enum { ATTEMPTS = 1000 };

/* Who holds it has it for an instant before the mark is there: hence more than one attempt. */
syncedmem_status_t syncedmem_lock_of_before(struct lock *lock)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        if (pthread_mutex_trylock(&lock->mutex) == 0) {
            atomic_store_explicit(&lock->era, era_now(), memory_order_release);
            return SYNCEDMEM_OK;
        }
        if (atomic_load_explicit(&lock->era, memory_order_acquire) == era_now()) {
            syncedmem_relock(lock);
            return SYNCEDMEM_OK;
        }
        sched_yield();
    }
    const syncedmem_status_t status =
        syncedmem_require_era(atomic_load_explicit(&lock->era, memory_order_acquire));
    if (status == SYNCEDMEM_OK)
        syncedmem_relock(lock);
    return status;
}
