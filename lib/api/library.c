/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/check.h"
#include "core/root.h"

uint32_t syncedmem_version(void)
{
    return SYNCEDMEM_VERSION;
}

syncedmem_status_t syncedmem_set_default_host_policy(syncedmem_host_policy_t policy)
{
    KEEP_ERRNO;
    if (policy != SYNCEDMEM_PAGEABLE && policy != SYNCEDMEM_PINNED)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%d is no host policy", (int)policy);
    atomic_store_explicit(&syncedmem_default_policy, policy, memory_order_relaxed);
    return SYNCEDMEM_OK;
}
