/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file caffe.hpp
 * @brief Class SyncedMemory with the interface that Caffe's had, over this library.
 *
 * For programs written against Caffe's class. Put a file in the place of theirs, for example
 * caffe/syncedmem.hpp, and leave the rest as it is:
 *
 *     #include "caffe/common.hpp"
 *     #define SYNCEDMEM_CAFFE_NAMESPACE caffe
 *     #define SYNCEDMEM_CAFFE_PINNED (Caffe::mode() == Caffe::GPU)
 *     #include <syncedmem/caffe.hpp>
 *
 * What is asked of the includer, by macros that are the same wherever this is included:
 *
 * | macro                     | meaning                                                         |
 * |---------------------------|-----------------------------------------------------------------|
 * | SYNCEDMEM_CAFFE_NAMESPACE | the namespace of what is here; `syncedmem` unless defined       |
 * | SYNCEDMEM_CAFFE_PINNED    | an expression: true where host memory is to be pinned (below)   |
 * | CPU_ONLY                  | Caffe's: there is no async_gpu_push()                           |
 *
 * SYNCEDMEM_CAFFE_PINNED is looked at when a SyncedMemory is first used, inside that namespace.
 * Without it the policy of the process decides: syncedmem_set_default_host_policy().
 *
 * docs/caffe.md is the port guide, and lists everything that is not as it was.
 */
#ifndef SYNCEDMEM_CAFFE_HPP
#define SYNCEDMEM_CAFFE_HPP

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "../syncedmem.h"
#include "cpp/error.hpp"
#include "cpp/place.hpp"

#ifndef SYNCEDMEM_CAFFE_NAMESPACE
#define SYNCEDMEM_CAFFE_NAMESPACE syncedmem
#endif

/** What cudaStream_t points to. Only named here. */
struct CUstream_st;

namespace SYNCEDMEM_CAFFE_NAMESPACE
{

/**
 * Memory that the host and a device see, each in a copy of its own that is brought up to date when
 * it is asked for. See the table of the plain calls in syncedmem.h.
 *
 * Not copied and not moved, as before; share it by a shared_ptr. Unlike before, any thread may
 * call anything at any time.
 *
 * A call that fails calls the failure handler, which by default throws syncedmem::error.
 */
class SYNCEDMEM_API SyncedMemory
{
  public:
    /** Caffe's names and numbers. */
    enum SyncedHead { UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED };

    /** No bytes. */
    SyncedMemory() noexcept : SyncedMemory(0)
    {
    }

    /** So many bytes, all zero. Allocates nothing and cannot fail; the first use can. */
    explicit SyncedMemory(std::size_t size) noexcept : buffer_(nullptr), size_(size)
    {
    }

    SyncedMemory(const SyncedMemory &) = delete;
    SyncedMemory &operator=(const SyncedMemory &) = delete;

    /**
     * Frees what was allocated, on the device it was allocated on, and leaves alone what was set.
     * Waits for a push that is under way.
     */
    ~SyncedMemory()
    {
        syncedmem_release(buffer_.load(std::memory_order_acquire));
    }

    /** Bytes on the host, for reading. */
    const void *cpu_data()
    {
        return access(syncedmem_cpu_data, "cpu_data");
    }

    /**
     * Makes the caller's host memory this one's, and its bytes the newest. It is never freed,
     * and is trusted to be size() bytes long.
     */
    void set_cpu_data(void *data)
    {
        if (syncedmem_buffer *const buffer = make_sure("set_cpu_data"))
            check(syncedmem_set_cpu_data(buffer, data, size_), "set_cpu_data");
    }

    /** Bytes on the device, for reading. */
    const void *gpu_data()
    {
        return access(syncedmem_gpu_data, "gpu_data");
    }

    /** As set_cpu_data(), with memory of the device. */
    void set_gpu_data(void *data)
    {
        if (syncedmem_buffer *const buffer = make_sure("set_gpu_data"))
            check(syncedmem_set_gpu_data(buffer, data, size_), "set_gpu_data");
    }

    /** Bytes on the host, for reading and writing. */
    void *mutable_cpu_data()
    {
        return access(syncedmem_mutable_cpu_data, "mutable_cpu_data");
    }

    /** Bytes on the device, for reading and writing. */
    void *mutable_gpu_data()
    {
        return access(syncedmem_mutable_gpu_data, "mutable_gpu_data");
    }

