/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/access.h"
#include "base/error.h"
#include "core/merge.h"
#include "core/root.h"

/* ---- Before ---- */

syncedmem_status_t syncedmem_prepare(struct root *root, syncedmem_place *place, size_t from,
                                     size_t to, unsigned *out_slot)
{
    syncedmem_status_t status = syncedmem_root_touch(root);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_reap(root);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_copy_slot(root, place, out_slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_merge_if_due(root);
    if (status == SYNCEDMEM_OK && !syncedmem_map_reserve(&root->body->map, from, to))
        status = syncedmem_error_no_host_memory("the map of a buffer", root->size);
    return status;
}

static bool is_current(const struct root *root, unsigned slot, size_t from, size_t to)
{
    const struct map_summary summary = syncedmem_map_summary(&root->body->map, from, to);
    return !summary.has_fresh && (summary.in_all & slot_bit(slot)) != 0;
}

/* ---- Bytes ---- */

static syncedmem_status_t bring_in(struct root *root, const struct access *access, unsigned slot)
{
    return access->asynchronous
               ? syncedmem_transfer_start(root, slot, access->from, access->to, access->choice)
               : syncedmem_transfer_in(root, slot, access->from, access->to, access->choice);
}

/* Memory that may be written where it is going to be. `is_stale`: bytes have to be brought. */
static syncedmem_status_t ensure_memory(struct root *root, const struct access *access,
                                        unsigned slot, bool is_stale)
{
    const bool overwritten = access->mode == ACCESS_WRITE && !access->may_fail;
    const size_t from = overwritten ? access->from : 0;
    const size_t to = overwritten ? access->to : 0;
    syncedmem_status_t status = syncedmem_copy_ensure(root, slot, from, to);
    const bool will_be_written = access->mode != ACCESS_READ || is_stale;
    if (status == SYNCEDMEM_OK && will_be_written && root->body->copies.slots[slot].read_only)
        status = syncedmem_copy_make_writable(root, slot, from, to);
    return status;
}

syncedmem_status_t syncedmem_access_begin(struct root *root, const struct access *access,
                                          unsigned *out_slot)
{
    const size_t from = access->from, to = access->to;
    const bool writing = access->mode != ACCESS_READ;
    syncedmem_status_t status = syncedmem_prepare(root, access->place, from, to, out_slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_lease_check(root, from, to, writing);
    if (status != SYNCEDMEM_OK)
        return status;
    const bool is_stale = access->mode != ACCESS_WRITE && !is_current(root, *out_slot, from, to);
    status = ensure_memory(root, access, *out_slot, is_stale);
    if (status == SYNCEDMEM_OK && is_stale)
        status = bring_in(root, access, *out_slot);
    if (status == SYNCEDMEM_OK && !access->asynchronous)
        status = syncedmem_work_settle(root, *out_slot, from, to, writing);
    return status;
}

/* ---- The mark ---- */

static void mark_map(struct root *root, const struct access *access, unsigned slot)
{
    struct map *map = &root->body->map;
    const bool changed = access->mode == ACCESS_READ
                             ? syncedmem_map_add(map, access->from, access->to, slot_bit(slot))
                             : syncedmem_map_assign(map, access->from, access->to, slot_bit(slot));
    if (changed)
        syncedmem_root_changed(root);
}

/* The first device touch that succeeds decides the home. */
static void fix_home(struct root *root, unsigned slot)
{
    if (slot == HOST_SLOT || root->home_fixed)
        return;
    if (!root->home)
        root->home = root->body->copies.slots[slot].place;
    root->home_fixed = true;
}

void syncedmem_access_decide(struct root *root, unsigned slot)
{
    syncedmem_copies_capture_policy(root);
    fix_home(root, slot);
}

void syncedmem_access_mark(struct root *root, const struct access *access, unsigned slot)
{
    mark_map(root, access, slot);
    if (access->expose)
        root->body->copies.slots[slot].exposed = true;
    syncedmem_access_decide(root, slot);
}

syncedmem_status_t syncedmem_access(struct root *root, const struct access *access,
                                    unsigned *out_slot)
{
    const syncedmem_status_t status = syncedmem_access_begin(root, access, out_slot);
    if (status == SYNCEDMEM_OK)
        syncedmem_access_mark(root, access, *out_slot);
    return status;
}
