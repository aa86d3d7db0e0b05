/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file syncedmem.h
 * @brief One buffer, several places that can hold its bytes.
 *
 * A buffer has a size and no bytes of its own. Ask for a pointer at a place
 * (the host, or a device such as a GPU) and the library allocates there the
 * first time, copies only when that place is stale, and remembers who holds
 * the newest bytes:
 *
 *     syncedmem_buffer *buffer;
 *     syncedmem_create(4096, &buffer);                    // allocates nothing
 *     syncedmem_mutable_cpu_data(buffer, &host_pointer);  // zero bytes, newest on the host
 *     syncedmem_gpu_data(buffer, &device_pointer);        // one transfer, same on both
 *     syncedmem_gpu_data(buffer, &device_pointer);        // nothing to do
 *     syncedmem_release(buffer);
 *
 * Rules that hold for the whole header, unless a function says otherwise:
 *
 * - Units: every size, length and offset is in bytes.
 * - Errors: a function that can fail returns a ::syncedmem_status_t, zero for
 *   success and negative for failure; syncedmem_last_error() then has one line
 *   about it. No function aborts, exits or changes errno, and none prints but for the log. After a
 *   failure no byte of any buffer has changed, and the same call works once
 *   the cause is gone.
 * - Out parameters are set to NULL (or zero) on failure. They may not be NULL.
 * - Threads: any function may be called from any thread with any handle, also
 *   at the same time. A handle must stay referenced while a call uses it.
 * - Ownership: what create() and stream_create() return is owned by the caller,
 *   who gives it back by release(). Places and texts are owned by the library
 *   and live as long as the process.
 * - Everything here exists since version 1.0 unless marked otherwise.
 *
 * Sections: Version, Status, Places, Streams, Buffers, Views, Plain calls, Leases, Adoption,
 * Verbs, Statistics, Log.
 */
#ifndef SYNCEDMEM_H
#define SYNCEDMEM_H

#include <stddef.h>
#include <stdint.h>

/** Marks what the shared library exports. */
#if defined(__GNUC__)
#define SYNCEDMEM_API __attribute__((visibility("default")))
#else
#define SYNCEDMEM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------
 * Version
 * --------------------------------------------------------------------- */

/** Version of this header. Compare with what syncedmem_version() says. */
#define SYNCEDMEM_VERSION_MAJOR 1
#define SYNCEDMEM_VERSION_MINOR 0
#define SYNCEDMEM_VERSION_PATCH 0

/** A version as one number that grows: 1.2.3 is 10203. */
#define SYNCEDMEM_VERSION                                                                          \
    (SYNCEDMEM_VERSION_MAJOR * 10000 + SYNCEDMEM_VERSION_MINOR * 100 + SYNCEDMEM_VERSION_PATCH)

/**
 * Version of the library that runs, in the form of #SYNCEDMEM_VERSION.
 *
 * A program built with this header runs with any library whose major version
 * is the same and whose version is not lower.
 */
SYNCEDMEM_API uint32_t syncedmem_version(void);

/* ------------------------------------------------------------------------
 * Status
 * --------------------------------------------------------------------- */

/**
 * Outcome of a call: #SYNCEDMEM_OK or one of the negative numbers below.
 *
 * The numbers never change. New ones may appear in later versions, so treat an
 * unknown negative number as a failure; syncedmem_status_name() has its name.
 */
typedef int32_t syncedmem_status_t;

enum {
    /** The call did what it says. */
    SYNCEDMEM_OK = 0,

    /** An argument is NULL, unknown or malformed. Correct the call. */
    SYNCEDMEM_INVALID_ARGUMENT = -10,
    /** A size, length or offset is too large, too small, or overflows. Correct the call. */
    SYNCEDMEM_OUT_OF_RANGE = -11,
    /** The object is not in a state that allows this call. Bring it there first. */
    SYNCEDMEM_WRONG_STATE = -12,
    /** This backend, device or handle cannot do that. The last error says what can. */
    SYNCEDMEM_UNSUPPORTED = -13,
    /** Nothing has that name or index. List what there is, or correct the name. */
    SYNCEDMEM_NOT_FOUND = -14,
    /** The memory is of another kind, or on another device, than the call needs. */
    SYNCEDMEM_WRONG_MEMORY = -15,
    /** The bytes are leased in a way that excludes this call. End the lease, then call again. */
    SYNCEDMEM_BUSY = -16,
    /** The token is of no open lease of this buffer: never was, or ended already. */
    SYNCEDMEM_INVALID_LEASE = -17,

