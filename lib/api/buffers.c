/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "api/check.h"
#include "api/range.h"

syncedmem_status_t syncedmem_create(size_t size, syncedmem_buffer **out_buffer)
{
    PUBLIC_CALL;
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

static void init_view(syncedmem_buffer *view, const syncedmem_buffer *parent, size_t offset,
                      size_t length)
{
    *view = (syncedmem_buffer){.root = parent->root, .offset = offset, .length = length};
    atomic_init(&view->references, 1);
    syncedmem_root_retain(view->root);
}

syncedmem_status_t syncedmem_view(syncedmem_buffer *parent, size_t offset, size_t length,
                                  syncedmem_buffer **out_view)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_view);
    REQUIRE_ARGUMENT(parent);
    const syncedmem_status_t status = range_in_root(parent, &offset, length);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_buffer *view = malloc(sizeof *view);
    if (!view)
        return syncedmem_error_no_host_memory("a handle", sizeof *view);
    init_view(view, parent, offset, length);
    *out_view = view;
    return SYNCEDMEM_OK;
}

syncedmem_buffer *syncedmem_retain(syncedmem_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

/* The whole buffer's handle is part of the root and goes with it. */
static void destroy_handle(syncedmem_buffer *buffer)
{
    struct root *root = buffer->root;
    if (handle_is_view(buffer))
        free(buffer);
    syncedmem_root_release(root);
}

void syncedmem_release(syncedmem_buffer *buffer)
{
    PUBLIC_CALL;
    if (buffer && atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1)
        destroy_handle(buffer);
}

size_t syncedmem_size(const syncedmem_buffer *buffer)
{
    return buffer ? buffer->length : 0;
}

syncedmem_head_t syncedmem_head(const syncedmem_buffer *buffer)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    const syncedmem_status_t status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    const syncedmem_head_t head =
        syncedmem_root_head(buffer->root, handle_from(buffer), handle_to(buffer));
    syncedmem_root_unlock(buffer->root);
    return head;
}

/* Transfers that went with their device ended, and not well. */
static syncedmem_status_t tell_cut_off(struct root *root)
{
    const syncedmem_place *place = root->body->cut_off;
    root->body->cut_off = NULL;
    if (!place)
        return SYNCEDMEM_OK;
    const syncedmem_status_t status = place_require(place);
    return status != SYNCEDMEM_OK
               ? status
               : syncedmem_error(SYNCEDMEM_DEVICE_LOST,
                                 "%s was lost with unfinished transfers of the buffer",
                                 place->name);
}

syncedmem_status_t syncedmem_wait(syncedmem_buffer *buffer)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    struct root *root = buffer->root;
    syncedmem_status_t status = syncedmem_root_lock(root);
    if (status != SYNCEDMEM_OK)
        return status;
    if (root->body) {
        syncedmem_work_await_all(root);
        status = syncedmem_work_reap(root);
        if (status == SYNCEDMEM_OK)
            status = tell_cut_off(root);
    }
    syncedmem_root_unlock(root);
    return status;
}

/* ---- Choices before the first touch ---- */

static syncedmem_status_t choose_home(struct root *root, syncedmem_place *device)
{
    if (root->home != device && root->home_fixed)
        return syncedmem_error(SYNCEDMEM_WRONG_STATE, "the buffer's home is %s since its first use",
                               root->home->name);
    root->home = device;
    return SYNCEDMEM_OK;
}

static syncedmem_place *locked_home(struct root *root)
{
    if (syncedmem_root_lock(root) != SYNCEDMEM_OK)
        return NULL;
    syncedmem_place *home = root->home;
    syncedmem_root_unlock(root);
    return home;
}

syncedmem_place *syncedmem_home(const syncedmem_buffer *buffer)
{
    PUBLIC_CALL;
    return buffer ? locked_home(buffer->root) : NULL;
}

syncedmem_status_t syncedmem_set_home(syncedmem_buffer *buffer, syncedmem_place *device)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    syncedmem_status_t status = syncedmem_require_device(device);
    if (status != SYNCEDMEM_OK)
        return status;
    status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = choose_home(buffer->root, device);
    syncedmem_root_unlock(buffer->root);
    return status;
}

static syncedmem_status_t choose_policy(struct root *root, syncedmem_host_policy_t policy)
{
    if (root->touched)
        return syncedmem_error(SYNCEDMEM_WRONG_STATE,
                               "the policy of a buffer is captured at its first touch");
    root->policy = (uint8_t)policy;
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_set_host_policy(syncedmem_buffer *buffer,
                                             syncedmem_host_policy_t policy)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    if (policy != SYNCEDMEM_PAGEABLE && policy != SYNCEDMEM_PINNED)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%d is no host policy", (int)policy);
    syncedmem_status_t status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = choose_policy(buffer->root, policy);
    syncedmem_root_unlock(buffer->root);
    return status;
}
