/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "places/registry.h"

/* A chunk never moves, so reading needs no lock: places are found while others are added. */
enum { CHUNK = 64 };

struct chunk {
    syncedmem_place places[CHUNK];
    _Atomic(struct chunk *) next;
};

static _Atomic(struct chunk *) first;
static atomic_size_t count;
static struct lock lock = LOCK_INITIALIZER;

size_t syncedmem_registry_count(void)
{
    return atomic_load_explicit(&count, memory_order_acquire);
}

static syncedmem_place *place_in_chunks(size_t index)
{
    struct chunk *chunk = atomic_load(&first);
    for (; index >= CHUNK; index -= CHUNK)
        chunk = atomic_load(&chunk->next);
    return &chunk->places[index];
}

syncedmem_place *syncedmem_registry_at(size_t index)
{
    return index < syncedmem_registry_count() ? place_in_chunks(index) : NULL;
}

syncedmem_place *syncedmem_registry_find(const char *name)
{
    const size_t end = syncedmem_registry_count();
    for (size_t i = 0; i < end; i++)
        if (strcmp(place_in_chunks(i)->name, name) == 0)
            return place_in_chunks(i);
    return NULL;
}

/* Room for the place with that index; under the lock. */
static bool ensure_chunk(size_t index)
{
    _Atomic(struct chunk *) *link = &first;
    for (size_t i = 0; i <= index / CHUNK; i++) {
        if (!atomic_load(link)) {
            struct chunk *chunk = calloc(1, sizeof *chunk);
            if (!chunk)
                return false;
            atomic_store(link, chunk);
        }
        link = &atomic_load(link)->next;
    }
    return true;
}

static syncedmem_status_t add_device(const struct backend *backend, size_t device_index)
{
    char name[PLACE_NAME_SIZE];
    snprintf(name, sizeof name, "%s:%zu", backend->name, device_index);
    if (syncedmem_registry_find(name))
        return SYNCEDMEM_OK;
    const size_t index = syncedmem_registry_count();
    if (!ensure_chunk(index))
        return syncedmem_error_no_host_memory("a list of devices", sizeof(struct chunk));
    syncedmem_place *place = place_in_chunks(index);
    place->backend = backend;
    place->device = backend->device_at(device_index);
    memcpy(place->name, name, sizeof name);
    place->era = era_now();
    place->number = index + 1;
    syncedmem_lock_init(&place->own.lock);
    atomic_store_explicit(&count, index + 1, memory_order_release);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_registry_add_backend(const struct backend *backend)
{
    syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    for (size_t i = 0; i < backend->device_count() && status == SYNCEDMEM_OK; i++)
        status = add_device(backend, i);
    syncedmem_unlock(&lock);
    return status;
}