    /** The host has no memory for this. Release some and call again. */
    SYNCEDMEM_OUT_OF_HOST_MEMORY = -30,
    /** The device has no memory for this. Release some and call again. */
    SYNCEDMEM_OUT_OF_DEVICE_MEMORY = -31,

    /** There is no device to use. Work on the host, or name a device. */
    SYNCEDMEM_NO_DEVICE = -50,
    /** The driver refused or failed; the last error has its own code. Call again, or give up. */
    SYNCEDMEM_DEVICE_ERROR = -51,
    /** The device was lost, or reset. Its pointers and streams are gone; other places work on. */
    SYNCEDMEM_DEVICE_LOST = -52,
    /** The device was opened before this process was forked. Use it in the parent. */
    SYNCEDMEM_FORKED = -53,
    /** The newest bytes of the range are gone with their only place. Write the range anew. */
    SYNCEDMEM_DATA_LOST = -54
};

/**
 * Name of a status as it is written in this header without the prefix, such as
 * "OUT_OF_RANGE"; "UNKNOWN" for a number that is none. Never NULL.
 */
SYNCEDMEM_API const char *syncedmem_status_name(syncedmem_status_t status);

/** One line in English on what a status means. Never NULL. */
SYNCEDMEM_API const char *syncedmem_status_text(syncedmem_status_t status);

/**
 * What went wrong in the most recent call of this thread that failed.
 *
 * One line, never NULL, empty before the first failure. Calls that succeed
 * leave it alone, so read it only after a failure. The text stays valid until
 * the next failing call on the same thread. When there was no memory to keep
 * the line, a shorter fixed text stands in for it.
 */
SYNCEDMEM_API const char *syncedmem_last_error(void);

/* ------------------------------------------------------------------------
 * Places: the host, and devices
 * --------------------------------------------------------------------- */

/** A place that can hold bytes. Interned: equal places are equal pointers. Never released. */
typedef struct syncedmem_place syncedmem_place;

/** Names one property of a place. */
typedef int32_t syncedmem_key_t;

/** Properties that are texts, for syncedmem_device_text(). */
enum {
    /** Name of the place: "host", "sim:0". What syncedmem_device_find() takes. */
    SYNCEDMEM_PLACE_NAME = 1,
    /** Name of the backend: "host", "sim". */
    SYNCEDMEM_PLACE_BACKEND = 2,
    /** What a person would call it: the model of a GPU. */
    SYNCEDMEM_PLACE_DESCRIPTION = 3
};

/** Properties that are numbers, for syncedmem_device_number(). */
enum {
    /** Bytes of memory the place has. */
    SYNCEDMEM_PLACE_MEMORY_TOTAL = 101,
    /** Bytes of memory that are free there now. */
    SYNCEDMEM_PLACE_MEMORY_FREE = 102,
    /** Every block the library allocates there starts at a multiple of this many bytes. */
    SYNCEDMEM_PLACE_ALIGNMENT = 103,
    /** 1 where the device works in the host's own memory, else 0. */
    SYNCEDMEM_PLACE_UNIFIED = 104
};

/** The host. Never NULL. */
SYNCEDMEM_API syncedmem_place *syncedmem_host(void);

/**
 * How many devices are known.
 *
 * Opens the drivers that are there. Simulated devices are among them only once
 * the simulator was asked for: by the environment variable SYNCEDMEM_SIM, by
 * syncedmem_sim_configure(), or by name ("sim:0"). The number may grow during
 * the life of the process and never shrinks.
 */
SYNCEDMEM_API size_t syncedmem_device_count(void);

/**
 * The device with that index, in the order of discovery.
 *
 * An index keeps its device for the life of the process. An index past the last
 * one is NOT_FOUND.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_device_at(size_t index, syncedmem_place **out_place);

/**
 * The place with that name: "host", or a backend and a number, as "sim:0".
 *
 * NOT_FOUND for a name that is none; NO_DEVICE where the backend exists and has
 * no such device. The last error then says why, as syncedmem_backend_reason() does.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_device_find(const char *name,
                                                       syncedmem_place **out_place);

/**
 * A property of a place that is a text; see #SYNCEDMEM_PLACE_NAME and those after it.
 *
 * The text lives as long as the process. Works for the host too. An unknown key
 * is INVALID_ARGUMENT.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_device_text(syncedmem_place *place, syncedmem_key_t key,
                                                       const char **out_text);

/**
 * A property of a place that is a number; see #SYNCEDMEM_PLACE_MEMORY_TOTAL and those after it.
 *
 * Works for the host too. An unknown key is INVALID_ARGUMENT.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_device_number(syncedmem_place *place,
                                                         syncedmem_key_t key, uint64_t *out_number);

/**
 * The device that this thread uses when none is named.
 *
 * What syncedmem_device_set_current() chose on this thread; else the device named by the
 * environment variable SYNCEDMEM_DEVICE ("none": NO_DEVICE); else the first GPU. Simulated
 * devices are never chosen on the library's own account. NO_DEVICE where there is none (the
 * last error says why), NOT_FOUND where SYNCEDMEM_DEVICE names none. Only the first device
 * touch of a buffer without a home asks for it.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_device_current(syncedmem_place **out_place);

/**
 * Chooses the device that this thread uses when none is named.
 *
 * NULL goes back to the default. Other threads are not affected. The host is
 * INVALID_ARGUMENT.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_device_set_current(syncedmem_place *place);

/**
 * Why a backend cannot be used, in one line; an empty text where it can.
 *
 * Takes the backend's name ("sim", "none"). Opens its driver if that has not
 * been done. Never NULL; an unknown name yields a text that says so. The text lives
 * as long as the process.
 */
