/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/error.h"
#include "core/root.h"
#include "places/discover.h"

/* ---- Life ---- */

static void init_whole(struct root *root, size_t size)
{
    root->whole.root = root;
    root->whole.length = size;
    atomic_init(&root->whole.stamp, 0);
    atomic_init(&root->whole.pointers[HOST_SIDE], NULL);
    atomic_init(&root->whole.pointers[DEVICE_SIDE], NULL);
    atomic_init(&root->whole.references, 1);
}

struct root *syncedmem_root_create(size_t size)
{
    struct root *root = malloc(sizeof *root);
    if (!root)
        return NULL;
    *root = (struct root){.size = size};
    syncedmem_lock_init(&root->lock);
    atomic_init(&root->version, VERSION_STEP | HOT_BITS);
    atomic_init(&root->references, 1);
    init_whole(root, size);
    return root;
}

void syncedmem_root_retain(struct root *root)
{
    atomic_fetch_add_explicit(&root->references, 1, memory_order_relaxed);
}

/* What the functions do with the library is not this call's: its message stays. */
void syncedmem_adoptions_tell(struct adoption *finished)
{
    if (!finished)
        return;
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    while (finished) {
        struct adoption *next = finished->next;
        finished->release(finished->user);
        free(finished);
        finished = next;
    }
    syncedmem_error_put_back(&kept);
}

static struct adoption *take_finished(struct root *root)
{
    if (!root->body)
        return NULL;
    struct adoption *finished = root->body->finished;
    root->body->finished = NULL;
    return finished;
}

struct adoption *syncedmem_root_unlock_only(struct root *root)
{
    struct adoption *finished = take_finished(root);
    syncedmem_unlock(&root->lock);
    return finished;
}

/* What has to be called when all is gone. */
static struct adoption *destroy_body(struct root *root)
{
    struct body *body = root->body;
    if (!body)
        return NULL;
    syncedmem_copies_destroy(root);
    syncedmem_work_leave_all(root);
    syncedmem_map_destroy(&body->map);
    struct adoption *finished = take_finished(root);
    free(body);
    return finished;
}

void syncedmem_root_destroy(struct root *root)
{
    struct adoption *finished = destroy_body(root);
    pthread_mutex_destroy(&root->lock.mutex);
    free(root);
    syncedmem_adoptions_tell(finished);
}

/* A count of leases among the references would cost each of them two atomic operations. What another
 * thread was using when the process was forked is left as it is. */
static bool leave_to_others(struct root *root)
{
    if (!root->body)
        return false;
    if (syncedmem_root_lock(root) != SYNCEDMEM_OK)
        return true;
    const bool is_leased = root->body->leases.open != NULL;
    root->orphaned = is_leased;
    syncedmem_root_unlock(root);
    return is_leased;
}

void syncedmem_root_release(struct root *root)
{
    if (atomic_fetch_sub_explicit(&root->references, 1, memory_order_acq_rel) == 1 &&
        !leave_to_others(root))
        syncedmem_root_destroy(root);
}

bool syncedmem_root_is_left(const struct root *root)
{
    return root->orphaned && !root->body->leases.open;
}

syncedmem_status_t syncedmem_root_touch(struct root *root)
{
    if (root->body)
        return SYNCEDMEM_OK;
    struct body *body = calloc(1, sizeof *body);
    if (!body)
        return syncedmem_error_no_host_memory("the records of a buffer", sizeof *body);
    static _Atomic(uint64_t) roots;
    body->number = atomic_fetch_add_explicit(&roots, 1, memory_order_relaxed) + 1;
    body->epoch = epoch_now();
    syncedmem_map_init(&body->map, syncedmem_root_span(root));
    syncedmem_copies_init(&body->copies);
    root->body = body;
    return SYNCEDMEM_OK;
}

/* ---- What happens to places ---- */

/* Bytes that were under way from a device that is out of reach never arrive. */
static bool catch_up_with_slot(struct root *root, unsigned slot)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    if (!place_in_reach(copy->place))
        return syncedmem_work_abandon(root, copy->place);
    if (!copy->present || copy->losses == place_losses(copy->place))
        return true;
    if (!syncedmem_work_abandon(root, copy->place))
        return false;
    syncedmem_copy_lose(root, slot);
    return true;
}

