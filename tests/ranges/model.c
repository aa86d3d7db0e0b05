/* SPDX-License-Identifier: BSD-2-Clause */
#include "model.h"

#include <stdlib.h>
#include <string.h>

bool model_open(struct model *model, size_t size, int places)
{
    *model = (struct model){.size = size, .places = places, .home = NO_PLACE};
    unsigned char *block = calloc(size + 1, (size_t)places + 2);
    if (block == NULL) {
        return false;
    }
    model->valid = block;
    model->loose = block + (size + 1);
    for (int place = 0; place < places; place++) {
        model->copy[place].bytes = block + (size + 1) * ((size_t)place + 2);
    }
    return true;
}

void model_close(struct model *model)
{
    free(model->valid);
    model->valid = NULL;
}

static uint8_t bit(int place)
{
    return (uint8_t)(1u << place);
}

/* ---- Looking ---- */

bool range_is_empty(struct range range)
{
    return range.from == range.to;
}

bool ranges_overlap(struct range one, struct range other)
{
    return !range_is_empty(one) && !range_is_empty(other) && one.from < other.to &&
           other.from < one.to;
}

size_t model_valid_bytes(const struct model *model, int place, struct range range)
{
    size_t count = 0;
    for (size_t i = range.from; i < range.to; i++) {
        count += (model->valid[i] & bit(place)) != 0;
    }
    return count;
}

uint8_t model_holders(const struct model *model, struct range range)
{
    uint8_t all = 0xFF;
    bool fresh = true;
    if (model->size == 0) {
        return model->phantom;
    }
    for (size_t i = range.from; i < range.to; i++) {
        if (model->valid[i] != 0) {
            all &= model->valid[i];
            fresh = false;
        }
    }
    return fresh ? 0 : all;
}

static bool all_fresh(const struct model *model, struct range range)
{
    if (model->size == 0) {
        return model->phantom == 0;
    }
    for (size_t i = range.from; i < range.to; i++) {
        if (model->valid[i] != 0) {
            return false;
        }
    }
    return true;
}

syncedmem_head_t model_head(const struct model *model, struct range range)
{
    if (all_fresh(model, range)) {
        return SYNCEDMEM_UNINITIALIZED;
    }
    const uint8_t holders = model_holders(model, range);
    const bool host = (holders & bit(PLACE_HOST)) != 0;
    const bool device = (holders & ~bit(PLACE_HOST)) != 0;
    if (host) {
        return device ? SYNCEDMEM_SYNCED : SYNCEDMEM_HEAD_AT_CPU;
    }
    return device ? SYNCEDMEM_HEAD_AT_GPU : SYNCEDMEM_HEAD_SPLIT;
}

int model_source(const struct model *model, size_t at)
{
    for (int place = 0; place < model->places; place++) {
        if ((model->valid[at] & bit(place)) != 0) {
            return place;
        }
    }
    return NO_PLACE;
}

unsigned char model_byte(const struct model *model, size_t at)
{
    const int place = model_source(model, at);
    return place == NO_PLACE ? 0 : model->copy[place].bytes[at];
}

size_t model_segments(const struct model *model)
{
    size_t count = 1;
    for (size_t i = 1; i < model->size; i++) {
        count += model->valid[i] != model->valid[i - 1];
    }
    return count;
}

bool model_leased(const struct model *model, struct range range, bool only_writers)
{
    for (int i = 0; i < LEASES_MOST; i++) {
        const struct model_lease *lease = &model->lease[i];
        if (lease->open && (lease->writes || !only_writers) &&
            ranges_overlap(lease->range, range)) {
            return true;
        }
    }
    return false;
}

bool model_place_leased(const struct model *model, int place)
{
    for (int i = 0; i < LEASES_MOST; i++) {
        const struct model_lease *lease = &model->lease[i];
        if (lease->open && lease->place == place && !range_is_empty(lease->range)) {
            return true;
        }
    }
    return false;
}

unsigned model_open_leases(const struct model *model)
{
    unsigned count = 0;
    for (int i = 0; i < LEASES_MOST; i++) {
        count += model->lease[i].open;
    }
    return count;
}

/* ---- What may come out ---- */

/* Newer bytes must land in memory that is only read: the buffer moves to memory of its own. */
static bool moves(const struct model *model, int place, struct range range, bool writes)
{
    return model->copy[place].read_only && !range_is_empty(range) &&
           (writes || model_valid_bytes(model, place, range) < range.to - range.from);
}

