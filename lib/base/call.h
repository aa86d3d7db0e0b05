/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every public function that does work begins with:
 *
 *     PUBLIC_CALL;
 *
 * On whatever path it returns, errno is as before, and the log lines of this call are handed out.
 */
#ifndef SYNCEDMEM_BASE_CALL_H
#define SYNCEDMEM_BASE_CALL_H

#include <errno.h>

#include "base/log.h"

static inline void syncedmem_leave(const int *kept_errno)
{
    if (__builtin_expect(atomic_load_explicit(&syncedmem_log_kept, memory_order_relaxed) > 0, 0))
        syncedmem_log_flush();
    errno = *kept_errno;
}

#define PUBLIC_CALL __attribute__((cleanup(syncedmem_leave), unused)) const int kept_errno = errno

#endif
