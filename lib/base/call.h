/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every public function that does work begins with:
 *
 *     PUBLIC_CALL;
 *
 * On whatever path it returns, errno is as before, and the log lines of this call are handed out.
 * While it runs, what is traced says that this function caused it. A function that works for
 * several public ones says for which: PUBLIC_CALL_AS("syncedmem_cpu_data").
 */
#ifndef SYNCEDMEM_BASE_CALL_H
#define SYNCEDMEM_BASE_CALL_H

#include <errno.h>

#include "base/log.h"
#include "trace/trace.h"

struct public_call {
    int kept_errno;
    bool is_traced;
    const char *outer;
};

static inline struct public_call syncedmem_enter(const char *name)
{
    struct public_call call = {.kept_errno = errno};
    if (__builtin_expect(trace_state() != TRACE_OFF, 0)) {
        call.outer = syncedmem_trace_enter(name);
        call.is_traced = true;
    }
    return call;
}

static inline void syncedmem_leave(const struct public_call *call)
{
    if (__builtin_expect(atomic_load_explicit(&syncedmem_log_kept, memory_order_relaxed) > 0, 0))
        syncedmem_log_flush();
    if (__builtin_expect(call->is_traced, 0))
        syncedmem_trace_leave(call->outer);
    errno = call->kept_errno;
}

#define PUBLIC_CALL_AS(name)                                                                       \
    __attribute__((cleanup(syncedmem_leave), unused)) const struct public_call public_call =       \
        syncedmem_enter(name)

#define PUBLIC_CALL PUBLIC_CALL_AS(__func__)

#endif
