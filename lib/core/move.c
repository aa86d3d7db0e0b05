/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/error.h"
#include "core/access.h"
#include "core/move.h"
#include "core/root.h"

/* ---- Marking ---- */

syncedmem_status_t syncedmem_move_mark(struct root *root, syncedmem_place *place, size_t from,
                                       size_t to)
{
    unsigned slot;
    const struct access written = {.place = place, .mode = ACCESS_WRITE, .from = from, .to = to};
    syncedmem_status_t status = syncedmem_prepare(root, place, from, to, &slot);
    if (status == SYNCEDMEM_OK && !root->body->copies.slots[slot].present)
        status = syncedmem_error(SYNCEDMEM_WRONG_STATE,
                                 "%s has no memory of the buffer that could have been modified",
                                 place->name);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_lease_check(root, from, to, true);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_settle(root, use_of(slot, from, to, true));
    if (status == SYNCEDMEM_OK)
        syncedmem_access_mark(root, &written, slot);
    return status;
}

/* ---- Writing by the library: at one slot, marked when it is done ---- */

/* Bytes that may be half written are not to be trusted there, unless they are the only ones. */
static void distrust(struct root *root, unsigned slot, size_t from, size_t to)
{
    syncedmem_map_remove(&root->body->map, from, to, slot_bit(slot));
    syncedmem_root_changed(root);
}

static syncedmem_status_t finish_write(struct root *root, const struct access *access,
                                       unsigned slot, syncedmem_status_t outcome)
{
    if (outcome == SYNCEDMEM_OK)
        syncedmem_access_mark(root, access, slot);
    else
        distrust(root, slot, access->from, access->to);
    return outcome;
}

static struct access write_access(syncedmem_place *place, size_t from, size_t to)
{
    return (struct access){.place = place,
                           .mode = ACCESS_WRITE,
                           .from = from,
                           .to = to,
                           .choice = {.own = true},
                           .may_fail = true};
}

/* ---- Filling ---- */

static syncedmem_place *place_of_range(const struct root *root, size_t from, size_t to)
{
    if (!root->body)
        return syncedmem_host();
    const struct map_summary summary = syncedmem_map_summary(&root->body->map, from, to);
    const place_set places = summary.in_any & summary.in_all & ~LOST;
    if (!places)
        return syncedmem_host();
    return root->body->copies.slots[__builtin_ctzll(places)].place;
}

syncedmem_status_t syncedmem_move_fill(struct root *root, size_t from, size_t to, uint8_t value)
{
    const struct access access = write_access(place_of_range(root, from, to), from, to);
    unsigned slot;
    const syncedmem_status_t status = syncedmem_access_begin(root, &access, &slot);
    if (status != SYNCEDMEM_OK)
        return status;
    return finish_write(root, &access, slot, syncedmem_transfer_fill(root, slot, from, to, value));
}

/* ---- Copying ---- */

static bool has_memory_at(const struct root *root, const syncedmem_place *place)
{
    unsigned slot;
    return root->body && syncedmem_copy_find(root->body, place, &slot) &&
           root->body->copies.slots[slot].present;
}

/* Whether the target can be used there without being taken to a device that is not its home. */
static bool is_at_home(const struct root *root, const syncedmem_place *place)
{
    return place_is_host(place) || !root->home || root->home == place;
}

/* A place that holds all of the source: where the target has memory already, else where it may have
 * some, else the host. */
static syncedmem_place *place_of_copy(const struct root *to_root, const struct root *from_root,
                                      size_t from, size_t to)
{
    const struct copies *copies = &from_root->body->copies;
    const struct map_summary summary = syncedmem_map_summary(&from_root->body->map, from, to);
    syncedmem_place *possible = NULL;
    for (unsigned slot = 0; slot < copies->count; slot++) {
        syncedmem_place *place = copies->slots[slot].place;
        if (!(summary.in_any & summary.in_all & slot_bit(slot)))
            continue;
        if (has_memory_at(to_root, place))
            return place;
        if (!possible && is_at_home(to_root, place))
            possible = place;
    }
    return possible ? possible : syncedmem_host();
}

