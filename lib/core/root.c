/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/error.h"
#include "core/root.h"
#include "places/discover.h"

_Atomic(uint64_t) syncedmem_epoch;

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
    pthread_mutex_init(&root->lock, NULL);
    atomic_init(&root->version, VERSION_STEP | HOT_BITS);
    atomic_init(&root->references, 1);
    init_whole(root, size);
    return root;
}

static void destroy_body(struct root *root)
{
    struct body *body = root->body;
    /* A failed push matters to no one any more; its memory must still not be in use. */
    syncedmem_work_settle_all(root);
    for (unsigned slot = 0; slot < body->copies_count; slot++)
        syncedmem_copy_free(root, slot);
    if (body->copies != body->first_copies)
        free(body->copies);
    syncedmem_map_destroy(&body->map);
    free(body);
}

void syncedmem_root_release(struct root *root)
{
    if (atomic_fetch_sub_explicit(&root->references, 1, memory_order_acq_rel) > 1)
        return;
    if (root->body)
        destroy_body(root);
    pthread_mutex_destroy(&root->lock);
    free(root);
}

syncedmem_status_t syncedmem_root_touch(struct root *root)
{
    if (root->body)
        return SYNCEDMEM_OK;
    struct body *body = calloc(1, sizeof *body);
    if (!body)
        return syncedmem_error_no_host_memory("the records of a buffer", sizeof *body);
    syncedmem_map_init(&body->map, syncedmem_root_span(root));
    body->copies = body->first_copies;
    body->copies_capacity = FIRST_COPIES;
    body->copies_count = 1;
    body->copies[HOST_SLOT].place = syncedmem_host();
    root->body = body;
    return SYNCEDMEM_OK;
}

/* ---- Hot calls ---- */

/* What is hot at one slot: reading where it is current and exposed, writing where it is alone. */
static uint64_t hot_bits(const struct body *body, unsigned slot, struct map_summary summary,
                         uint64_t read_bit, uint64_t write_bit)
{
    const place_set self = (place_set)1 << slot;
    if (!body->copies[slot].exposed || summary.has_fresh || !(summary.in_all & self))
        return 0;
    return summary.in_any == self ? read_bit | write_bit : read_bit;
}

static void set_pointer(syncedmem_buffer *buffer, enum side side, const struct copy *copy)
{
    char *memory = copy->memory;
    atomic_store_explicit(&buffer->pointers[side], memory ? memory + buffer->offset : NULL,
                          memory_order_relaxed);
}

void syncedmem_root_refresh_stamp(syncedmem_buffer *buffer)
{
    struct root *root = buffer->root;
    struct body *body = root->body;
    if (!body || body->works) /* unfinished work has to be looked after by every call */
        return;
    const size_t end = buffer->offset + (root->size > 0 ? buffer->length : 1);
    const struct map_summary summary = syncedmem_map_summary(&body->map, buffer->offset, end);
    uint64_t bits = hot_bits(body, HOST_SLOT, summary, HOT_CPU_READ, HOT_CPU_WRITE);
    set_pointer(buffer, HOST_SIDE, &body->copies[HOST_SLOT]);
    unsigned slot;
    if (root->home && syncedmem_copy_find(body, root->home, &slot)) {
        bits |= hot_bits(body, slot, summary, HOT_GPU_READ, HOT_GPU_WRITE);
        set_pointer(buffer, DEVICE_SIDE, &body->copies[slot]);
    }
    const uint64_t version = atomic_load_explicit(&root->version, memory_order_relaxed);
    const uint64_t epoch = atomic_load_explicit(&syncedmem_epoch, memory_order_relaxed);
    atomic_store_explicit(&buffer->stamp, ((version & ~(uint64_t)HOT_BITS) | bits) ^ epoch,
                          memory_order_release);
}

/* ---- Head and home ---- */

syncedmem_head_t syncedmem_root_head(const struct root *root, size_t from, size_t to)
{
    if (!root->body)
        return SYNCEDMEM_UNINITIALIZED;
    const struct map_summary summary = syncedmem_map_summary(&root->body->map, from, to);
    if (!summary.in_any)
        return SYNCEDMEM_UNINITIALIZED;
    const place_set host = (place_set)1 << HOST_SLOT;
    const bool on_device = (summary.in_all & ~host) != 0;
    if (summary.in_all & host)
        return on_device ? SYNCEDMEM_SYNCED : SYNCEDMEM_HEAD_AT_CPU;
    return on_device ? SYNCEDMEM_HEAD_AT_GPU : SYNCEDMEM_HEAD_SPLIT;
}

syncedmem_status_t syncedmem_root_home(const struct root *root, syncedmem_place **out_place)
{
    *out_place = root->home;
    return root->home ? SYNCEDMEM_OK : syncedmem_discover_current(out_place);
}

bool syncedmem_root_home_is_fixed(const struct root *root)
{
    if (!root->body)
        return false;
    for (size_t slot = HOST_SLOT + 1; slot < root->body->copies_count; slot++)
        if (root->body->copies[slot].present)
            return true;
    return false;
}