SYNCEDMEM_API const char *syncedmem_backend_reason(const char *name);

/* ------------------------------------------------------------------------
 * Streams: queues of work on a device
 *
 * Work that a call leaves unfinished is remembered with its buffer: transfers, and what was on a
 * lease's stream when the lease ended. Later calls come after what they conflict with, that is,
 * overlapping bytes of which one of the two changes something at the same place:
 *
 * - begin() at a device, prefetch() and async_gpu_push() block for nothing: the stream's further
 *   work is put after what has to come first. Only where that is on a stream of another driver, or
 *   uses read-only adopted memory that has to be left, does the call wait for it.
 * - plain calls, begin() at the host, mark_modified(), copy(), fill() and drop() wait for it, and
 *   for no other work of the buffer or of anyone else's; the plain calls also for the default
 *   stream. What they start has ended when they return.
 * - release(), set_, adopt() and drop() free memory of the library when the work that uses it has
 *   ended, and do not wait for that. Memory that was adopted is no longer used when they return.
 *
 * Failures that come later: a transfer that fails after its call has returned leaves its range
 * stale at the target and wherever it was copied from there; the range is current again where it
 * came from, also when the target was begun for READ_WRITE meanwhile: what kernels of such a lease
 * write, even after the failure was returned, is void, so end it and begin again. The next call that
 * uses bytes of the buffer returns the failure, once, and does nothing else. Where no place has the
 * bytes any more that is DATA_LOST, with the range, and so is every later call that reads them, until
 * they are written: by a lease for WRITE, fill(), copy(), mark_modified(), set_ or adopt(). All this
 * is about one buffer. What a kernel made of one buffer and wrote to another is the program's to
 * judge: syncedmem_wait() for the inputs before the outputs are trusted.
 *
 * A lost device: calls that need it are DEVICE_LOST. What only it had is lost, as above; what another
 * place has is used from there. The first call after the loss that brings bytes of a buffer there
 * or gives out a pointer, where it had memory, is DEVICE_LOST, also when the device is back by
 * then, because pointers into that memory are gone; then bytes are brought there anew. wait() is
 * DEVICE_LOST, once, where transfers went with the device. Streams from before the loss, handles on
 * the default stream included, stay lost: make new ones. To go on: wait for all buffers, make
 * streams, and submit again what was not known to have ended.
 *
 * A forked child: buffers that no device was used for work on. Of others the child can read and
 * write what is valid on the host; what needs a device that was used before the fork is FORKED, and so is
 * a call on a buffer that another thread was inside of. No driver is called, and the memory of
 * devices, and its release functions, are the parent's. Drivers first used in the child work.
 *
 * The end of the process, from the library's exit handler on: no driver is called any more. Calls
 * that need a device are NO_DEVICE, bytes that are valid on the host can be read, and release()
 * works. Nothing is waited for, whatever is said elsewhere.
 * --------------------------------------------------------------------- */

/** A queue of work on one device, done in order. */
typedef struct syncedmem_stream syncedmem_stream;

/**
 * Makes a stream on a device.
 *
 * Work on it is not ordered with work on other streams of the device, the
 * default stream included. The host place is INVALID_ARGUMENT. Owned by the
 * caller: syncedmem_stream_release().
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_stream_create(syncedmem_place *place,
                                                         syncedmem_stream **out_stream);

/**
 * A handle on the device's default stream, the one that the plain calls are ordered with.
 *
 * Owned by the caller, who releases it as any other; the stream itself stays, unless the device is
 * lost.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_stream_default(syncedmem_place *place,
                                                          syncedmem_stream **out_stream);

/** Adds a reference and returns the same handle. NULL stays NULL. */
SYNCEDMEM_API syncedmem_stream *syncedmem_stream_retain(syncedmem_stream *stream);