    /**
     * Where the newest bytes are.
     *
     * Bytes split between places, which only calls of the C API on handle() can bring about, are
     * HEAD_AT_GPU: the host does not hold them all, and gpu_data() gathers them.
     */
    SyncedHead head() const noexcept
    {
        syncedmem_buffer *const buffer = made();
        const syncedmem_head_t head = buffer ? syncedmem_head(buffer) : SYNCEDMEM_UNINITIALIZED;
        return head == SYNCEDMEM_HEAD_SPLIT ? HEAD_AT_GPU : static_cast<SyncedHead>(head);
    }

    std::size_t size() const noexcept
    {
        return size_;
    }

#ifndef CPU_ONLY
    /**
     * Starts the transfer from the host to the device on a stream, and returns. Unlike before,
     * later calls wait for it where they have to.
     *
     * The stream is a cudaStream_t. The null stream is the device's default stream. Any other one
     * has to be taken in by the stream hook, and without a hook is UNSUPPORTED.
     */
    void async_gpu_push(CUstream_st *const &stream)
    {
        if (!stream)
            return push(nullptr);
        const StreamHook hook = stream_hook().load(std::memory_order_acquire);
        if (!hook)
            return fail(SYNCEDMEM_UNSUPPORTED, "async_gpu_push",
                        "no stream hook is set, so only the null stream can be used");
        syncedmem_stream *taken;
        if (check(hook(stream, &taken), "async_gpu_push")) {
            const ::syncedmem::Stream until_pushed(::syncedmem::Stream::take(taken));
            push(taken);
        }
    }

    /** The same with a stream of this library's. A template, so that `0` is a cudaStream_t. */
    template <class Stream>
    typename std::enable_if<std::is_same<Stream, syncedmem_stream>::value>::type async_gpu_push(
        Stream *stream)
    {
        push(stream);
    }

    void async_gpu_push(const ::syncedmem::Stream &stream)
    {
        push(stream.get());
    }
#endif

    /* ---- What Caffe did not have ---- */

    /**
     * The buffer, for calls of the C API. Made here if it is not yet (with the policy as it is
     * now); this object keeps its reference. NULL only when that failed and the failure handler
     * returned.
     */
    syncedmem_buffer *handle()
    {
        return make_sure("handle");
    }

    /**
     * Called when a call fails: with the status, the name of the call, and the line of
     * syncedmem_last_error(). It may throw or end the program. When it returns, so does the call,
     * with NULL where it returns a pointer, and nothing has changed.
     */
    typedef void (*FailureHandler)(syncedmem_status_t status, const char *call, const char *line);

    /**
     * Chooses the handler, for the whole process and all threads; NULL goes back to the default
     * one. Returns the former.
     *
     * The default one throws syncedmem::error. Without exceptions (-fno-exceptions) it writes
     * the line to standard error and calls abort(), which is what Caffe did. A program that is
     * built partly with and partly without exceptions should set one of its own.
     */
    static FailureHandler set_failure_handler(FailureHandler handler) noexcept
    {
        return failure_handler().exchange(handler ? handler : &default_handler,
                                          std::memory_order_acq_rel);
    }

    /** Takes in a native stream: a new reference to a stream of this library that stands for it. */
    typedef syncedmem_status_t (*StreamHook)(CUstream_st *native, syncedmem_stream **out_stream);

    /**
     * Chooses what async_gpu_push() takes cudaStream_t in by, for the whole process; NULL for
     * nothing. Returns the former. The reference that the hook returns is released after the push.
     *
     * This version of the library has no CUDA devices, and so no such function of its own.
     */
    static StreamHook set_stream_hook(StreamHook hook) noexcept
    {
        return stream_hook().exchange(hook, std::memory_order_acq_rel);
    }

    /** Calls the failure handler, as the calls here do. */
    static void fail(syncedmem_status_t status, const char *call, const char *line)
    {
        failure_handler().load(std::memory_order_acquire)(status, call, line);
    }

  private:
    /* NULL until the first use: so that the constructor cannot fail, and that the policy is the
     * one at the first use. */
    syncedmem_buffer *made() const noexcept
    {
        return buffer_.load(std::memory_order_acquire);
    }

    /* NULL only when it could not be made and the failure handler returned. */
    syncedmem_buffer *make_sure(const char *call)
    {
        syncedmem_buffer *const buffer = made();
        return __builtin_expect(buffer != nullptr, 1) ? buffer : make(call);
    }

