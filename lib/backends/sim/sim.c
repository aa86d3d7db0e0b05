/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/sim/sim.h"
#include "backends/sim/specification.h"
#include "base/epoch.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"

struct backend_device {
    size_t index;
    _Atomic(struct engine_device *) engine; /* made at the first use of the device */
    _Atomic(uint64_t) losses_told;          /* so many are in the epoch */
    char description[64];
};

/* The engine's own objects are handed out as the table's. */
static struct engine_stream *to_engine_stream(struct backend_stream *stream)
{
    return (struct engine_stream *)stream;
}

static struct engine_event *to_engine_event(struct backend_event *event)
{
    return (struct engine_event *)event;
}

static struct lock lock = LOCK_INITIALIZER;

/* Under the lock until `opened` is set; constant from then on. */
static struct sim_specification specification;
static bool configured;
static bool opened;

static struct backend_device devices[SIM_DEVICES_MAX];

static struct engine_device *engine_if_made(const struct backend_device *device)
{
    return atomic_load_explicit(&device->engine, memory_order_acquire);
}

/* ---- Losses: counted by the engine, told to the rest by whoever comes across one first ---- */

static uint64_t sim_losses(const struct backend_device *device)
{
    const struct engine_device *engine = engine_if_made(device);
    return engine ? syncedmem_engine_losses(engine) : 0;
}

static void tell_losses(struct backend_device *device)
{
    const uint64_t losses = sim_losses(device);
    if (atomic_exchange(&device->losses_told, losses) != losses)
        syncedmem_epoch_advance();
}

static syncedmem_status_t report_loss(const struct backend_device *device, const char *what)
{
    for (size_t i = 0; i < specification.devices; i++)
        tell_losses(&devices[i]);
    if (device)
        return syncedmem_error(SYNCEDMEM_DEVICE_LOST, "sim:%zu is lost: %s", device->index, what);
    return syncedmem_error(SYNCEDMEM_DEVICE_LOST, "sim: the device is lost: %s", what);
}

/* ---- Results ---- */

static syncedmem_status_t report(enum engine_result result, const struct backend_device *device,
                                 const char *what)
{
    switch (result) {
    case ENGINE_OK:
        return SYNCEDMEM_OK;
    case ENGINE_HOST_MEMORY:
        return syncedmem_error(SYNCEDMEM_OUT_OF_HOST_MEMORY,
                               "no host memory or thread for a simulated device: %s", what);
    case ENGINE_BAD_ADDRESS:
        return syncedmem_error(SYNCEDMEM_WRONG_MEMORY,
                               "sim: %s: an address lies outside the device's live blocks", what);
    case ENGINE_DEVICE_MEMORY:
        return syncedmem_error(SYNCEDMEM_OUT_OF_DEVICE_MEMORY, "sim:%zu: %s: no memory",
                               device ? device->index : 0, what);
    case ENGINE_LOST:
        return report_loss(device, what);
    default:
        return syncedmem_error(SYNCEDMEM_DEVICE_ERROR, "sim: %s: simulated failure (%s)", what,
                               result == ENGINE_REFUSED ? "refused" : "failed while it ran");
    }
}

/* ---- Configuration and discovery ---- */

syncedmem_status_t syncedmem_sim_backend_configure(const char *text)
{
    struct sim_specification wanted = syncedmem_sim_default_specification();
    char message[SIM_MESSAGE_SIZE];
    if (!syncedmem_sim_parse_specification(text, &wanted, message))
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%s", message);
    syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    if (opened) {
        status = syncedmem_error(SYNCEDMEM_WRONG_STATE, "the simulator is in use already");
    } else {
        specification = wanted;
        configured = true;
    }
    syncedmem_unlock(&lock);
    return status;
}

/* A malformed variable is ignored as a whole. */
static void read_environment(void)
{
    specification = syncedmem_sim_default_specification();
    char message[SIM_MESSAGE_SIZE];
    const char *text = secure_getenv("SYNCEDMEM_SIM");
    if (text && !syncedmem_sim_parse_specification(text, &specification, message)) {
        specification = syncedmem_sim_default_specification();
        syncedmem_log(SYNCEDMEM_LOG_WARNING, "SYNCEDMEM_SIM is ignored: %s", message);
    }
}

