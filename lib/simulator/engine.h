/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator's engine: devices made of ordinary memory and threads.
 *
 * This room knows nothing of buffers, places or statuses. It includes nothing of the
 * rest of the library, so that a double of a driver can be built on the same files.
 *
 *   engine.h    this file: the whole interface
 *   device.c    life of a device, its settings
 *   memory.c    the memfd mapped twice, blocks, translation, registration
 *   stream.c    queues and their worker threads
 *   schedule.c  the adversarial mode: no threads, the order is thrown by dice
 *   kernel.c    kernels
 *   event.c     completion of one operation
 *   transfer.c  what a copy or fill does to bytes, sparse where it can be
 *   failure.c   failures on demand
 *   loss.c      a device is lost, and comes back
 *
 * Threads: every function may be called from any thread. Sizes are in bytes.
 */
#ifndef SYNCEDMEM_SIMULATOR_ENGINE_H
#define SYNCEDMEM_SIMULATOR_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum engine_result {
    ENGINE_OK = 0,
    ENGINE_PENDING,       /* event_query only: not ended yet */
    ENGINE_HOST_MEMORY,   /* malloc, mmap, memfd_create or a thread was refused */
    ENGINE_DEVICE_MEMORY, /* the device's capacity does not hold it, or a failure on demand */
    ENGINE_BAD_ADDRESS,   /* not (wholly) inside a live block of that device */
    ENGINE_REFUSED,       /* a failure on demand, when asked for: nothing was done */
    ENGINE_FAILED,        /* a failure on demand, when it ran: part of it is written */
    ENGINE_LOST           /* the device is lost, or the stream was made before it was */
};

enum engine_failure {
    ENGINE_FAIL_ALLOC,     /* -> ENGINE_DEVICE_MEMORY */
    ENGINE_FAIL_COPY,      /* a copy or fill -> ENGINE_REFUSED at submission */
    ENGINE_FAIL_COPY_LATE, /* a copy or fill -> its event ends with ENGINE_FAILED */
    ENGINE_FAIL_PIN,       /* -> ENGINE_REFUSED */
    ENGINE_FAIL_DEVICE,    /* an allocation, copy, fill or kernel loses the device: ENGINE_LOST */
    ENGINE_FAILURES        /* how many kinds there are */
};

struct engine_settings {
    uint64_t memory;     /* capacity in bytes; what is left of ENGINE_ALIGNMENT is cut off */
    uint64_t latency_ns; /* every copy and fill takes at least this */
    uint64_t bandwidth;  /* bytes a second of copies, 0: no limit */
    uint64_t launch_ns;  /* every kernel takes at least this */
    uint64_t fail[ENGINE_FAILURES]; /* the n-th operation fails, once; 0: none */
    uint64_t seed; /* 0: worker threads; else the adversarial mode, see schedule.c */
};

struct engine_device;
struct engine_stream;
struct engine_event;

/* ---- Devices ---- */

enum engine_result syncedmem_engine_device_create(const struct engine_settings *settings,
                                                  struct engine_device **out_device);

/*
 * Ends all streams, released or not, when their work is done, and unmaps the memory. No stream of
 * another device may still have work with this memory. Events may outlive the device.
 */
void syncedmem_engine_device_destroy(struct engine_device *device);

/* ---- Memory ---- */

/* Blocks start at multiples of this. */
enum { ENGINE_ALIGNMENT = 256 };

/* A block, at an address that faults when the host touches it. Its bytes are arbitrary; size > 0.
 */
enum engine_result syncedmem_engine_alloc(struct engine_device *device, size_t size,
                                          void **out_address);

/* Frees at once: the caller has waited for the work that uses the block. */
enum engine_result syncedmem_engine_free(struct engine_device *device, void *address);

/* Whether the address lies in the device's address range, in a live block or not. */
bool syncedmem_engine_owns(struct engine_device *device, const void *address);

/* The live block that holds the address: its start and size as asked for. False: there is none. */
bool syncedmem_engine_locate(struct engine_device *device, const void *address, void **out_start,
                             size_t *out_size);

/* The same byte at an address that the host can use. The address must be owned. */
void *syncedmem_engine_translate(struct engine_device *device, const void *address);

uint64_t syncedmem_engine_memory_total(const struct engine_device *device);
uint64_t syncedmem_engine_memory_free(struct engine_device *device);

/*
 * Registers host memory with the device (nothing moves), and takes that back by its address.
 * A range that overlaps a registered one is refused; an address that is none is a bad one.
 */
enum engine_result syncedmem_engine_pin(struct engine_device *device, void *address, size_t size);
enum engine_result syncedmem_engine_unpin(struct engine_device *device, void *address);
uint64_t syncedmem_engine_pinned_bytes(struct engine_device *device);

/* ---- Failures on demand ---- */

/*
 * The n-th next operation of that kind fails, once; 1 is the very next, 0 takes it back. Copies
 * and fills count at their submission, a list of regions as one, on the device of the stream.
 */
void syncedmem_engine_fail(struct engine_device *device, enum engine_failure what, uint64_t nth);

/* ---- Loss ---- */