static struct bytes_at bytes_at(const struct root *root, unsigned slot, size_t offset)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    return (struct bytes_at){copy->memory, offset, copy->exposed};
}

/* Nothing is touched before both sides have been asked, and the target is ready before the source's
 * fresh bytes are zeroed: what is refused leaves both as they were. */
static syncedmem_status_t prepare_copy(struct root *to_root, const struct access *writing,
                                       unsigned *out_to_slot, struct root *from_root,
                                       const struct access *reading, unsigned *out_from_slot)
{
    syncedmem_status_t status = syncedmem_lease_check(from_root, reading->from, reading->to, false);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_access_begin(to_root, writing, out_to_slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_access(from_root, reading, out_from_slot);
    /* Within one root the source's mark may have used the room for the target's. */
    if (status == SYNCEDMEM_OK &&
        !syncedmem_map_reserve(&to_root->body->map, writing->from, writing->to))
        status = syncedmem_error_no_host_memory("the map of a buffer", to_root->size);
    return status;
}

syncedmem_status_t syncedmem_move_copy(struct root *to_root, size_t to, struct root *from_root,
                                       size_t from, size_t length)
{
    syncedmem_status_t status = syncedmem_root_touch(from_root);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_place *place = place_of_copy(to_root, from_root, from, from + length);
    const struct access reading = {.place = place,
                                   .mode = ACCESS_READ,
                                   .from = from,
                                   .to = from + length,
                                   .choice = {.own = true},
                                   .keeps_lock = true};
    struct access writing = write_access(place, to, to + length);
    writing.keeps_lock = true;
    unsigned from_slot, to_slot;
    status = prepare_copy(to_root, &writing, &to_slot, from_root, &reading, &from_slot);
    if (status != SYNCEDMEM_OK)
        return status;
    status = syncedmem_transfer_within(place, bytes_at(to_root, to_slot, to),
                                       bytes_at(from_root, from_slot, from), length);
    return finish_write(to_root, &writing, to_slot, status);
}

/* ---- Dropping ---- */

/* From a device to the host; from the host to where there is memory already, else to the home. */
static syncedmem_status_t place_to_save_at(const struct root *root, unsigned dropped,
                                           syncedmem_place **out_place)
{
    const struct copies *copies = &root->body->copies;
    *out_place = syncedmem_host();
    if (dropped != HOST_SLOT)
        return SYNCEDMEM_OK;
    for (unsigned slot = HOST_SLOT + 1; slot < copies->count; slot++) {
        *out_place = copies->slots[slot].place;
        if (copies->slots[slot].present)
            return SYNCEDMEM_OK;
    }
    return syncedmem_root_home(root, out_place);
}

/* The parts that are valid at one slot alone; how many. */
static size_t list_alone(const struct map *map, unsigned slot, struct region *regions)
{
    size_t count = 0;
    for (size_t i = 0; i < map->count; i++) {
        if (map->segments[i].valid != slot_bit(slot))
            continue;
        const size_t start = map->segments[i].start;
        if (regions)
            regions[count] = (struct region){start, start, syncedmem_map_end(map, i) - start};
        count++;
    }
    return count;
}

/* The holder of a lease goes on with bytes whose upload has failed, and that are elsewhere now. */
static syncedmem_status_t check_target(const struct root *root, unsigned target,
                                       const struct region *regions, size_t count)
{
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (size_t i = 0; status == SYNCEDMEM_OK && i < count; i++)
        status = syncedmem_lease_check_at(root, target, regions[i].to,
                                          regions[i].to + regions[i].length);
    return status;
}

static syncedmem_status_t bring(struct root *root, unsigned target, unsigned source,
                                const struct region *regions, size_t count)
{
    syncedmem_status_t status = SYNCEDMEM_OK;
    if (root->size > 0)
        status = syncedmem_transfer_regions(root, target, source, regions, count);
    for (size_t i = 0; status == SYNCEDMEM_OK && i < count; i++)
        syncedmem_map_add(&root->body->map, regions[i].from, regions[i].from + regions[i].length,
                          slot_bit(target));
    return status;
}

static syncedmem_status_t prepare_target(struct root *root, unsigned dropped, unsigned *out_target)
{
    syncedmem_place *place;
    syncedmem_status_t status = place_to_save_at(root, dropped, &place);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_copy_slot(root, place, out_target);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_copy_ensure(root, *out_target, 0, 0);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_settle_slot(root, *out_target);
    if (status == SYNCEDMEM_OK && root->body->copies.slots[*out_target].read_only)
        status = syncedmem_copy_make_writable(root, *out_target, 0, 0);
    return status;
}

static syncedmem_status_t save(struct root *root, unsigned dropped)
{
    const struct map *map = &root->body->map;
    const size_t count = list_alone(map, dropped, NULL);
    if (count == 0)
        return SYNCEDMEM_OK;
    unsigned target;
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    syncedmem_status_t status = prepare_target(root, dropped, &target);
    if (status == SYNCEDMEM_NO_DEVICE && root->size == 0) { /* no byte could be lost */
        syncedmem_error_put_back(&kept);
        return SYNCEDMEM_OK;
    }
    if (status != SYNCEDMEM_OK)
        return status;
    struct region *regions = malloc(count * sizeof *regions);
    if (!regions)
        return syncedmem_error_no_host_memory("a list of regions", count * sizeof *regions);
    list_alone(map, dropped, regions);
    status = check_target(root, target, regions, count);
    if (status == SYNCEDMEM_OK)
        status = bring(root, target, dropped, regions, count);
    free(regions);
    if (status == SYNCEDMEM_OK)
        syncedmem_access_decide(root, target);
    return status;
}

/* What is to be saved has to be there first, and what counts as saved elsewhere has to have arrived; and
 * nothing may use memory that is the caller's again. */
static struct use use_of_drop(const struct root *root, unsigned slot)
{
    return (struct use){.slot = (int)slot,
                        .to = SIZE_MAX,
                        .writing = !root->body->copies.slots[slot].owned,
                        .leaving = true};
}

/* True: it waited, and all may be different now. */
static bool await_before_drop(struct root *root, unsigned slot)
{
    const struct use use = use_of_drop(root, slot);
    return syncedmem_work_await(root, use);
}

static syncedmem_status_t drop_slot(struct root *root, unsigned slot)
{
    syncedmem_status_t status = syncedmem_work_reap(root);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_lease_check_slot(root, slot);
    const struct use use = use_of_drop(root, slot);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_work_settle(root, use);
    if (status == SYNCEDMEM_OK)
        status = save(root, slot);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_map_remove(&root->body->map, 0, syncedmem_root_span(root), slot_bit(slot));
    syncedmem_copy_free(root, slot);
    syncedmem_root_changed(root);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_move_drop(struct root *root, syncedmem_place *place)
{
    unsigned slot;
    while (root->body && syncedmem_copy_find(root->body, place, &slot) &&
           root->body->copies.slots[slot].present)
        if (!await_before_drop(root, slot))
            return drop_slot(root, slot);
    return SYNCEDMEM_OK;
}

/* ---- Pushing ---- */

static syncedmem_status_t check_push(const struct root *root, size_t from, size_t to)
{
    const syncedmem_head_t head = syncedmem_root_head(root, from, to);
    if (head == SYNCEDMEM_HEAD_AT_CPU)
        return SYNCEDMEM_OK;
    return syncedmem_error(SYNCEDMEM_WRONG_STATE,
                           "a push starts from HEAD_AT_CPU, and the head is %s",
                           syncedmem_head_name(head));
}

syncedmem_status_t syncedmem_move_push(struct root *root, syncedmem_place *device,
                                       struct stream_ref stream, size_t from, size_t to)
{
    const struct access access = {.place = device,
                                  .mode = ACCESS_READ,
                                  .from = from,
                                  .to = to,
                                  .choice = {.place = device, .ref = stream},
                                  .ordered = true};
    unsigned slot;
    syncedmem_status_t status = root->body ? syncedmem_work_reap(root) : SYNCEDMEM_OK;
    if (status == SYNCEDMEM_OK)
        status = check_push(root, from, to);
    return status == SYNCEDMEM_OK ? syncedmem_access(root, &access, &slot) : status;
}