status_set may_access(const struct model *model, int place, struct range range, bool writes)
{
    if (model_leased(model, range, !writes)) {
        return STATUS(SYNCEDMEM_BUSY);
    }
    if (moves(model, place, range, writes) && model_place_leased(model, place)) {
        return STATUS(SYNCEDMEM_BUSY); /* it would move leased bytes */
    }
    return MAY_OK;
}

status_set may_push(const struct model *model, int device, struct range range)
{
    status_set set = 0;
    if (model_head(model, range) != SYNCEDMEM_HEAD_AT_CPU) {
        set |= STATUS(SYNCEDMEM_WRONG_STATE);
    }
    if (model->home != NO_PLACE && model->home != device) {
        set |= STATUS(SYNCEDMEM_INVALID_ARGUMENT);
    }
    const status_set access = may_access(model, device, range, false);
    set |= access & ~MAY_OK;
    return set == 0 ? MAY_OK : set;
}

status_set may_mark(const struct model *model, int place, struct range range)
{
    status_set set = 0;
    if (!model->copy[place].memory) {
        set |= STATUS(SYNCEDMEM_WRONG_STATE);
        if (range_is_empty(range)) {
            set |= MAY_OK; /* not said */
        }
    }
    if (model_leased(model, range, false)) {
        set |= STATUS(SYNCEDMEM_BUSY);
    }
    return set == 0 ? MAY_OK : set;
}

static bool leased_at_all(const struct model *model)
{
    return model_leased(model, (struct range){0, model->size}, false);
}

status_set may_adopt(const struct model *model)
{
    if (leased_at_all(model)) {
        return STATUS(SYNCEDMEM_BUSY);
    }
    return model_open_leases(model) > 0 ? MAY_OK | STATUS(SYNCEDMEM_BUSY) : MAY_OK; /* empty ones */
}

/* Where bytes go that only the place has: the other places that would do. */
static int refuge(const struct model *model, int place)
{
    if (place != PLACE_HOST) {
        return PLACE_HOST;
    }
    for (int other = 1; other < model->places; other++) {
        if (model->copy[other].memory) {
            return other;
        }
    }
    return model->home == NO_PLACE ? 1 : model->home;
}

static bool only_at(const struct model *model, int place, size_t at)
{
    return model->valid[at] == bit(place);
}

status_set may_drop(const struct model *model, int place)
{
    if (model_place_leased(model, place)) {
        return STATUS(SYNCEDMEM_BUSY);
    }
    const int other = refuge(model, place);
    bool saves = false;
    for (size_t i = 0; i < model->size && !saves; i++) {
        saves = only_at(model, place, i);
    }
    if (saves && model->copy[other].read_only && model_place_leased(model, other)) {
        return STATUS(SYNCEDMEM_BUSY);
    }
    for (int i = 0; i < LEASES_MOST; i++) {
        const struct model_lease *lease = &model->lease[i];
        if (lease->open && lease->place == place) {
            return MAY_OK | STATUS(SYNCEDMEM_BUSY); /* an empty one */
        }
    }
    return MAY_OK;
}

status_set may_fill(const struct model *model, struct range range)
{
    if (model_leased(model, range, false)) {
        return STATUS(SYNCEDMEM_BUSY);
    }
    for (int place = 0; place < model->places; place++) {
        if (model->copy[place].read_only && model_place_leased(model, place)) {
            return MAY_OK | STATUS(SYNCEDMEM_BUSY); /* where it is done is not said for this */
        }
    }
    return MAY_OK;
}

/* ---- What has been done ---- */

static void end_adoption(struct model_copy *copy)
{
    copy->ended += copy->adopted;
    copy->adopted = false;
    copy->read_only = false;
}

/* The place is about to be written in the range. */
static void make_writable(struct model *model, int place)
{
    if (model->copy[place].read_only) {
        end_adoption(&model->copy[place]);
    }
}

static void touch(struct model *model, int place)
{
    model->copy[place].memory = true;
    if (place != PLACE_HOST && model->home == NO_PLACE) {
        model->home = place;
    }
}

/* Counts what moves from one place to another in one call. */
static void count_transfer(struct model *model, int from, int to, uint64_t bytes)
{
    if (bytes == 0 || (from != PLACE_HOST && to != PLACE_HOST)) {
        return;
    }
    if (to == PLACE_HOST) {
        model->bytes_to_host += bytes;
        model->to_host++;
    } else {
        model->bytes_to_device += bytes;
        model->to_device++;
    }
}

