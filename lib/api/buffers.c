/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/check.h"
#include "api/range.h"

syncedmem_status_t syncedmem_create(size_t size, syncedmem_buffer **out_buffer)
{
    KEEP_ERRNO;
    REQUIRE_OUT(out_buffer);
    if (size > PTRDIFF_MAX)
        return syncedmem_error(SYNCEDMEM_OUT_OF_RANGE,
                               "a buffer of %zu bytes is larger than any memory: the limit is %td",
                               size, (ptrdiff_t)PTRDIFF_MAX);
    struct root *root = syncedmem_root_create(size);
    if (!root)
        return syncedmem_error_no_host_memory("a handle", sizeof *root);
    *out_buffer = &root->whole;
    return SYNCEDMEM_OK;
}

syncedmem_buffer *syncedmem_retain(syncedmem_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

void syncedmem_release(syncedmem_buffer *buffer)
{
    KEEP_ERRNO;
    if (buffer &&
        atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1)
        syncedmem_root_release(buffer->root);
}

size_t syncedmem_size(const syncedmem_buffer *buffer)
{
    return buffer ? buffer->length : 0;
}

syncedmem_head_t syncedmem_head(const syncedmem_buffer *buffer)
{
    KEEP_ERRNO;
    REQUIRE_ARGUMENT(buffer);
    pthread_mutex_lock(&buffer->root->lock);
    const syncedmem_head_t head =
        syncedmem_root_head(buffer->root, range_start(buffer), range_end(buffer));
    pthread_mutex_unlock(&buffer->root->lock);
    return head;
}

syncedmem_status_t syncedmem_wait(syncedmem_buffer *buffer)
{
    KEEP_ERRNO;
    REQUIRE_ARGUMENT(buffer);
    pthread_mutex_lock(&buffer->root->lock);
    const syncedmem_status_t status =
        buffer->root->body ? syncedmem_work_settle_all(buffer->root) : SYNCEDMEM_OK;
    pthread_mutex_unlock(&buffer->root->lock);
    return status;
}

/* ---- Choices before the first touch ---- */

static syncedmem_status_t choose_home(struct root *root, syncedmem_place *device)
{
    if (root->home != device && syncedmem_root_home_is_fixed(root))
        return syncedmem_error(SYNCEDMEM_WRONG_STATE, "the buffer's home is %s since its first use",
                               root->home->name);
    root->home = device;
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_set_home(syncedmem_buffer *buffer, syncedmem_place *device)
{
    KEEP_ERRNO;
    REQUIRE_ARGUMENT(buffer);
    syncedmem_status_t status = syncedmem_require_device(device);
    if (status != SYNCEDMEM_OK)
        return status;
    pthread_mutex_lock(&buffer->root->lock);
    status = choose_home(buffer->root, device);
    pthread_mutex_unlock(&buffer->root->lock);
    return status;
}

static bool is_touched(const struct root *root)
{
    return root->body && (root->body->copies[HOST_SLOT].present ||
                          syncedmem_root_home_is_fixed(root));
}

static syncedmem_status_t choose_policy(struct root *root, syncedmem_host_policy_t policy)
{
    if (is_touched(root))
        return syncedmem_error(SYNCEDMEM_WRONG_STATE,
                               "the policy of a buffer is captured at its first touch");
    root->policy = (uint8_t)policy;
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_set_host_policy(syncedmem_buffer *buffer,
                                             syncedmem_host_policy_t policy)
{
    KEEP_ERRNO;
    REQUIRE_ARGUMENT(buffer);
    if (policy != SYNCEDMEM_PAGEABLE && policy != SYNCEDMEM_PINNED)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%d is no host policy", (int)policy);
    pthread_mutex_lock(&buffer->root->lock);
    const syncedmem_status_t status = choose_policy(buffer->root, policy);
    pthread_mutex_unlock(&buffer->root->lock);
    return status;
}
