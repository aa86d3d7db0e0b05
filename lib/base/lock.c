/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>

#include "base/error.h"
#include "base/lock.h"

enum { ATTEMPTS = 1000 };

/* Who holds it has it for an instant before the mark is there: hence more than one attempt. */
syncedmem_status_t syncedmem_lock_in_child(struct lock *lock)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        if (pthread_mutex_trylock(&lock->mutex) == 0) {
            atomic_store_explicit(&lock->forks, syncedmem_forks(), memory_order_release);
            return SYNCEDMEM_OK;
        }
        if (atomic_load_explicit(&lock->forks, memory_order_acquire) == syncedmem_forks()) {
            syncedmem_relock(lock);
            return SYNCEDMEM_OK;
        }
        sched_yield();
    }
    return syncedmem_error(SYNCEDMEM_FORKED,
                           "another thread was using this when the process was forked");
}