/**
 * Gives a reference to a stream back. NULL is fine.
 *
 * The last one ends it, and does not wait: what was put on the stream is still done.
 */
SYNCEDMEM_API void syncedmem_stream_release(syncedmem_stream *stream);

/**
 * Blocks until everything put on the stream before this call has ended.
 *
 * Does not say whether a buffer's transfer on it failed: syncedmem_wait() does.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_stream_wait(syncedmem_stream *stream);

/** The device that a stream is on; NULL for NULL. */
SYNCEDMEM_API syncedmem_place *syncedmem_stream_place(const syncedmem_stream *stream);

/* ------------------------------------------------------------------------
 * Buffers
 * --------------------------------------------------------------------- */

/** A buffer: a size, and the knowledge of which places hold its newest bytes. */
typedef struct syncedmem_buffer syncedmem_buffer;

/** Where the newest bytes of a buffer are. Fixed numbers; the first four are Caffe's. */
typedef int32_t syncedmem_head_t;

enum {
    /** No byte has been written or brought anywhere yet: all are zero, at every place. */
    SYNCEDMEM_UNINITIALIZED = 0,
    /** The host holds the newest bytes, no device holds them all. */
    SYNCEDMEM_HEAD_AT_CPU = 1,
    /** A device holds the newest bytes, the host does not hold them all. */
    SYNCEDMEM_HEAD_AT_GPU = 2,
    /** The host and a device hold the same, newest bytes. */
    SYNCEDMEM_SYNCED = 3,
    /** No place holds all of the newest bytes: they are split between places. */
    SYNCEDMEM_HEAD_SPLIT = 4
};

/** How host memory of a buffer is allocated. Fixed numbers. */
typedef int32_t syncedmem_host_policy_t;

enum {
    /** Ordinary memory. The default. */
    SYNCEDMEM_PAGEABLE = 1,
    /**
     * Ordinary memory that is registered with the device's driver (page-locked) when the buffer
     * is first used on a device, which makes transfers faster. Where the driver refuses, the
     * buffer works on as PAGEABLE and the statistic #SYNCEDMEM_STAT_PIN_FALLBACKS counts it.
     */
    SYNCEDMEM_PINNED = 2
};

/**
 * Makes a buffer of so many bytes, all zero. Allocates none of them. One buffer can be used at 63
 * places, the host among them.
 *
 * Size 0 is fine everywhere. A size above PTRDIFF_MAX is OUT_OF_RANGE. The caller
 * owns one reference: syncedmem_release().
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_create(size_t size, syncedmem_buffer **out_buffer);

/** Adds a reference and returns the same handle. NULL stays NULL. */
SYNCEDMEM_API syncedmem_buffer *syncedmem_retain(syncedmem_buffer *buffer);

/**
 * Gives a reference back. NULL is fine.
 *
 * The last one frees the memory that the library allocated, on the device that it was allocated
 * on, whatever device is current. It does not wait: memory that unfinished work uses, or kernels
 * on the default stream where a plain call gave out a pointer, is freed after that. Memory handed
 * in by set_cpu_data(), set_gpu_data() and adopt() is left alone, and is no longer used when this
 * returns; for that it waits.
 */
SYNCEDMEM_API void syncedmem_release(syncedmem_buffer *buffer);

/** Size in bytes; 0 for NULL. */
SYNCEDMEM_API size_t syncedmem_size(const syncedmem_buffer *buffer);

/**
 * Where the newest bytes are: one of the ::syncedmem_head_t values.
 *
 * A transfer under way counts as done. Bytes that no one has written, which are zero
 * everywhere, do not count, unless all are such. Bytes that are lost are at no place: HEAD_SPLIT
 * where there are any. Never changes anything. INVALID_ARGUMENT, a negative number, for NULL.
 */
SYNCEDMEM_API syncedmem_head_t syncedmem_head(const syncedmem_buffer *buffer);

/**
 * Blocks until the buffer's own unfinished work (pushes, prefetches, what was on the streams of
 * leases when they ended) has ended, and returns its outcome: OK when no transfer failed or was lost
 * that no call has told of yet.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_wait(syncedmem_buffer *buffer);

/**
 * Chooses the device that the plain gpu calls mean for this buffer: its home.
 *
 * Before the first use on a device that succeeds; from then on the home is fixed, and naming
 * another one is WRONG_STATE. The host is INVALID_ARGUMENT.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_set_home(syncedmem_buffer *buffer,
                                                    syncedmem_place *device);

/** The buffer's home; NULL while it has none, and for NULL. */
SYNCEDMEM_API syncedmem_place *syncedmem_home(const syncedmem_buffer *buffer);