static void name_device(struct backend_device *device, size_t index)
{
    device->index = index;
    snprintf(device->description, sizeof device->description,
             "simulated device with %llu MiB of memory",
             (unsigned long long)(specification.settings.memory >> 20));
}

static syncedmem_status_t sim_open(void)
{
    const syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    if (!configured)
        read_environment();
    for (size_t i = 0; i < specification.devices; i++)
        name_device(&devices[i], i);
    opened = true;
    syncedmem_unlock(&lock);
    return SYNCEDMEM_OK;
}

static size_t sim_device_count(void)
{
    return specification.devices;
}

static struct backend_device *sim_device_at(size_t index)
{
    return &devices[index];
}

static bool sim_wanted(void)
{
    if (secure_getenv("SYNCEDMEM_SIM"))
        return true;
    if (syncedmem_lock(&lock) != SYNCEDMEM_OK)
        return false;
    const bool wanted = configured || opened;
    syncedmem_unlock(&lock);
    return wanted;
}

/* ---- Devices: an engine is made at the first use, so that device 0 is not touched for device
 * 1 ---- */

static syncedmem_status_t make_engine(struct backend_device *device)
{
    struct engine_device *engine;
    const enum engine_result result =
        syncedmem_engine_device_create(&specification.settings, &engine);
    if (result == ENGINE_OK)
        atomic_store_explicit(&device->engine, engine, memory_order_release);
    return report(result, device, "its memory");
}

static syncedmem_status_t engine_of(struct backend_device *device,
                                    struct engine_device **out_engine)
{
    *out_engine = engine_if_made(device);
    if (*out_engine)
        return SYNCEDMEM_OK;
    syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    if (!engine_if_made(device))
        status = make_engine(device);
    syncedmem_unlock(&lock);
    *out_engine = engine_if_made(device);
    return status;
}

static syncedmem_status_t sim_device_text(struct backend_device *device, syncedmem_key_t key,
                                          const char **out_text)
{
    (void)key; /* the only one that places leave to a backend: the description */
    *out_text = device->description;
    return SYNCEDMEM_OK;
}

static syncedmem_status_t sim_device_number(struct backend_device *device, syncedmem_key_t key,
                                            uint64_t *out_number)
{
    const struct engine_device *engine = engine_if_made(device);
    switch (key) {
    case SYNCEDMEM_PLACE_MEMORY_TOTAL:
        *out_number = specification.settings.memory;
        return SYNCEDMEM_OK;
    case SYNCEDMEM_PLACE_MEMORY_FREE:
        *out_number = engine ? syncedmem_engine_memory_free(engine_if_made(device))
                             : specification.settings.memory;
        return SYNCEDMEM_OK;
    case SYNCEDMEM_PLACE_ALIGNMENT:
        *out_number = ENGINE_ALIGNMENT;
        return SYNCEDMEM_OK;
    default: /* unified: never */
        *out_number = 0;
        return SYNCEDMEM_OK;
    }
}

/* ---- Memory ---- */

static syncedmem_status_t sim_alloc(struct backend_device *device, size_t size, void **out_memory)
{
    struct engine_device *engine;
    const syncedmem_status_t status = engine_of(device, &engine);
    if (status != SYNCEDMEM_OK)
        return status;
    const enum engine_result result = syncedmem_engine_alloc(engine, size, out_memory);
    if (result != ENGINE_DEVICE_MEMORY)
        return report(result, device, "a block");
    return syncedmem_error(SYNCEDMEM_OUT_OF_DEVICE_MEMORY,
                           "sim:%zu: a block of %zu bytes was refused: %llu of %llu bytes are free",
                           device->index, size,
                           (unsigned long long)syncedmem_engine_memory_free(engine),
                           (unsigned long long)syncedmem_engine_memory_total(engine));
}

static void sim_free(struct backend_device *device, void *memory)
{
    syncedmem_engine_free(engine_if_made(device), memory);
}

static void sim_classify(const void *address, struct memory_facts *out_facts)
{
    *out_facts = (struct memory_facts){.kind = MEMORY_UNKNOWN};
    for (size_t i = 0; i < specification.devices; i++) {
        struct engine_device *engine = engine_if_made(&devices[i]);
        if (!engine || !syncedmem_engine_owns(engine, address))
            continue;
        void *start;
        size_t size;
        out_facts->kind = MEMORY_DEVICE;
        out_facts->device = &devices[i];
        if (syncedmem_engine_locate(engine, address, &start, &size))
            out_facts->available = size - (size_t)((const char *)address - (char *)start);
        return;
    }
}

