/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/error.h"
#include "core/retire.h"
#include "core/root.h"
#include "memory/host_block.h"
#include "trace/trace.h"

struct retired {
    struct retired *next;
    struct copy copy;
    size_t size;
    uint64_t buffer; /* its number, for the trace */
    size_t count;
    struct work *works[];
};

static struct lock lock = LOCK_INITIALIZER;
static struct retired *list; /* under the lock */
static atomic_size_t listed;
static uint32_t era; /* of the list: what a forked child finds there belongs to its parent */

/* ---- Freeing ---- */

/* A device that is out of reach, or was lost since, keeps what it has. */
static bool has_memory(const syncedmem_place *place, uint64_t losses)
{
    return place_in_reach(place) && place_losses(place) == losses;
}

static void free_host(const struct copy *copy, size_t size)
{
    const syncedmem_place *device = copy->pinned_with;
    if (copy->pin == PIN_DONE && has_memory(device, copy->pinned_losses))
        device->backend->unpin(device->device, copy->memory);
    syncedmem_host_block_free(copy->memory, size);
    syncedmem_uncount_process(SYNCEDMEM_STAT_HOST_BYTES, size);
}

static void trace_free(const struct copy *copy, size_t size, uint64_t buffer)
{
    if (trace_is_on())
        syncedmem_trace(&(struct trace_event){.kind = TRACE_FREE,
                                              .buffer = buffer,
                                              .bytes = size,
                                              .regions = 1,
                                              .place = copy->place->name});
}

void syncedmem_retired_free(const struct copy *copy, size_t size, uint64_t buffer)
{
    trace_free(copy, size, buffer);
    if (place_is_host(copy->place)) {
        free_host(copy, size);
        return;
    }
    if (has_memory(copy->place, copy->losses))
        copy->place->backend->free(copy->place->device, copy->memory);
    syncedmem_uncount_process(SYNCEDMEM_STAT_DEVICE_BYTES, size);
}

static void destroy(struct retired *retired)
{
    syncedmem_retired_free(&retired->copy, retired->size, retired->buffer);
    for (size_t i = 0; i < retired->count; i++)
        syncedmem_work_release(retired->works[i]);
    free(retired);
}

/* ---- The list ---- */

static bool is_done(const struct retired *retired)
{
    for (size_t i = 0; i < retired->count; i++)
        if (!syncedmem_work_has_ended(retired->works[i]))
            return false;
    return true;
}

static bool lock_list(void)
{
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    if (syncedmem_lock(&lock) != SYNCEDMEM_OK) {
        syncedmem_error_put_back(&kept);
        return false;
    }
    if (era != era_now()) {
        list = NULL;
        atomic_store_explicit(&listed, 0, memory_order_relaxed);
        era = era_now();
    }
    return true;
}

/* Takes off what is done, or what is at a place. */
static struct retired *take(const syncedmem_place *place)
{
    struct retired *taken = NULL;
    for (struct retired **link = &list; *link;) {
        struct retired *retired = *link;
        if (place ? retired->copy.place == place : is_done(retired)) {
            *link = retired->next;
            retired->next = taken;
            taken = retired;
            atomic_fetch_sub_explicit(&listed, 1, memory_order_relaxed);
        } else {
            link = &retired->next;
        }
    }
    return taken;
}

static struct retired *lock_and_take(const syncedmem_place *place)
{
    if (atomic_load_explicit(&listed, memory_order_relaxed) == 0 || !lock_list())
        return NULL;
    struct retired *taken = take(place);
    syncedmem_unlock(&lock);
    return taken;
}

static void destroy_all(struct retired *retired)
{
    while (retired) {
        struct retired *next = retired->next;
        destroy(retired);
        retired = next;
    }
}

void syncedmem_retired_visit(void)
{
    destroy_all(lock_and_take(NULL));
}

static void wait_for(const struct retired *retired)
{
    for (size_t i = 0; i < retired->count; i++)
        syncedmem_work_wait(retired->works[i]);
}

bool syncedmem_retired_wait(const struct syncedmem_place *place)
{
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    struct retired *taken = lock_and_take(place);
    for (const struct retired *retired = taken; retired; retired = retired->next)
        wait_for(retired);
    syncedmem_error_put_back(&kept);
    destroy_all(taken);
    return taken != NULL;
}

/* ---- Retiring ---- */

static bool uses(const struct work *work, unsigned slot)
{
    return (work->reads == (int)slot || work->writes == (int)slot) &&
           !syncedmem_work_has_ended(work);
}

static size_t count_users(const struct root *root, unsigned slot)
{
    size_t count = 0;
    for (const struct work *work = root->body->works.first; work; work = work->next)
        count += uses(work, slot);
    return count;
}

static bool may_be_used_by_kernels(const struct copy *copy)
{
    return copy->exposed && !place_is_host(copy->place) && place_in_reach(copy->place);
}

/* Kernels on the default stream may use a pointer that was given out. NULL: it cannot be told when
 * they have ended, or they have. */
static struct work *work_of_default_stream(const struct copy *copy)
{
    struct stream_ref ref;
    struct work *work = syncedmem_work_alloc(0);
    if (!work)
        return NULL;
    work->place = copy->place;
    if (syncedmem_place_default_stream(copy->place, &ref) == SYNCEDMEM_OK &&
        copy->place->backend->record(ref.stream, &work->event) == SYNCEDMEM_OK)
        return work;
    work->event = NULL;
    syncedmem_work_release(work);
    return NULL;
}

static void add_to_list(struct retired *retired)
{
    retired->next = list;
    list = retired;
    atomic_fetch_add_explicit(&listed, 1, memory_order_relaxed);
}

static struct retired *make(struct root *root, unsigned slot, size_t users)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    struct retired *retired = malloc(sizeof *retired + (users + 1) * sizeof retired->works[0]);
    if (!retired)
        return NULL;
    *retired = (struct retired){.copy = *copy, .size = root->size, .buffer = root->body->number};
    if (may_be_used_by_kernels(copy)) {
        retired->works[0] = work_of_default_stream(copy);
        if (!retired->works[0]) {
            free(retired);
            return NULL;
        }
        retired->count = 1;
    }
    for (struct work *work = root->body->works.first; work && users > 0; work = work->next) {
        if (!uses(work, slot))
            continue;
        syncedmem_work_retain(work);
        retired->works[retired->count++] = work;
        users--;
    }
    return retired;
}

bool syncedmem_retire(struct root *root, unsigned slot)
{
    const size_t users = count_users(root, slot);
    syncedmem_retired_visit();
    if (users == 0 && !may_be_used_by_kernels(&root->body->copies.slots[slot]))
        return false;
    struct retired *retired = make(root, slot, users);
    if (!retired)
        return false;
    if (is_done(retired)) {
        destroy(retired);
        return true;
    }
    if (!lock_list()) {
        wait_for(retired);
        destroy(retired);
        return true;
    }
    add_to_list(retired);
    syncedmem_unlock(&lock);
    return true;
}