/**
 * Chooses how the host memory of this buffer is allocated.
 *
 * Before its first touch only (then WRONG_STATE): the policy is captured there,
 * and decides how the memory is freed.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_set_host_policy(syncedmem_buffer *buffer,
                                                           syncedmem_host_policy_t policy);

/**
 * Chooses the policy of buffers that have none of their own, for the whole process.
 *
 * Read at the first touch of a buffer; buffers touched before keep theirs.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_set_default_host_policy(syncedmem_host_policy_t policy);

/* ------------------------------------------------------------------------
 * Views: handles on a part of a buffer
 * --------------------------------------------------------------------- */

/**
 * Makes a handle on a part of another buffer.
 *
 * A view has no bytes and no state of its own: what is written through it is seen by its parent
 * and by every other view of it, at every place, and the other way round. It takes part in all
 * calls as any buffer does, for its range: size(), head() and the pointers are of the range.
 * set_cpu_data(), set_gpu_data(), adopt() and drop() are UNSUPPORTED on it, for they concern
 * memory as a whole; home, host policy and statistics are those of the whole.
 *
 * Views of views are fine, at any offset. The memory lives as long as any handle on it.
 * OUT_OF_RANGE when the range does not lie in the parent. A view of length 0 has the head
 * UNINITIALIZED, as there is no byte that could be anywhere, and the pointers of a buffer of
 * size 0.
 *
 * The caller owns one reference: syncedmem_release().
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_view(syncedmem_buffer *parent, size_t offset,
                                                size_t length, syncedmem_buffer **out_view);

/* ------------------------------------------------------------------------
 * Plain calls: Caffe's SyncedMemory
 *
 * | call             | UNINITIALIZED     | HEAD_AT_CPU          | HEAD_AT_GPU          | SYNCED  |
 * |------------------|-------------------|----------------------|----------------------|---------|
 * | cpu_data         | zero bytes, → CPU | nothing              | 1 transfer, → SYNCED | nothing |
 * | mutable_cpu_data | zero bytes, → CPU | nothing              | 1 transfer, → CPU    | → CPU   |
 * | gpu_data         | zero bytes, → GPU | 1 transfer, → SYNCED | nothing              | nothing |
 * | mutable_gpu_data | zero bytes, → GPU | 1 transfer, → GPU    | nothing              | → GPU   |
 * | set_cpu_data     | adopt, → CPU      | adopt, → CPU         | adopt, → CPU         | → CPU   |
 * | set_gpu_data     | adopt, → GPU      | adopt, → GPU         | adopt, → GPU         | → GPU   |
 * | async_gpu_push   | WRONG_STATE       | 1 transfer, → SYNCED | WRONG_STATE          | WRONG_STATE |
 *
 * From HEAD_SPLIT the accessors transfer the part that is missing, and go on as from the other
 * side's head; async_gpu_push is WRONG_STATE.
 *
 * The gpu calls act on the buffer's home: syncedmem_set_home(), else the device that a lease, a
 * verb or a stream named first, else the thread's current device at the first gpu call. Without
 * a device they are NO_DEVICE.
 *
 * Streams: these calls have no stream. They are ordered with the home device's
 * default stream, return when the bytes are there, and see no work that was put on
 * another stream through a pointer they gave out; wait for that yourself.
 *
 * Pointers: a place keeps its pointer until a set_ call, adopt() or drop() at that place or the
 * last release; read-only adopted memory also until newer bytes must land there. Memory is
 * allocated when a place is first asked for, nothing at the other. Host pointers are aligned to
 * 64 bytes; device pointers are for kernels and are not to be read or written by the host. Size
 * 0 has a non-NULL host pointer and a NULL device pointer.
 *
 * A pointer from a call without `mutable_` is for reading. Writing through a
 * pointer that was kept from before, when another place has been written since, is not seen: ask
 * again, or say so with syncedmem_mark_modified().
 *
 * Leases: a call that would read bytes leased for writing, or change or move leased bytes, is BUSY.
 * --------------------------------------------------------------------- */

/** Bytes on the host, for reading. */
SYNCEDMEM_API syncedmem_status_t syncedmem_cpu_data(syncedmem_buffer *buffer,
                                                    const void **out_pointer);

/** Bytes on the host, for reading and writing; copies elsewhere become stale. */
SYNCEDMEM_API syncedmem_status_t syncedmem_mutable_cpu_data(syncedmem_buffer *buffer,
                                                            void **out_pointer);

/** Bytes on the home device, for reading. */
SYNCEDMEM_API syncedmem_status_t syncedmem_gpu_data(syncedmem_buffer *buffer,
                                                    const void **out_pointer);

