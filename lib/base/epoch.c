/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "base/epoch.h"
#include "base/error.h"

_Atomic(uint64_t) syncedmem_epoch;
_Atomic(uint32_t) syncedmem_era;

static atomic_bool ending;

void syncedmem_epoch_advance(void)
{
    atomic_fetch_add_explicit(&syncedmem_epoch, (uint64_t)1 << EPOCH_SHIFT, memory_order_acq_rel);
}

static void begin_era(void)
{
    atomic_fetch_add_explicit(&syncedmem_era, 1, memory_order_acq_rel);
    syncedmem_epoch_advance();
}

/* ---- Forks ---- */

/* In the child, where nothing but this thread is left: only atomic numbers are touched. */
static void after_fork(void)
{
    begin_era();
}

/* When the library is loaded, and not when a driver is opened: another thread may be inside of
 * a call on a host-only buffer, whose lock then stays locked in the child. */
static __attribute__((constructor)) void watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

/* ---- Exit ---- */

static void (*leave_drivers)(void);

static void at_exit(void)
{
    atomic_store_explicit(&ending, true, memory_order_relaxed);
    begin_era();
    leave_drivers();
}

void syncedmem_watch_exit(void (*leave)(void))
{
    leave_drivers = leave;
    atexit(at_exit);
}

/* ---- Reach ---- */

syncedmem_status_t syncedmem_require_era(uint32_t era)
{
    if (era == era_now())
        return SYNCEDMEM_OK;
    if (atomic_load_explicit(&ending, memory_order_relaxed))
        return syncedmem_error(SYNCEDMEM_NO_DEVICE,
                               "the process is ending: no device is used any more");
    return syncedmem_error(SYNCEDMEM_FORKED, "the device was opened before this process was "
                                             "forked: use it in the parent, or in a new program");
}