/*
 * Loses the device. What is queued on its streams never runs and ends with ENGINE_LOST; a kernel
 * that runs finishes, and copies that run have finished when this returns. Its blocks and
 * registrations are gone. Every call that takes the device or a stream of it returns ENGINE_LOST
 * from now on, and so does work of other devices with its memory. Losing a lost one does nothing.
 */
void syncedmem_engine_lose(struct engine_device *device);

/*
 * Brings a lost device back, with empty memory at other addresses and a new default stream. The
 * streams of before stay lost. ENGINE_REFUSED where it is not lost.
 */
enum engine_result syncedmem_engine_restore(struct engine_device *device);

/* How often it was lost. */
uint64_t syncedmem_engine_losses(const struct engine_device *device);
bool syncedmem_engine_is_lost(const struct engine_device *device);

/* The process ends: no operation of any device begins any more. Waits for nothing. */
void syncedmem_engine_leave(void);

/* ---- The adversarial mode ---- */

/*
 * How many operations touched a block of the device that was freed after they had been submitted.
 * They ended with ENGINE_BAD_ADDRESS and have not run. Looked for with a seed only.
 */
uint64_t syncedmem_engine_faults(const struct engine_device *device);

/* ---- Streams ---- */

/* A queue with a worker thread of its own; with a seed, without one. */
enum engine_result syncedmem_engine_stream_create(struct engine_device *device,
                                                  struct engine_stream **out_stream);

/* The device's default stream, made when first asked for; lives as long as the device. */
enum engine_result syncedmem_engine_stream_default(struct engine_device *device,
                                                   struct engine_stream **out_stream);

/* Does not wait: the worker ends by itself when its work is done. Not for the default stream. */
void syncedmem_engine_stream_release(struct engine_stream *stream);

/* Blocks until all that was put on the stream before has ended. ENGINE_OK: events tell failures. */
enum engine_result syncedmem_engine_stream_synchronize(struct engine_stream *stream);

/*
 * ---- Work. Each returns at once; out_event may be NULL where nobody asks. ----
 *
 * Addresses in device memory are checked when it is submitted: each region lies inside one live
 * block, or nothing is put on the stream. The start that offsets count from may lie elsewhere.
 * Host addresses are not checked. Regions without length are left out.
 */

struct engine_region {
    size_t to;   /* offset from the transfer's `to` */
    size_t from; /* offset from the transfer's `from` */
    size_t length;
};

struct engine_copy {
    void *to;
    const void *from;
    struct engine_device *to_device;     /* NULL: host memory */
    struct engine_device *from_device;   /* NULL: host memory */
    const struct engine_region *regions; /* copied by the call */
    size_t count;
};

/* One submission for all regions, one by one; in each the ranges may overlap as memmove allows. */
enum engine_result syncedmem_engine_copy(struct engine_stream *stream,
                                         const struct engine_copy *copy,
                                         struct engine_event **out_event);

/*
 * The same, and returns when it is done: on an idle stream the calling thread does it.
 *
 * With a seed, a copy from host memory that is not registered may return before it has landed,
 * as drivers' do: its bytes have been read, and wait on the stream. An event recorded
 * after it tells.
 */
enum engine_result syncedmem_engine_copy_wait(struct engine_stream *stream,
                                              const struct engine_copy *copy);

struct engine_fill {
    void *to;                            /* in memory of the stream's device */
    const struct engine_region *regions; /* `from` is not used */
    size_t count;
    uint8_t value;
};

enum engine_result syncedmem_engine_fill(struct engine_stream *stream,
                                         const struct engine_fill *fill,
                                         struct engine_event **out_event);

enum engine_result syncedmem_engine_fill_wait(struct engine_stream *stream,
                                              const struct engine_fill *fill);

typedef void (*engine_kernel_fn)(void *arguments, void *const *addresses, size_t count);

/*
 * arguments_size > 0: the arguments are copied; 0: the pointer is passed on. The kernel gets the
 * addresses translated; each lies inside a live block of the stream's device, or is NULL.
 */
enum engine_result syncedmem_engine_launch(struct engine_stream *stream, engine_kernel_fn kernel,
                                           const void *arguments, size_t arguments_size,
                                           const void *const *addresses, size_t count,
                                           struct engine_event **out_event);

/* An event for everything put on the stream so far. */
enum engine_result syncedmem_engine_record(struct engine_stream *stream,
                                           struct engine_event **out_event);

/* Work put on the stream from now on starts after the event has ended, in success or failure. */
enum engine_result syncedmem_engine_stream_wait_event(struct engine_stream *stream,
                                                      struct engine_event *event);

/* ---- Events. Counted references; they may outlive their stream. ---- */

/* Blocks until the operation has ended: ENGINE_OK, ENGINE_FAILED, ENGINE_LOST or, with a seed,
 * ENGINE_BAD_ADDRESS. */
enum engine_result syncedmem_engine_event_wait(struct engine_event *event);

/* The same without blocking: ENGINE_PENDING as long as it has not ended. With a seed it may run
 * some operations, so that asking again and again comes to an end. */
enum engine_result syncedmem_engine_event_query(struct engine_event *event);

void syncedmem_engine_event_retain(struct engine_event *event);
void syncedmem_engine_event_release(struct engine_event *event);

#endif
