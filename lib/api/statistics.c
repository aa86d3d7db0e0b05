/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/check.h"
#include "core/retire.h"
#include "core/root.h"

static syncedmem_status_t root_figure(struct root *root, syncedmem_key_t key, uint64_t *out_figure)
{
    const syncedmem_status_t status = syncedmem_root_lock(root);
    if (status != SYNCEDMEM_OK)
        return status;
    *out_figure = root->body ? root->body->counters.figures[key] : 0;
    syncedmem_root_unlock(root);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_stat(const syncedmem_buffer *buffer, syncedmem_key_t key,
                                  uint64_t *out_figure)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_figure);
    if (!stat_key_is_known(key))
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "key %d names no figure", (int)key);
    if (buffer)
        return root_figure(buffer->root, key, out_figure);
    syncedmem_retired_visit(); /* blocks that no work uses any more are not held for anything */
    *out_figure = syncedmem_process_figure(key);
    return SYNCEDMEM_OK;
}
