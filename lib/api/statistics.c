/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/check.h"
#include "core/root.h"

static uint64_t root_figure(struct root *root, syncedmem_key_t key)
{
    pthread_mutex_lock(&root->lock);
    const uint64_t figure = root->body ? root->body->counters.figures[key] : 0;
    pthread_mutex_unlock(&root->lock);
    return figure;
}

syncedmem_status_t syncedmem_stat(const syncedmem_buffer *buffer, syncedmem_key_t key,
                                  uint64_t *out_figure)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_figure);
    if (!stat_key_is_known(key))
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "key %d names no figure", (int)key);
    *out_figure = buffer ? root_figure(buffer->root, key) : syncedmem_process_figure(key);
    return SYNCEDMEM_OK;
}