    __attribute__((noinline)) syncedmem_buffer *make(const char *call)
    {
        syncedmem_buffer *fresh = nullptr;
        syncedmem_buffer *other = nullptr;
        if (!check(create(&fresh), call))
            return nullptr;
        if (buffer_.compare_exchange_strong(other, fresh, std::memory_order_acq_rel))
            return fresh;
        syncedmem_release(fresh); /* another thread was faster */
        return other;
    }

    syncedmem_status_t create(syncedmem_buffer **out_buffer) const
    {
#ifdef SYNCEDMEM_CAFFE_PINNED
        /* Looked at before there is something that could leak: the expression may throw. */
        const bool pinned = SYNCEDMEM_CAFFE_PINNED;
        const syncedmem_status_t status = syncedmem_create(size_, out_buffer);
        if (status == SYNCEDMEM_OK) /* which cannot fail for a fresh buffer */
            (void)syncedmem_set_host_policy(*out_buffer,
                                            pinned ? SYNCEDMEM_PINNED : SYNCEDMEM_PAGEABLE);
        return status;
#else
        return syncedmem_create(size_, out_buffer);
#endif
    }

#ifndef CPU_ONLY
    void push(syncedmem_stream *stream)
    {
        if (syncedmem_buffer *const buffer = make_sure("async_gpu_push"))
            check(syncedmem_async_gpu_push(buffer, stream), "async_gpu_push");
    }
#endif

    template <class Byte>
    Byte *access(syncedmem_status_t (*function)(syncedmem_buffer *, Byte **), const char *call)
    {
        Byte *pointer;
        syncedmem_buffer *const buffer = make_sure(call);
        if (!buffer)
            return nullptr;
        check(function(buffer, &pointer), call); /* NULL on failure */
        return pointer;
    }

    /* Whether the call succeeded. */
    static bool check(syncedmem_status_t status, const char *call)
    {
        if (__builtin_expect(status != SYNCEDMEM_OK, 0))
            fail(status, call, syncedmem_last_error());
        return status == SYNCEDMEM_OK;
    }

    static void default_handler(syncedmem_status_t status, const char *call, const char *line)
    {
#if SYNCEDMEM_EXCEPTIONS
        (void)call;
        throw ::syncedmem::error(std::error_code(status, ::syncedmem::category()), line);
#else
        std::fprintf(stderr, "SyncedMemory::%s: %s: %s\n", call, syncedmem_status_name(status),
                     line);
        std::abort();
#endif
    }

    /* Constants at first and trivial at the end, so that they are there in every destructor. */
    static std::atomic<FailureHandler> &failure_handler() noexcept
    {
        static std::atomic<FailureHandler> handler(&default_handler);
        return handler;
    }

    static std::atomic<StreamHook> &stream_hook() noexcept
    {
        static std::atomic<StreamHook> hook(nullptr);
        return hook;
    }

    std::atomic<syncedmem_buffer *> buffer_;
    const std::size_t size_;
};

/**
 * Allocates host memory outside of any SyncedMemory: to be given back by CaffeFreeHost().
 *
 * Aligned to 64 bytes, not cleared; size 0 gives a pointer too. Always ordinary memory, so
 * `*use_cuda` is false: only the host memory of a SyncedMemory can be pinned here. On failure the
 * handler is called, and `*ptr` is NULL if it returns.
 */
inline void CaffeMallocHost(void **ptr, std::size_t size, bool *use_cuda)
{
    *use_cuda = false;
    *ptr = nullptr;
    if (posix_memalign(ptr, 64, size ? size : 1) != 0) {
        *ptr = nullptr;
        SyncedMemory::fail(SYNCEDMEM_OUT_OF_HOST_MEMORY, "CaffeMallocHost",
                           "the host has no memory for the block");
    }
}

/**
 * Frees what CaffeMallocHost() returned, whatever the mode is now. NULL is fine. Memory that some
 * other code got from CUDA (`use_cuda` true) is WRONG_MEMORY, and is not freed.
 */
inline void CaffeFreeHost(void *ptr, bool use_cuda)
{
    if (use_cuda)
        SyncedMemory::fail(SYNCEDMEM_WRONG_MEMORY, "CaffeFreeHost",
                           "the block is CUDA's, and CaffeMallocHost did not allocate it");
    else
        std::free(ptr);
}

} // namespace SYNCEDMEM_CAFFE_NAMESPACE

#endif