/** Bytes on the home device, for reading and writing; copies elsewhere become stale. */
SYNCEDMEM_API syncedmem_status_t syncedmem_mutable_gpu_data(syncedmem_buffer *buffer,
                                                            void **out_pointer);

/**
 * Makes the caller's host memory the buffer's host memory, and its bytes the newest.
 *
 * The library reads and writes the memory and never frees it. It must stay until another
 * set_cpu_data() on the buffer or its last release has returned. Host memory
 * that the library had allocated for the buffer is freed. Any address is fine.
 *
 * OUT_OF_RANGE when length is less than the buffer's size (a longer block is fine);
 * INVALID_ARGUMENT for NULL when the size is not 0, or for an address inside memory that the
 * library allocated for this buffer; WRONG_MEMORY when a driver says that it is device memory.
 * Nothing is changed then.
 *
 * The same block in two buffers is allowed; the buffers do not see each other's changes.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_set_cpu_data(syncedmem_buffer *buffer, void *pointer,
                                                        size_t length);

/**
 * Makes the caller's memory on the home device the buffer's memory there, and its bytes the newest.
 *
 * As syncedmem_set_cpu_data(), for the device: WRONG_MEMORY when the driver says that
 * the memory is not device memory, or on another device than the home.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_set_gpu_data(syncedmem_buffer *buffer, void *pointer,
                                                        size_t length);

/**
 * Starts the transfer from the host to the home device on a stream, and returns.
 *
 * Work put on the same stream afterwards sees the bytes. Plain calls that need the device's
 * bytes, or that would change the host's while they are still being read, wait for the
 * transfer. NULL means the home device's default stream. A buffer without a home gets the
 * stream's device as its home; a stream of another device than the home is INVALID_ARGUMENT.
 * WRONG_STATE unless the head is HEAD_AT_CPU.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_async_gpu_push(syncedmem_buffer *buffer,
                                                          syncedmem_stream *stream);

/* ------------------------------------------------------------------------
 * Leases: bracketed access to a range
 *
 * A lease says what will be done with which bytes at which place, from begin() to end(). It is
 * a reader-writer lock on the range: leases that overlap, of which one writes, exclude each
 * other at any places and from any thread, the holder's own included; the later one is BUSY.
 * Nothing ever waits for a lease to end.
 * --------------------------------------------------------------------- */

/** What a lease is for. Fixed numbers. */
typedef int32_t syncedmem_mode_t;

enum {
    /** Bytes are read. Copies at other places stay valid. */
    SYNCEDMEM_READ = 1,
    /**
     * All bytes of the range are overwritten: nothing is transferred or zeroed. From begin() on
     * copies of the range elsewhere are stale, and bytes that are left unwritten are
     * unspecified.
     */
    SYNCEDMEM_WRITE = 2,
    /** Bytes are read and written. From begin() on copies of the range elsewhere are stale. */
    SYNCEDMEM_READ_WRITE = 3
};

/** Names an open lease. Never 0 and never used twice. */
typedef uint64_t syncedmem_token_t;

/**
 * Begins a lease on a range and gives the pointer to its first byte at the place.
 *
 * `stream` says where the work with the bytes is queued: a stream of the place's device, or
 * NULL for its default stream; on the host it is NULL. When this returns, work put on the
 * stream sees the bytes and comes after earlier work on the range; the calling thread waits for
 * none of that. On the host, the bytes are there.
 *
 * `out_pointer` is the address at the place, and `out_offset` 0; where a driver hands out
 * objects and not addresses (OpenCL), the pointer is the object and the offset is the range's
 * in it, in bytes. `out_offset` may be NULL for a caller who needs addresses only; it is then
 * UNSUPPORTED where there are none.
 *
 *     syncedmem_begin(buffer, device, SYNCEDMEM_READ_WRITE, 0, 4096, stream, &pointer, NULL,
 *                     &token);
 *     // put kernels that use the pointer on the stream
 *     syncedmem_end(buffer, token);
 *
 * The lease holds the memory until end(), which takes a handle: keep one. A lease that is left
 * without any handle can never be ended, and its memory stays. OUT_OF_RANGE when the
 * range does not lie in the buffer; BUSY when it overlaps an open lease and one of the two
 * writes.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_begin(syncedmem_buffer *buffer, syncedmem_place *place,
                                                 syncedmem_mode_t mode, size_t offset,
                                                 size_t length, syncedmem_stream *stream,
                                                 void **out_pointer, size_t *out_offset,
                                                 syncedmem_token_t *out_token);

/**
 * Ends a lease. Calls on the bytes from now on come after the work that is on its stream.
 *
 * Takes any handle on the same memory (the buffer itself, its parent, a view). The stream must
 * live until this returns and may be released then. Fails for no other reason than a token that
 * is of no open lease: INVALID_LEASE.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_end(syncedmem_buffer *buffer, syncedmem_token_t token);

/* ------------------------------------------------------------------------
 * Adoption: memory of the caller's
 * --------------------------------------------------------------------- */