static syncedmem_status_t sim_pin(struct backend_device *device, void *address, size_t size)
{
    struct engine_device *engine;
    const syncedmem_status_t status = engine_of(device, &engine);
    if (status != SYNCEDMEM_OK)
        return status;
    return report(syncedmem_engine_pin(engine, address, size), device, "pinning host memory");
}

static void sim_unpin(struct backend_device *device, void *address)
{
    syncedmem_engine_unpin(engine_if_made(device), address);
}

/* ---- Streams ---- */

static syncedmem_status_t sim_stream_create(struct backend_device *device,
                                            struct backend_stream **out_stream)
{
    struct engine_device *engine;
    struct engine_stream *stream = NULL;
    syncedmem_status_t status = engine_of(device, &engine);
    if (status == SYNCEDMEM_OK)
        status = report(syncedmem_engine_stream_create(engine, &stream), device, "a stream");
    *out_stream = (struct backend_stream *)stream;
    return status;
}

static void sim_stream_release(struct backend_stream *stream)
{
    syncedmem_engine_stream_release(to_engine_stream(stream));
}

static syncedmem_status_t sim_stream_default(struct backend_device *device,
                                             struct backend_stream **out_stream)
{
    struct engine_device *engine;
    struct engine_stream *stream = NULL;
    syncedmem_status_t status = engine_of(device, &engine);
    if (status == SYNCEDMEM_OK)
        status =
            report(syncedmem_engine_stream_default(engine, &stream), device, "the default stream");
    *out_stream = (struct backend_stream *)stream;
    return status;
}

static syncedmem_status_t sim_stream_wait(struct backend_stream *stream)
{
    return report(syncedmem_engine_stream_synchronize(to_engine_stream(stream)), NULL,
                  "waiting for a stream");
}

static syncedmem_status_t sim_stream_wait_event(struct backend_stream *stream,
                                                struct backend_event *event)
{
    return report(
        syncedmem_engine_stream_wait_event(to_engine_stream(stream), to_engine_event(event)), NULL,
        "ordering streams");
}

/* ---- Work ---- */

/* The table's regions are the engine's: the engine includes nothing of ours, so this says it. */
_Static_assert(sizeof(struct region) == sizeof(struct engine_region) &&
                   offsetof(struct region, to) == offsetof(struct engine_region, to) &&
                   offsetof(struct region, from) == offsetof(struct engine_region, from) &&
                   offsetof(struct region, length) == offsetof(struct engine_region, length),
               "regions are passed on as they are");

static const struct engine_region *to_engine_regions(const struct region *regions)
{
    return (const struct engine_region *)(const void *)regions;
}

static struct engine_device *engine_of_side(const struct backend_device *device)
{
    return device ? engine_if_made(device) : NULL;
}

static struct engine_copy to_engine_copy(const struct transfer *transfer)
{
    return (struct engine_copy){
        .to = transfer->to,
        .from = transfer->from,
        .to_device = engine_of_side(transfer->to_device),
        .from_device = engine_of_side(transfer->from_device),
        .regions = to_engine_regions(transfer->regions),
        .count = transfer->count,
    };
}

static syncedmem_status_t sim_copy(struct backend_stream *stream, const struct transfer *transfer,
                                   struct backend_event **out_event)
{
    const struct engine_copy copy = to_engine_copy(transfer);
    struct engine_event *event = NULL;
    const enum engine_result result =
        syncedmem_engine_copy(to_engine_stream(stream), &copy, &event);
    *out_event = (struct backend_event *)event;
    return report(result, NULL, "a copy");
}

/* A driver's blocking copy may return when it has read its source: an event tells the rest. */
static syncedmem_status_t wait_for_landing(struct backend_stream *stream)
{
    struct engine_event *event;
    enum engine_result result = syncedmem_engine_record(to_engine_stream(stream), &event);
    if (result == ENGINE_HOST_MEMORY) {
        result = syncedmem_engine_stream_synchronize(to_engine_stream(stream));
    } else if (result == ENGINE_OK) {
        result = syncedmem_engine_event_wait(event);
        syncedmem_engine_event_release(event);
    }
    return report(result, NULL, "a copy");
}

