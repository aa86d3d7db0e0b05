/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A device address, and the block that it lay in when the kernel was launched. */
struct place {
    const void *address;
    uint64_t block;
};

struct launch {
    struct engine_operation operation;
    engine_kernel_fn kernel;
    struct engine_memory *memory; /* kept mapped */
    void *arguments;              /* the caller's, or a copy at the end of this block */
    struct place *places;         /* as many, behind the addresses */
    size_t count;
    void *addresses[]; /* translated */
};

static bool all_live(const struct launch *launch)
{
    for (size_t i = 0; i < launch->count; i++) {
        const struct place *place = &launch->places[i];
        if (place->address != NULL &&
            syncedmem_engine_block_of(launch->memory, place->address, 1) != place->block)
            return false;
    }
    return true;
}

static enum engine_result run_launch(struct engine_operation *operation)
{
    struct launch *launch = (struct launch *)operation;
    if (operation->stream->scheduled && !all_live(launch)) {
        atomic_fetch_add_explicit(&launch->memory->device->faults, 1, memory_order_relaxed);
        return ENGINE_BAD_ADDRESS;
    }
    launch->kernel(launch->arguments, launch->addresses, launch->count);
    return ENGINE_OK;
}

static void discard_launch(struct engine_operation *operation)
{
    syncedmem_engine_memory_release(((struct launch *)operation)->memory);
}

static size_t align(size_t size)
{
    size_t unit = _Alignof(max_align_t);
    return (size + unit - 1) / unit * unit;
}

/* Where the places and the copied arguments start: at the end, aligned for anything. */
static size_t places_at(size_t count)
{
    return align(sizeof(struct launch) + count * sizeof(void *));
}

static size_t arguments_at(size_t count)
{
    return align(places_at(count) + count * sizeof(struct place));
}

static struct launch *launch_create(size_t count, const void *arguments, size_t arguments_size,
                                    bool with_event)
{
    if (count > SIZE_MAX / 8 / sizeof(struct place) || arguments_size > SIZE_MAX / 2)
        return NULL;
    struct launch *launch = (struct launch *)syncedmem_engine_operation_create(
        arguments_at(count) + arguments_size, with_event);
    if (launch == NULL)
        return NULL;
    launch->operation.run = run_launch;
    launch->operation.discard = discard_launch;
    launch->count = count;
    launch->places = (struct place *)(void *)((unsigned char *)launch + places_at(count));
    launch->arguments = (void *)(uintptr_t)arguments;
    if (arguments_size != 0)
        launch->arguments =
            memcpy((unsigned char *)launch + arguments_at(count), arguments, arguments_size);
    return launch;
}

/* False: one of them lies in no live block. */
static bool place_addresses(struct launch *launch, const void *const *addresses)
{
    for (size_t i = 0; i < launch->count; i++) {
        struct place *place = &launch->places[i];
        *place = (struct place){.address = addresses[i]};
        launch->addresses[i] = NULL;
        if (addresses[i] == NULL)
            continue;
        place->block = syncedmem_engine_block_of(launch->memory, addresses[i], 1);
        launch->addresses[i] = syncedmem_engine_usable(launch->memory, addresses[i]);
        if (place->block == 0)
            return false;
    }
    return true;
}

static enum engine_result submit(struct engine_stream *stream, struct launch *launch,
                                 const void *const *addresses, struct engine_event **out_event)
{
    bool placed = place_addresses(launch, addresses);
    if (placed && !syncedmem_engine_loses_device(stream->device)) {
        syncedmem_engine_stream_put(stream, &launch->operation, out_event);
        return ENGINE_OK;
    }
    syncedmem_engine_operation_discard(&launch->operation);
    return syncedmem_engine_stream_lost(stream) ? ENGINE_LOST : ENGINE_BAD_ADDRESS;
}

enum engine_result syncedmem_engine_launch(struct engine_stream *stream, engine_kernel_fn kernel,
                                           const void *arguments, size_t arguments_size,
                                           const void *const *addresses, size_t count,
                                           struct engine_event **out_event)
{
    if (out_event != NULL)
        *out_event = NULL;
    if (syncedmem_engine_stream_lost(stream))
        return ENGINE_LOST;
    int kept = errno;
    enum engine_result result = ENGINE_HOST_MEMORY;
    struct launch *launch = launch_create(count, arguments, arguments_size, out_event != NULL);
    if (launch != NULL) {
        launch->operation.least_ns = stream->device->settings.launch_ns;
        launch->kernel = kernel;
        launch->memory = syncedmem_engine_memory_of(stream->device);
        result = submit(stream, launch, addresses, out_event);
    }
    errno = kept;
    return result;
}