/** Bits for syncedmem_adopt(). */
typedef uint32_t syncedmem_adopt_flags_t;

enum {
    /**
     * The library never writes the memory. When newer bytes must land there, the buffer moves to
     * memory of its own, its pointer at that place changes, and the use of the adopted memory ends.
     * A call for writing there counts. While anything is leased there, a call that needs this is
     * BUSY. Memory that is const is cast for the call.
     */
    SYNCEDMEM_ADOPT_READ_ONLY = 1
};

/** Called once when adopted memory is no longer used. */
typedef void (*syncedmem_release_fn)(void *user);

/**
 * Makes the caller's memory the buffer's memory at a place, and its bytes the newest.
 *
 * As syncedmem_set_cpu_data() and syncedmem_set_gpu_data(), for any place, with more to say:
 *
 * - `flags`: #SYNCEDMEM_ADOPT_READ_ONLY, or 0.
 * - `stream`: the bytes are there after what is on this stream of the place's device now;
 *   NULL: they are there.
 * - `release`: called with `user`, exactly once, when the use of the memory has ended: by
 *   another adoption or set_ call at that place (of the same memory too), drop(), the last
 *   release, a move of read-only memory, or the loss of the device. On the thread of the call
 *   that ended the use, before that call returns, with no lock held: it may call the library.
 *   NULL: none. Not called when this call fails.
 *
 * BUSY when any byte of the buffer is leased.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_adopt(syncedmem_buffer *buffer, syncedmem_place *place,
                                                 void *pointer, size_t length,
                                                 syncedmem_adopt_flags_t flags,
                                                 syncedmem_stream *stream,
                                                 syncedmem_release_fn release, void *user);

/* ------------------------------------------------------------------------
 * Verbs: things to do with bytes, without a pointer
 *
 * Ranges are of the handle; OUT_OF_RANGE when they do not lie in it. BUSY as for a lease that
 * reads, or writes, the same range.
 * --------------------------------------------------------------------- */

/**
 * Starts bringing a range to a place, and returns.
 *
 * `stream` is a stream of the device at `place`, or, towards the host, of a device that has bytes:
 * the transfer is put there. NULL, and what comes from another device: the default stream. Later
 * calls that need the bytes come after it.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_prefetch(syncedmem_buffer *buffer,
                                                    syncedmem_place *place, size_t offset,
                                                    size_t length, syncedmem_stream *stream);

/**
 * Says that a range was written at a place through a pointer kept from before: its bytes there are
 * the newest. WRONG_STATE when the place has no memory of the buffer.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_mark_modified(syncedmem_buffer *buffer,
                                                         syncedmem_place *place, size_t offset,
                                                         size_t length);

/**
 * Copies bytes from one buffer to another, or within one; the ranges may overlap.
 *
 * Done where the source's bytes are, if the target may have memory there, else on the host;
 * copies of the target's range elsewhere become stale. Bytes of the source that no one has
 * written are zeroed where the copy is done, and valid there from then on. Returns when it is
 * done. After a failure each byte of the target's range is the old or the new one.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_copy(syncedmem_buffer *to, size_t to_offset,
                                                syncedmem_buffer *from, size_t from_offset,
                                                size_t length);

/**
 * Sets every byte of a range to a value, where its newest bytes are, or on the host.
 *
 * Returns when it is done. After a failure each byte of the range is the old or the new one.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_fill(syncedmem_buffer *buffer, size_t offset,
                                                size_t length, uint8_t value);

/**
 * Gives up what a place has of the buffer, and frees its memory there.
 *
 * Bytes that are nowhere else are saved first: to the host, or from the host to another place
 * that has memory of the buffer, else to its home. Transfers from and to that place are waited for.
 * Pointers at that place end. A place that has nothing is fine, and bytes that are lost stay lost.
 * BUSY while the place is leased, or the place that bytes would be saved to.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_drop(syncedmem_buffer *buffer, syncedmem_place *place);

/**
 * How many bytes of a range are valid at a place: reading them there would move nothing.
 *
 * Bytes that no one has written or been handed are zero everywhere and valid nowhere.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_valid_bytes(const syncedmem_buffer *buffer,
                                                       syncedmem_place *place, size_t offset,
                                                       size_t length, size_t *out_bytes);

/* ------------------------------------------------------------------------
 * Statistics
 * --------------------------------------------------------------------- */