static syncedmem_status_t sim_copy_wait(struct backend_stream *stream,
                                        const struct transfer *transfer)
{
    const struct engine_copy copy = to_engine_copy(transfer);
    const enum engine_result result = syncedmem_engine_copy_wait(to_engine_stream(stream), &copy);
    return result == ENGINE_OK ? wait_for_landing(stream) : report(result, NULL, "a copy");
}

static syncedmem_status_t sim_fill(struct backend_stream *stream, void *memory,
                                   const struct region *regions, size_t count, uint8_t value,
                                   struct backend_event **out_event)
{
    const struct engine_fill fill = {
        .to = memory, .regions = to_engine_regions(regions), .count = count, .value = value};
    struct engine_event *event = NULL;
    const enum engine_result result =
        syncedmem_engine_fill(to_engine_stream(stream), &fill, &event);
    *out_event = (struct backend_event *)event;
    return report(result, NULL, "a fill");
}

static syncedmem_status_t sim_fill_wait(struct backend_stream *stream, void *memory,
                                        const struct region *regions, size_t count, uint8_t value)
{
    const struct engine_fill fill = {
        .to = memory, .regions = to_engine_regions(regions), .count = count, .value = value};
    return report(syncedmem_engine_fill_wait(to_engine_stream(stream), &fill), NULL, "a fill");
}

static syncedmem_status_t sim_record(struct backend_stream *stream,
                                     struct backend_event **out_event)
{
    struct engine_event *event = NULL;
    const enum engine_result result = syncedmem_engine_record(to_engine_stream(stream), &event);
    *out_event = (struct backend_event *)event;
    return report(result, NULL, "an event");
}

/* ---- Events ---- */

static syncedmem_status_t sim_event_wait(struct backend_event *event)
{
    return report(syncedmem_engine_event_wait(to_engine_event(event)), NULL, "a copy");
}

static bool sim_event_done(struct backend_event *event, syncedmem_status_t *out_status)
{
    const enum engine_result result = syncedmem_engine_event_query(to_engine_event(event));
    if (result == ENGINE_PENDING)
        return false;
    if (out_status)
        *out_status = report(result, NULL, "a copy");
    return true;
}

static void sim_event_release(struct backend_event *event)
{
    syncedmem_engine_event_release(to_engine_event(event));
}

const struct backend syncedmem_backend_sim = {
    .name = "sim",
    .by_name_only = true,
    .open = sim_open,
    .device_count = sim_device_count,
    .device_at = sim_device_at,
    .wanted = sim_wanted,
    .device_text = sim_device_text,
    .device_number = sim_device_number,
    .losses = sim_losses,
    .leave = syncedmem_engine_leave,
    .alloc = sim_alloc,
    .free = sim_free,
    .classify = sim_classify,
    .pin = sim_pin,
    .unpin = sim_unpin,
    .stream_create = sim_stream_create,
    .stream_release = sim_stream_release,
    .stream_default = sim_stream_default,
    .stream_wait = sim_stream_wait,
    .stream_wait_event = sim_stream_wait_event,
    .copy = sim_copy,
    .fill = sim_fill,
    .copy_wait = sim_copy_wait,
    .fill_wait = sim_fill_wait,
    .record = sim_record,
    .event_wait = sim_event_wait,
    .event_done = sim_event_done,
    .event_release = sim_event_release,
};

/* ---- What only simulated devices can do ---- */

syncedmem_status_t syncedmem_sim_backend_launch(struct backend_stream *stream,
                                                syncedmem_sim_kernel_fn kernel,
                                                const void *arguments, size_t arguments_size,
                                                const void *const *addresses, size_t count)
{
    return report(syncedmem_engine_launch(to_engine_stream(stream), kernel, arguments,
                                          arguments_size, addresses, count, NULL),
                  NULL, "a kernel");
}

/* ---- The user's own blocks, told from the library's, which are not theirs to free ---- */

struct user_block {
    struct user_block *next;
    const struct backend_device *device;
    void *address;
    uint64_t losses; /* of the device when it was made */
};

static struct user_block *user_blocks; /* under the lock */

/* The newest one, where blocks before a loss had that address too. The lock is held. */
static struct user_block **find_user_block(const struct backend_device *device, const void *address)
{
    struct user_block **link = &user_blocks;
    while (*link && ((*link)->device != device || (*link)->address != address))
        link = &(*link)->next;
    return link;
}