syncedmem_status_t syncedmem_root_catch_up(struct root *root)
{
    const uint64_t epoch = epoch_now();
    for (unsigned slot = HOST_SLOT + 1; slot < root->body->copies.count; slot++) {
        if (catch_up_with_slot(root, slot))
            continue;
        syncedmem_unlock(&root->lock);
        return syncedmem_error_no_host_memory("the map of a buffer", root->size);
    }
    root->body->epoch = epoch;
    syncedmem_root_changed(root);
    return SYNCEDMEM_OK;
}

/* ---- Hot calls ---- */

/* What a handle's range looks like. */
struct range_facts {
    struct map_summary summary;
    bool leased;
};

static struct range_facts facts_of(const syncedmem_buffer *buffer)
{
    const struct root *root = buffer->root;
    const size_t from = handle_from(buffer), to = handle_to(buffer);
    return (struct range_facts){syncedmem_map_summary(&root->body->map, from, to),
                                syncedmem_lease_overlaps(root, from, to)};
}

/* What is hot at one slot: reading where it is current and exposed, writing where it is alone.
 * An access to the whole range has just succeeded, so that none of it is fresh or leased for
 * writing. */
static uint64_t hot_bits(const struct root *root, unsigned slot, struct range_facts facts,
                         uint64_t read_bit, uint64_t write_bit)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    if (!copy->exposed || !(facts.summary.in_all & slot_bit(slot)))
        return 0;
    const bool is_alone =
        facts.summary.in_any == slot_bit(slot) && !copy->read_only && !facts.leased;
    return is_alone ? read_bit | write_bit : read_bit;
}

static void set_pointer(syncedmem_buffer *buffer, enum side side, unsigned slot)
{
    void *pointer = syncedmem_copy_address(buffer->root, slot, buffer->offset, buffer->length);
    atomic_store_explicit(&buffer->pointers[side], pointer, memory_order_relaxed);
}

/* Unfinished work has to be looked after by every call, and an empty range has no bytes to
 * be anywhere. */
static bool can_be_hot(const syncedmem_buffer *buffer)
{
    return root_is_idle(buffer->root) && handle_from(buffer) < handle_to(buffer);
}

void syncedmem_root_refresh_stamp(syncedmem_buffer *buffer)
{
    struct root *root = buffer->root;
    if (!can_be_hot(buffer))
        return;
    const struct range_facts facts = facts_of(buffer);
    uint64_t bits = hot_bits(root, HOST_SLOT, facts, HOT_CPU_READ, HOT_CPU_WRITE);
    if (bits)
        set_pointer(buffer, HOST_SIDE, HOST_SLOT);
    unsigned slot;
    if (root->home && place_in_reach(root->home) &&
        syncedmem_copy_find(root->body, root->home, &slot)) {
        const uint64_t device_bits = hot_bits(root, slot, facts, HOT_GPU_READ, HOT_GPU_WRITE);
        if (device_bits)
            set_pointer(buffer, DEVICE_SIDE, slot);
        bits |= device_bits;
    }
    const uint64_t version = atomic_load_explicit(&root->version, memory_order_relaxed);
    atomic_store_explicit(&buffer->stamp,
                          ((version & ~(uint64_t)HOT_BITS) | bits) ^ root->body->epoch,
                          memory_order_release);
}

/* ---- Head and home ---- */

const char *syncedmem_head_name(syncedmem_head_t head)
{
    static const char *const names[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED",
                                        "HEAD_SPLIT"};
    return names[head];
}

syncedmem_head_t syncedmem_root_head(const struct root *root, size_t from, size_t to)
{
    if (!root->body)
        return SYNCEDMEM_UNINITIALIZED;
    const struct map_summary summary = syncedmem_map_summary(&root->body->map, from, to);
    if (!summary.in_any)
        return SYNCEDMEM_UNINITIALIZED;
    const bool on_device = (summary.in_all & ~(slot_bit(HOST_SLOT) | LOST)) != 0;
    if (summary.in_all & slot_bit(HOST_SLOT))
        return on_device ? SYNCEDMEM_SYNCED : SYNCEDMEM_HEAD_AT_CPU;
    return on_device ? SYNCEDMEM_HEAD_AT_GPU : SYNCEDMEM_HEAD_SPLIT;
}

syncedmem_status_t syncedmem_root_home(const struct root *root, syncedmem_place **out_place)
{
    *out_place = root->home;
    return root->home ? SYNCEDMEM_OK : syncedmem_discover_current(out_place);
}