/* Copies to the place what of the range is stale there and first valid at `from`. */
static void bring_from(struct model *model, int from, int to, struct range range)
{
    uint64_t bytes = 0;
    for (size_t i = range.from; i < range.to; i++) {
        if ((model->valid[i] & bit(to)) != 0 || model_source(model, i) != from) {
            continue;
        }
        model->copy[to].bytes[i] = model->copy[from].bytes[i];
        model->valid[i] |= bit(to);
        bytes++;
    }
    count_transfer(model, from, to, bytes);
}

static void zero_fresh(struct model *model, int place, struct range range)
{
    for (size_t i = range.from; i < range.to; i++) {
        if (model->valid[i] == 0) {
            model->copy[place].bytes[i] = 0;
            model->valid[i] = bit(place);
        }
    }
}

void model_bring(struct model *model, int place, struct range range)
{
    if (model->size == 0) {
        model->phantom |= bit(place);
        return;
    }
    if (range_is_empty(range)) {
        return;
    }
    if (moves(model, place, range, false)) {
        make_writable(model, place);
    }
    touch(model, place);
    for (int from = 0; from < model->places; from++) {
        if (from != place) {
            bring_from(model, from, place, range);
        }
    }
    zero_fresh(model, place, range);
}

void model_mark(struct model *model, int place, struct range range)
{
    for (size_t i = range.from; i < range.to; i++) {
        model->valid[i] = bit(place);
    }
}

void model_own(struct model *model, int place, struct range range)
{
    if (model->size == 0) {
        model->phantom = bit(place);
        return;
    }
    if (range_is_empty(range)) {
        return;
    }
    make_writable(model, place);
    touch(model, place);
    model_mark(model, place, range);
}

void model_overwrite(struct model *model, int place, struct range range)
{
    model_own(model, place, range);
    for (size_t i = range.from; i < range.to; i++) {
        model->loose[i] = 1;
    }
}

void model_write(struct model *model, int place, size_t from, const unsigned char *bytes,
                 size_t length)
{
    if (length > 0) {
        memcpy(model->copy[place].bytes + from, bytes, length);
        memset(model->loose + from, 0, length);
    }
}

void model_adopt(struct model *model, int place, const unsigned char *bytes, bool read_only)
{
    struct model_copy *copy = &model->copy[place];
    end_adoption(copy);
    model_own(model, place, (struct range){0, model->size});
    model_write(model, place, 0, bytes, model->size);
    copy->memory = true;
    copy->adopted = true;
    copy->read_only = read_only;
}

/* Bytes that are nowhere else go to another place first. */
static void save(struct model *model, int place)
{
    const int other = refuge(model, place);
    uint64_t bytes = 0;
    for (size_t i = 0; i < model->size; i++) {
        if (!only_at(model, place, i)) {
            continue;
        }
        if (bytes == 0) {
            make_writable(model, other);
            touch(model, other);
        }
        model->copy[other].bytes[i] = model->copy[place].bytes[i];
        model->valid[i] |= bit(other);
        bytes++;
    }
    count_transfer(model, place, other, bytes);
}

void model_drop(struct model *model, int place)
{
    save(model, place);
    for (size_t i = 0; i < model->size; i++) {
        model->valid[i] &= (uint8_t)~bit(place);
    }
    end_adoption(&model->copy[place]);
    model->copy[place].memory = false;
}

void model_release(struct model *model)
{
    for (int place = 0; place < model->places; place++) {
        end_adoption(&model->copy[place]);
    }
}

bool model_settle(struct model *model, size_t at, uint8_t places)
{
    if (places == 0) {
        return model->valid[at] == 0;
    }
    const unsigned char byte = model_byte(model, at);
    for (int place = 0; place < model->places; place++) {
        if ((places & bit(place)) != 0) {
            model->copy[place].bytes[at] = byte;
        }
    }
    model->valid[at] = places;
    return true;
}

int model_begin(struct model *model, int place, bool writes, struct range range)
{
    int i = 0;
    while (model->lease[i].open) {
        i++;
    }
    model->lease[i] = (struct model_lease){true, place, writes, range};
    return i;
}

void model_end(struct model *model, int lease)
{
    model->lease[lease].open = false;
}