syncedmem_status_t syncedmem_sim_backend_alloc(struct backend_device *device, size_t size,
                                               void **out_pointer)
{
    struct user_block *block = malloc(sizeof *block);
    if (!block)
        return syncedmem_error_no_host_memory("the record of a block", sizeof *block);
    *block = (struct user_block){.device = device, .losses = sim_losses(device)};
    syncedmem_status_t status = sim_alloc(device, size, &block->address);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK) {
        free(block);
        return status;
    }
    *out_pointer = block->address;
    block->next = user_blocks;
    user_blocks = block;
    syncedmem_unlock(&lock);
    return SYNCEDMEM_OK;
}

/* A kernel on the default stream may still use the block. A lost one does not. */
static syncedmem_status_t wait_for_default_stream(struct backend_device *device)
{
    struct backend_stream *stream;
    syncedmem_status_t status = sim_stream_default(device, &stream);
    if (status == SYNCEDMEM_OK)
        status = sim_stream_wait(stream);
    return status == SYNCEDMEM_DEVICE_LOST ? SYNCEDMEM_OK : status;
}

static syncedmem_status_t refuse_block(const struct backend_device *device, const void *pointer)
{
    return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT,
                           "%p is no block of syncedmem_sim_alloc() on sim:%zu", pointer,
                           device->index);
}

/* Takes the record away. A block of before a loss is not the device's any more. */
static syncedmem_status_t forget_user_block(struct backend_device *device, const void *pointer)
{
    const syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    struct user_block **link = find_user_block(device, pointer);
    struct user_block *block = *link;
    if (block)
        *link = block->next;
    syncedmem_unlock(&lock);
    if (!block)
        return refuse_block(device, pointer);
    free(block);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_sim_backend_free(struct backend_device *device, void *pointer)
{
    syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    const struct user_block *block = *find_user_block(device, pointer);
    const uint64_t losses = block ? block->losses : 0;
    syncedmem_unlock(&lock);
    if (!block)
        return refuse_block(device, pointer);
    if (losses == sim_losses(device))
        status = wait_for_default_stream(device);
    if (status == SYNCEDMEM_OK)
        status = forget_user_block(device, pointer);
    if (status == SYNCEDMEM_OK && losses == sim_losses(device))
        sim_free(device, pointer);
    return status;
}

syncedmem_status_t syncedmem_sim_backend_fail(struct backend_device *device, int32_t what,
                                              uint64_t nth)
{
    static const enum engine_failure kinds[] = {
        [SYNCEDMEM_SIM_FAIL_ALLOC] = ENGINE_FAIL_ALLOC,
        [SYNCEDMEM_SIM_FAIL_COPY] = ENGINE_FAIL_COPY,
        [SYNCEDMEM_SIM_FAIL_COPY_LATE] = ENGINE_FAIL_COPY_LATE,
        [SYNCEDMEM_SIM_FAIL_PIN] = ENGINE_FAIL_PIN,
        [SYNCEDMEM_SIM_FAIL_DEVICE] = ENGINE_FAIL_DEVICE,
    };
    if (what < SYNCEDMEM_SIM_FAIL_ALLOC || what > SYNCEDMEM_SIM_FAIL_DEVICE)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%d names nothing that can fail",
                               (int)what);
    struct engine_device *engine;
    const syncedmem_status_t status = engine_of(device, &engine);
    if (status == SYNCEDMEM_OK)
        syncedmem_engine_fail(engine, kinds[what], nth);
    return status;
}

/* ---- Loss ---- */

syncedmem_status_t syncedmem_sim_backend_lose(struct backend_device *device)
{
    struct engine_device *engine;
    const syncedmem_status_t status = engine_of(device, &engine);
    if (status != SYNCEDMEM_OK)
        return status;
    syncedmem_engine_lose(engine);
    tell_losses(device);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_sim_backend_restore(struct backend_device *device)
{
    struct engine_device *engine = engine_if_made(device);
    const enum engine_result result = engine ? syncedmem_engine_restore(engine) : ENGINE_REFUSED;
    if (result == ENGINE_REFUSED)
        return syncedmem_error(SYNCEDMEM_WRONG_STATE, "sim:%zu is not lost", device->index);
    return report(result, device, "its memory");
}

uint64_t syncedmem_sim_backend_faults(const struct backend_device *device)
{
    const struct engine_device *engine = engine_if_made(device);
    return engine ? syncedmem_engine_faults(engine) : 0;
}
