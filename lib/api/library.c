/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/check.h"
#include "core/root.h"

uint32_t syncedmem_version(void)
{
    return SYNCEDMEM_VERSION;
}

syncedmem_status_t syncedmem_set_default_host_policy(syncedmem_host_policy_t policy)
{
    PUBLIC_CALL;
    if (policy != SYNCEDMEM_PAGEABLE && policy != SYNCEDMEM_PINNED)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%d is no host policy", (int)policy);
    atomic_store_explicit(&syncedmem_default_policy, policy, memory_order_relaxed);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_set_log(syncedmem_log_fn function, void *user,
                                     syncedmem_log_level_t level)
{
    PUBLIC_CALL;
    return syncedmem_log_configure(function, user, level);
}
