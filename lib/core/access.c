/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/access.h"
#include "base/error.h"
#include "core/merge.h"
#include "core/root.h"

/* ---- Before ---- */

/* A copy that went with its device: the first call that names the device has to be told, for
 * pointers into it may be around. */
static syncedmem_status_t tell_loss(struct root *root, unsigned slot)
{
    struct copy *copy = &root->body->copies.slots[slot];
    if (!copy->lost)
        return SYNCEDMEM_OK;
    copy->lost = false;
    root->body->cut_off = NULL;
    return syncedmem_error(SYNCEDMEM_DEVICE_LOST,
                           "%s was lost with its copy of the buffer: its pointers are gone",
                           copy->place->name);
}

syncedmem_status_t syncedmem_prepare(struct root *root, syncedmem_place *place, size_t from,
                                     size_t to, unsigned *out_slot)
{
    syncedmem_status_t status = syncedmem_root_touch(root);
    if (status == SYNCEDMEM_OK)
        status = place_require(place);
    if (status == SYNCEDMEM_OK && !root_is_idle(root))
        status = syncedmem_work_reap(root);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_copy_slot(root, place, out_slot);
    if (status == SYNCEDMEM_OK)
        status = tell_loss(root, *out_slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_merge_if_due(root);
    if (status == SYNCEDMEM_OK && !root_is_idle(root))
        status = syncedmem_work_reserve(root, from, to);
    if (status == SYNCEDMEM_OK && !syncedmem_map_reserve(&root->body->map, from, to))
        status = syncedmem_error_no_host_memory("the map of a buffer", root->size);
    return status;
}

static bool is_current(const struct root *root, unsigned slot, size_t from, size_t to)
{
    const struct map_summary summary = syncedmem_map_summary(&root->body->map, from, to);
    return !summary.has_fresh && (summary.in_all & slot_bit(slot)) != 0;
}

/* ---- Waiting, before anything is looked at: the lock is given back meanwhile ---- */

static bool await_sources(struct root *root, const struct access *access, unsigned slot)
{
    const place_set sources =
        syncedmem_transfer_sources(root, slot, access->from, access->to) & ~LOST;
    for (place_set left = sources; left; left &= left - 1)
        if (syncedmem_work_await(
                root, use_of((unsigned)__builtin_ctzll(left), access->from, access->to, false)))
            return true;
    return false;
}

/* One thing that has to have ended before the access; false: there is none. */
static bool await_one(struct root *root, const struct access *access)
{
    unsigned slot;
    if (!syncedmem_copy_find(root->body, access->place, &slot))
        return false; /* nothing is there yet, and the rest is waited for later */
    const bool is_stale =
        access->mode != ACCESS_WRITE && !is_current(root, slot, access->from, access->to);
    const bool writing = access->mode != ACCESS_READ || is_stale;
    if (syncedmem_work_await(root, use_of(slot, access->from, access->to, writing)))
        return true;
    return is_stale && await_sources(root, access, slot);
}

static void await_conflicts(struct root *root, const struct access *access)
{
    if (!root->body || access->ordered || access->keeps_lock)
        return;
    while (!root_is_idle(root) && await_one(root, access))
        continue;
}

/* ---- Bytes ---- */

static syncedmem_status_t bring_in(struct root *root, const struct access *access, unsigned slot)
{
    const syncedmem_status_t status = syncedmem_copies_check_lost(root, access->from, access->to);
    if (status != SYNCEDMEM_OK)
        return status;
    return access->ordered
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

static syncedmem_status_t come_after_others(struct root *root, const struct access *access,
                                            unsigned slot)
{
    const struct use use = use_of(slot, access->from, access->to, access->mode != ACCESS_READ);
    if (!access->ordered)
        return syncedmem_work_settle(root, use);
    /* What is put on the stream from now on sees the bytes, whoever is bringing them. */
    return access->choice.place == access->place
               ? syncedmem_transfer_order(root, use, access->choice.ref)
               : SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_access_begin(struct root *root, const struct access *access,
                                          unsigned *out_slot)
{
    const size_t from = access->from, to = access->to;
    const bool writing = access->mode != ACCESS_READ;
    await_conflicts(root, access);
    syncedmem_status_t status = syncedmem_prepare(root, access->place, from, to, out_slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_lease_check(root, from, to, writing);
    if (status != SYNCEDMEM_OK)
        return status;
    const bool is_stale = access->mode != ACCESS_WRITE && !is_current(root, *out_slot, from, to);
    status = ensure_memory(root, access, *out_slot, is_stale);
    if (status == SYNCEDMEM_OK && is_stale)
        status = bring_in(root, access, *out_slot);
    if (status == SYNCEDMEM_OK && (access->ordered || !root_is_idle(root)))
        status = come_after_others(root, access, *out_slot);
    return status;
}

/* ---- The mark ---- */

static void mark_map(struct root *root, const struct access *access, unsigned slot)
{
    struct map *map = &root->body->map;
    const bool writing = access->mode != ACCESS_READ;
    const bool changed = writing
                             ? syncedmem_map_assign(map, access->from, access->to, slot_bit(slot))
                             : syncedmem_map_add(map, access->from, access->to, slot_bit(slot));
    if (changed)
        syncedmem_root_changed(root);
    if (writing && !root_is_idle(root))
        syncedmem_work_overwritten(root, access->from, access->to,
                                   access->mode == ACCESS_WRITE ? NO_SLOT : (int)slot);
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