/** Names one figure. Fixed numbers; new ones may appear in later versions. */
enum {
    /** Transfers between places, all directions together. */
    SYNCEDMEM_STAT_TRANSFERS = 1,
    /** Transfers from the host to a device. */
    SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE = 2,
    /** Transfers from a device to the host. */
    SYNCEDMEM_STAT_TRANSFERS_TO_HOST = 3,
    /** Bytes moved from the host to devices. */
    SYNCEDMEM_STAT_BYTES_TO_DEVICE = 4,
    /** Bytes moved from devices to the host. */
    SYNCEDMEM_STAT_BYTES_TO_HOST = 5,
    /** Host blocks allocated so far. */
    SYNCEDMEM_STAT_HOST_ALLOCATIONS = 6,
    /** Device blocks allocated so far. */
    SYNCEDMEM_STAT_DEVICE_ALLOCATIONS = 7,
    /** Bytes in host blocks of the library now. */
    SYNCEDMEM_STAT_HOST_BYTES = 8,
    /** Bytes in device blocks of the library now. */
    SYNCEDMEM_STAT_DEVICE_BYTES = 9,
    /** Bytes set to zero because a fresh buffer was asked for (fresh pages are not counted). */
    SYNCEDMEM_STAT_BYTES_ZEROED = 10,
    /** Times a call blocked until work that an earlier call had left unfinished had ended. */
    SYNCEDMEM_STAT_WAITS = 11,
    /** Host blocks that should have been pinned and could not be. */
    SYNCEDMEM_STAT_PIN_FALLBACKS = 12,
    /** Leases that are open now. */
    SYNCEDMEM_STAT_LEASES = 13,
    /** Segments of the validity map that were merged because there were too many. */
    SYNCEDMEM_STAT_MERGES = 14,
    /** Times a stream was made to wait for unfinished work, where a call did not have to. */
    SYNCEDMEM_STAT_STREAM_WAITS = 15
};

/**
 * A figure of one buffer, or of the whole process for NULL.
 *
 * Counts begin at 0 with the buffer (or the process) and never go back. Looking
 * changes nothing. An unknown key is INVALID_ARGUMENT.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_stat(const syncedmem_buffer *buffer, syncedmem_key_t key,
                                                uint64_t *out_figure);

/** Name of a figure, such as "transfers_to_device"; NULL for a key that is none. */
SYNCEDMEM_API const char *syncedmem_stat_name(syncedmem_key_t key);

/**
 * What the library knows of a buffer, for a person: places, memory, valid ranges, leases.
 *
 * Writes at most `capacity` bytes, the final zero included, and the number of bytes that the
 * whole text needs, the final zero included, to `out_needed`. `text` may be NULL when the
 * capacity is 0. A text that does not fit is cut off and still ends in a zero. Looking changes
 * nothing. The form of the text may change in any version.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_describe(const syncedmem_buffer *buffer, char *text,
                                                    size_t capacity, size_t *out_needed);

/* ------------------------------------------------------------------------
 * Log
 * --------------------------------------------------------------------- */

/** How much is logged: each level includes those before it. Fixed numbers. */
typedef int32_t syncedmem_log_level_t;

enum {
    SYNCEDMEM_LOG_OFF = 0,
    /** What went wrong without any call returning it. */
    SYNCEDMEM_LOG_ERROR = 1,
    /** What works, and not as was asked for: a fallback, a malformed setting. */
    SYNCEDMEM_LOG_WARNING = 2,
    /** What happens once: a driver that was opened, or cannot be used. */
    SYNCEDMEM_LOG_INFO = 3,
    /** Every call that failed, with its message. */
    SYNCEDMEM_LOG_DEBUG = 4
};

/** Receives one line of the log, without a line end. */
typedef void (*syncedmem_log_fn)(void *user, syncedmem_log_level_t level, const char *line);

/**
 * Chooses where the log goes, for the whole process, and how much of it.
 *
 * The function is called on the thread whose call has something to say, with no lock held: it
 * may call the library. NULL writes lines to standard error. Until this is called, the
 * environment variable SYNCEDMEM_LOG decides (off, error, warning, info, debug), and the log is
 * off without it; a malformed value is named on standard error, once. A call that is under way
 * on another thread may still use the former function shortly after this returned.
 *
 * For a look at every transfer, wait and allocation there is the environment variable
 * SYNCEDMEM_TRACE=file-%p.json: a trace in Chrome's trace-event format, to open in Perfetto. The
 * end of a transfer is there when a call has noticed it, which may be long after it ended.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_set_log(syncedmem_log_fn function, void *user,
                                                   syncedmem_log_level_t level);

#ifdef __cplusplus
}
#endif

#endif
