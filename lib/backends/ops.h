/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of operations: everything the core asks of a kind of device.
 *
 * A backend is one folder beside this file and one `const struct backend`. It never
 * calls the core. A call that fails sets the last error (base/error.h), with the driver's own
 * code and name, and returns the status. backends/none is the commented template of a new one.
 *
 * Words: a `device`, `stream` and `event` here are the backend's own objects. `memory` is what
 * alloc returned or the user handed in: an address, or a driver's object. Host memory is an
 * address.
 */
#ifndef SYNCEDMEM_BACKENDS_OPS_H
#define SYNCEDMEM_BACKENDS_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "syncedmem.h"

struct backend_device;
struct backend_stream;
struct backend_event;

/* One piece of a transfer: offsets from the two memories. */
struct region {
    size_t to;
    size_t from;
    size_t length;
};

struct transfer {
    void *to;
    void *from;
    struct backend_device *to_device;   /* NULL: the host */
    struct backend_device *from_device; /* NULL: the host */
    const struct region *regions;       /* read during the call only */
    size_t count;
};

/* What a driver knows of an address. */
enum memory_kind {
    MEMORY_UNKNOWN, /* the driver never saw it: ordinary host memory, or nothing */
    MEMORY_DEVICE   /* memory of the device that `classify` returns */
};

struct memory_facts {
    enum memory_kind kind;
    struct backend_device *device; /* whose it is */
    size_t available; /* bytes from the address to the end of its block; 0: none there */
};

struct backend {
    const char *name;

    /* Never the default: used only when a device of it is named. */
    bool by_name_only;

    /* ---- Discovery. open() is called once, before anything else; its failure is the reason
     * why the backend cannot be used. */
    syncedmem_status_t (*open)(void);
    size_t (*device_count)(void);
    struct backend_device *(*device_at)(size_t index);

    /* True when the user has asked for this backend, so that its devices are listed. */
    bool (*wanted)(void);

    syncedmem_status_t (*device_text)(struct backend_device *device, syncedmem_key_t key,
                                      const char **out_text);
    syncedmem_status_t (*device_number)(struct backend_device *device, syncedmem_key_t key,
                                        uint64_t *out_number);

    /* How often the device was lost (or reset) since the process began. What was made before a loss
     * is gone: its memory is never freed or used again, its streams and events are only released.
     * A backend that notices a loss counts it first and then calls syncedmem_epoch_advance()
     * (base/epoch.h). As long as a device is lost, every operation on it is DEVICE_LOST; an event
     * of lost work has ended so. */
    uint64_t (*losses)(const struct backend_device *device);

    /* The process ends: no other call follows. Nothing may be waited for. */
    void (*leave)(void);

    /* ---- Memory. Sizes are > 0. */
    syncedmem_status_t (*alloc)(struct backend_device *device, size_t size, void **out_memory);
    /* The core has waited for the work that it knows of. */
    void (*free)(struct backend_device *device, void *memory);
    /* What the driver knows of an address, of any device. Never opens the driver. */
    void (*classify)(const void *address, struct memory_facts *out_facts);
    /* Registers host memory for faster transfers, in place, and takes that back. */
    syncedmem_status_t (*pin)(struct backend_device *device, void *address, size_t size);
    void (*unpin)(struct backend_device *device, void *address);

    /* ---- Streams. */
    syncedmem_status_t (*stream_create)(struct backend_device *device,
                                        struct backend_stream **out_stream);
    void (*stream_release)(struct backend_stream *stream);
    /* Borrowed; never released. */
    syncedmem_status_t (*stream_default)(struct backend_device *device,
                                         struct backend_stream **out_stream);
    syncedmem_status_t (*stream_wait)(struct backend_stream *stream);
    syncedmem_status_t (*stream_wait_event)(struct backend_stream *stream,
                                            struct backend_event *event);

    /* ---- Work on a stream. A whole list of regions is one submission; within one memory they may
     * overlap, one by one, as memmove allows. */
    /* Return at once, with an event that ends with the copy, when its bytes have landed. */
    syncedmem_status_t (*copy)(struct backend_stream *stream, const struct transfer *transfer,
                               struct backend_event **out_event);
    syncedmem_status_t (*fill)(struct backend_stream *stream, void *memory,
                               const struct region *regions, size_t count, uint8_t value,
                               struct backend_event **out_event);
    /* Return when it is done and the bytes have landed, after all that was on the stream before. */
    syncedmem_status_t (*copy_wait)(struct backend_stream *stream, const struct transfer *transfer);
    syncedmem_status_t (*fill_wait)(struct backend_stream *stream, void *memory,
                                    const struct region *regions, size_t count, uint8_t value);
    /* An event for all that is on the stream so far. */
    syncedmem_status_t (*record)(struct backend_stream *stream, struct backend_event **out_event);

    /* ---- Events. */
    syncedmem_status_t (*event_wait)(struct backend_event *event);
    /* False while the work runs; else true, and its outcome. NULL: whoever asks is not to be told,
     * and the last error stays. */
    bool (*event_done)(struct backend_event *event, syncedmem_status_t *out_status);
    void (*event_release)(struct backend_event *event);
};

#endif
