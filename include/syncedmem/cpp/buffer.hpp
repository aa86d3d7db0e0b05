/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file buffer.hpp
 * @brief syncedmem::Buffer.
 *
 * Part of syncedmem.hpp, which says what all members have in common.
 */
#ifndef SYNCEDMEM_CPP_BUFFER_HPP
#define SYNCEDMEM_CPP_BUFFER_HPP

#include "lease.hpp"

namespace syncedmem
{

/** Where the newest bytes are: ::syncedmem_head_t. */
enum class Head : std::int32_t {
    uninitialized = SYNCEDMEM_UNINITIALIZED,
    at_cpu = SYNCEDMEM_HEAD_AT_CPU,
    at_gpu = SYNCEDMEM_HEAD_AT_GPU,
    synced = SYNCEDMEM_SYNCED,
    split = SYNCEDMEM_HEAD_SPLIT
};

/** How host memory is allocated: ::syncedmem_host_policy_t. */
enum class HostPolicy : std::int32_t { pageable = SYNCEDMEM_PAGEABLE, pinned = SYNCEDMEM_PINNED };

namespace detail
{

/* What adopt() was given to call; freed by the call. */
template <class Release> struct Releaser {
    Release release;

    /* A release function that throws ends the program: there is no caller who could catch it. */
    static void run(void *user) noexcept
    {
        Releaser *const releaser = static_cast<Releaser *>(user);
        releaser->release();
        delete releaser;
    }
};

} // namespace detail

/**
 * A buffer of bytes that can be in several places. Moved, shared, not copied.
 *
 * A Buffer is one reference to the bytes. share() makes another one, and view() one to a part
 * of them; both see all changes. There is no copy constructor, for that would look as if it
 * copied the bytes: copy() does that.
 *
 * Through a const Buffer the bytes are read, and moved between places, which does not change
 * them; what changes the bytes, or ends pointers, is not const.
 *
 * A default-constructed or moved-from Buffer has no bytes: its size is 0, its head
 * uninitialized, and everything else is INVALID_ARGUMENT, until it is assigned to.
 */
class Buffer
{
  public:
    /* ---- Making, moving, sharing ---- */

    /** No buffer. */
    Buffer() noexcept : buffer_(nullptr)
    {
    }

    Buffer(Buffer &&other) noexcept : buffer_(other.release())
    {
    }

    Buffer &operator=(Buffer &&other) noexcept
    {
        Buffer moved(std::move(other));
        swap(moved);
        return *this;
    }

    /** Gives the reference back; the last one frees the memory. See syncedmem_release(). */
    ~Buffer()
    {
        syncedmem_release(buffer_);
    }

    /** So many bytes, all zero. Allocates none of them. */
    static Buffer create(std::size_t size, std::error_code &ec) noexcept
    {
        Buffer buffer;
        detail::report(syncedmem_create(size, &buffer.buffer_), ec);
        return buffer;
    }

    /** Another reference to the same bytes. */
    Buffer share() noexcept
    {
        return take(syncedmem_retain(buffer_));
    }

    /** A Buffer that is a part of this one: see syncedmem_view(). */
    Buffer view(Range range, std::error_code &ec) noexcept
    {
        Buffer view;
        detail::report(
            syncedmem_view(buffer_, range.offset(), range.length_in(size()), &view.buffer_), ec);
        return view;
    }

#if SYNCEDMEM_EXCEPTIONS
    explicit Buffer(std::size_t size) : Buffer()
    {
        detail::check(syncedmem_create(size, &buffer_));
    }

    Buffer view(Range range)
    {
        return detail::or_throw([&](std::error_code &ec) { return view(range, ec); });
    }
#endif

    void swap(Buffer &other) noexcept
    {
        std::swap(buffer_, other.buffer_);
    }

    friend void swap(Buffer &one, Buffer &other) noexcept
    {
        one.swap(other);
    }

    /* ---- The handle, for calls of the C API ---- */

    /** Takes over a reference. */
    static Buffer take(syncedmem_buffer *buffer) noexcept
    {
        Buffer taken;
        taken.buffer_ = buffer;
        return taken;
    }

    syncedmem_buffer *get() const noexcept
    {
        return buffer_;
    }

    /** Gives up the reference: the caller owes a syncedmem_release(). */
    syncedmem_buffer *release() noexcept
    {
        syncedmem_buffer *const buffer = buffer_;
        buffer_ = nullptr;
        return buffer;
    }

    explicit operator bool() const noexcept
    {
        return buffer_ != nullptr;
    }

    /* ---- What it is like ---- */

    /** Size in bytes. */
    std::size_t size() const noexcept
    {
        return syncedmem_size(buffer_);
    }

    Head head() const noexcept
    {
        return buffer_ ? static_cast<Head>(syncedmem_head(buffer_)) : Head::uninitialized;
    }

    /** How many bytes of a range are valid at a place: see syncedmem_valid_bytes(). */
    std::size_t valid_bytes(Place place, Range range, std::error_code &ec) const noexcept
    {
        std::size_t bytes;
        detail::report(syncedmem_valid_bytes(buffer_, place.get(), range.offset(),
                                             range.length_in(size()), &bytes),
                       ec);
        return bytes;
    }

    /** A figure of this buffer, such as #SYNCEDMEM_STAT_TRANSFERS. */
    std::uint64_t stat(syncedmem_key_t key, std::error_code &ec) const noexcept
    {
        std::uint64_t figure = 0;
        /* syncedmem_stat(NULL) is of the whole process; another call refuses NULL. */
        detail::report(buffer_ ? syncedmem_stat(buffer_, key, &figure) : syncedmem_wait(nullptr),
                       ec);
        return figure;
    }

    /** What the library knows of it, for a person. std::bad_alloc where there is no memory. */
    std::string describe(std::error_code &ec) const
    {
        std::string text;
        std::size_t needed;
        syncedmem_status_t status = syncedmem_describe(buffer_, nullptr, 0, &needed);
        while (status == SYNCEDMEM_OK && needed > text.size()) {
            text.resize(needed);
            status = syncedmem_describe(buffer_, &text[0], text.size(), &needed);
        }
        text.resize(status == SYNCEDMEM_OK && needed > 0 ? needed - 1 : 0);
        detail::report(status, ec);
        return text;
    }

    /** Waits for the buffer's own unfinished work, and says how it ended. */
    void wait(std::error_code &ec) const noexcept
    {
        detail::report(syncedmem_wait(buffer_), ec);
    }

    /** Before the first device touch: the device that the gpu calls mean. */
    void set_home(Place device, std::error_code &ec) noexcept
    {
        detail::report(syncedmem_set_home(buffer_, device.get()), ec);
    }

    /** Before the first touch: how host memory is allocated. */
    void set_host_policy(HostPolicy policy, std::error_code &ec) noexcept
    {
        detail::report(syncedmem_set_host_policy(buffer_, static_cast<std::int32_t>(policy)), ec);
    }

#if SYNCEDMEM_EXCEPTIONS
    std::size_t valid_bytes(Place place, Range range = Range()) const
    {
        return detail::or_throw([&](std::error_code &ec) { return valid_bytes(place, range, ec); });
    }

    std::uint64_t stat(syncedmem_key_t key) const
    {
        return detail::or_throw([&](std::error_code &ec) { return stat(key, ec); });
    }

    std::string describe() const
    {
        return detail::or_throw([&](std::error_code &ec) { return describe(ec); });
    }

    void wait() const
    {
        detail::check(syncedmem_wait(buffer_));
    }

    void set_home(Place device)
    {
        detail::check(syncedmem_set_home(buffer_, device.get()));
    }

    void set_host_policy(HostPolicy policy)
    {
        detail::check(syncedmem_set_host_policy(buffer_, static_cast<std::int32_t>(policy)));
    }
#endif

    /* ---- Plain calls: Caffe's. See the section of that name in syncedmem.h ---- */

    /** Bytes on the host, for reading. */
    const void *cpu_data(std::error_code &ec) const noexcept
    {
        const void *pointer;
        detail::report(syncedmem_cpu_data(buffer_, &pointer), ec);
        return pointer;
    }

    /** Bytes on the host, for reading and writing; copies elsewhere become stale. */
    void *mutable_cpu_data(std::error_code &ec) noexcept
    {
        void *pointer;
        detail::report(syncedmem_mutable_cpu_data(buffer_, &pointer), ec);
        return pointer;
    }

    /** Bytes on the home device, for reading by kernels. */
    const void *gpu_data(std::error_code &ec) const noexcept
    {
        const void *pointer;
        detail::report(syncedmem_gpu_data(buffer_, &pointer), ec);
        return pointer;
    }

    /** Bytes on the home device, for reading and writing; copies elsewhere become stale. */
    void *mutable_gpu_data(std::error_code &ec) noexcept
    {
        void *pointer;
        detail::report(syncedmem_mutable_gpu_data(buffer_, &pointer), ec);
        return pointer;
    }

    /**
     * cpu_data() as a row of T. errc::wrong_span where the size is no multiple of T's, or the
     * address (of adopted memory, or of a view) does not suit it.
     */
    template <class T> Span<const T> cpu_span(std::error_code &ec) const noexcept
    {
        const void *const pointer = cpu_data(ec);
        return ec ? Span<const T>() : detail::make_span<const T>(pointer, size(), ec);
    }

    /** mutable_cpu_data() as a row of T. After wrong_span the bytes are there all the same. */
    template <class T> Span<T> mutable_cpu_span(std::error_code &ec) noexcept
    {
        void *const pointer = mutable_cpu_data(ec);
        return ec ? Span<T>() : detail::make_span<T>(pointer, size(), ec);
    }

    /** gpu_data() as a pointer to T. No Span: the host cannot touch these bytes. */
    template <class T> const T *gpu_data(std::error_code &ec) const noexcept
    {
        return static_cast<const T *>(gpu_data(ec));
    }

    /** mutable_gpu_data() as a pointer to T. */
    template <class T> T *mutable_gpu_data(std::error_code &ec) noexcept
    {
        return static_cast<T *>(mutable_gpu_data(ec));
    }

    /** Makes host memory of the caller's this buffer's: see syncedmem_set_cpu_data(). */
    void set_cpu_data(void *memory, std::size_t length, std::error_code &ec) noexcept
    {
        detail::report(syncedmem_set_cpu_data(buffer_, memory, length), ec);
    }

    /** The same with memory of the home device. */
    void set_gpu_data(void *memory, std::size_t length, std::error_code &ec) noexcept
    {
        detail::report(syncedmem_set_gpu_data(buffer_, memory, length), ec);
    }

    /** Starts the transfer from the host to the home device: see syncedmem_async_gpu_push(). */
    void async_gpu_push(StreamRef stream, std::error_code &ec) noexcept
    {
        detail::report(syncedmem_async_gpu_push(buffer_, stream.get()), ec);
    }

#if SYNCEDMEM_EXCEPTIONS
    const void *cpu_data() const
    {
        const void *pointer;
        detail::check(syncedmem_cpu_data(buffer_, &pointer));
        return pointer;
    }

    void *mutable_cpu_data()
    {
        void *pointer;
        detail::check(syncedmem_mutable_cpu_data(buffer_, &pointer));
        return pointer;
    }

    const void *gpu_data() const
    {
        const void *pointer;
        detail::check(syncedmem_gpu_data(buffer_, &pointer));
        return pointer;
    }

    void *mutable_gpu_data()
    {
        void *pointer;
        detail::check(syncedmem_mutable_gpu_data(buffer_, &pointer));
        return pointer;
    }

    template <class T> Span<const T> cpu_span() const
    {
        return detail::or_throw([&](std::error_code &ec) { return cpu_span<T>(ec); });
    }

    template <class T> Span<T> mutable_cpu_span()
    {
        return detail::or_throw([&](std::error_code &ec) { return mutable_cpu_span<T>(ec); });
    }

    template <class T> const T *gpu_data() const
    {
        return static_cast<const T *>(gpu_data());
    }

    template <class T> T *mutable_gpu_data()
    {
        return static_cast<T *>(mutable_gpu_data());
    }

    void set_cpu_data(void *memory, std::size_t length)
    {
        detail::check(syncedmem_set_cpu_data(buffer_, memory, length));
    }

    void set_gpu_data(void *memory, std::size_t length)
    {
        detail::check(syncedmem_set_gpu_data(buffer_, memory, length));
    }

    void async_gpu_push(StreamRef stream = StreamRef())
    {
        detail::check(syncedmem_async_gpu_push(buffer_, stream.get()));
    }
#endif

    /* ---- Leases: see lease.hpp, and the section of that name in syncedmem.h ---- */

    /** Begins a lease: bytes are read. */
    SYNCEDMEM_KEEP ReadLease read(Place place, Range range, StreamRef stream,
                                  std::error_code &ec) const noexcept
    {
        return begin<const void>(SYNCEDMEM_READ, place, range, stream, ec);
    }

    /** Begins a lease: all bytes of the range are overwritten. */
    SYNCEDMEM_KEEP WriteLease write(Place place, Range range, StreamRef stream,
                                    std::error_code &ec) noexcept
    {
        return begin<void>(SYNCEDMEM_WRITE, place, range, stream, ec);
    }

    /** Begins a lease: bytes are read and written. */
    SYNCEDMEM_KEEP WriteLease read_write(Place place, Range range, StreamRef stream,
                                         std::error_code &ec) noexcept
    {
        return begin<void>(SYNCEDMEM_READ_WRITE, place, range, stream, ec);
    }

#if SYNCEDMEM_EXCEPTIONS
    SYNCEDMEM_KEEP ReadLease read(Place place, Range range = Range(),
                                  StreamRef stream = StreamRef()) const
    {
        return detail::or_throw(
            [&](std::error_code &ec) { return read(place, range, stream, ec); });
    }

    SYNCEDMEM_KEEP WriteLease write(Place place, Range range = Range(),
                                    StreamRef stream = StreamRef())
    {
        return detail::or_throw(
            [&](std::error_code &ec) { return write(place, range, stream, ec); });
    }

    SYNCEDMEM_KEEP WriteLease read_write(Place place, Range range = Range(),
                                         StreamRef stream = StreamRef())
    {
        return detail::or_throw(
            [&](std::error_code &ec) { return read_write(place, range, stream, ec); });
    }
#endif

    /* ---- Adoption: see syncedmem_adopt() ---- */

    /**
     * Makes memory of the caller's this buffer's memory at a place, and its bytes the newest.
     *
     * `at_end` is called without arguments, exactly once, when the use of the memory has ended;
     * nullptr for nothing. It is moved to a small block of its own. It must not throw: that
     * would be std::terminate(). When adopt() fails it is destroyed and not called, and the
     * memory is still the caller's.
     *
     *     auto values = std::make_shared<std::vector<float>>(1000);
     *     buffer.adopt(host(), values->data(), 4000, [values] {});
     */
    template <class Release>
    void adopt(Place place, void *memory, std::size_t length, Release at_end, StreamRef stream,
               std::error_code &ec) noexcept
    {
        static_assert(std::is_nothrow_move_constructible<Release>::value,
                      "without exceptions a release function must not throw when it is moved");
        adopt_with(place, memory, length, 0, stream, ec,
                   new (std::nothrow) detail::Releaser<Release>{std::move(at_end)});
    }

    void adopt(Place place, void *memory, std::size_t length, std::nullptr_t, StreamRef stream,
               std::error_code &ec) noexcept
    {
        adopt_with(place, memory, length, 0, nullptr, nullptr, stream, ec);
    }

    /** The same with memory that the library never writes: see #SYNCEDMEM_ADOPT_READ_ONLY. */
    template <class Release>
    void adopt_read_only(Place place, const void *memory, std::size_t length, Release at_end,
                         StreamRef stream, std::error_code &ec) noexcept
    {
        static_assert(std::is_nothrow_move_constructible<Release>::value,
                      "without exceptions a release function must not throw when it is moved");
        adopt_with(place, const_cast<void *>(memory), length, SYNCEDMEM_ADOPT_READ_ONLY, stream, ec,
                   new (std::nothrow) detail::Releaser<Release>{std::move(at_end)});
    }

    void adopt_read_only(Place place, const void *memory, std::size_t length, std::nullptr_t,
                         StreamRef stream, std::error_code &ec) noexcept
    {
        adopt_with(place, const_cast<void *>(memory), length, SYNCEDMEM_ADOPT_READ_ONLY, nullptr,
                   nullptr, stream, ec);
    }

#if SYNCEDMEM_EXCEPTIONS
    template <class Release>
    void adopt(Place place, void *memory, std::size_t length, Release at_end,
               StreamRef stream = StreamRef())
    {
        detail::Releaser<Release> *const releaser =
            new detail::Releaser<Release>{std::move(at_end)};
        detail::or_throw([&](std::error_code &ec) {
            adopt_with(place, memory, length, 0, stream, ec, releaser);
        });
    }

    void adopt(Place place, void *memory, std::size_t length, std::nullptr_t = nullptr,
               StreamRef stream = StreamRef())
    {
        detail::or_throw(
            [&](std::error_code &ec) { adopt(place, memory, length, nullptr, stream, ec); });
    }

    template <class Release>
    void adopt_read_only(Place place, const void *memory, std::size_t length, Release at_end,
                         StreamRef stream = StreamRef())
    {
        detail::Releaser<Release> *const releaser =
            new detail::Releaser<Release>{std::move(at_end)};
        detail::or_throw([&](std::error_code &ec) {
            adopt_with(place, const_cast<void *>(memory), length, SYNCEDMEM_ADOPT_READ_ONLY, stream,
                       ec, releaser);
        });
    }

    void adopt_read_only(Place place, const void *memory, std::size_t length,
                         std::nullptr_t = nullptr, StreamRef stream = StreamRef())
    {
        detail::or_throw([&](std::error_code &ec) {
            adopt_read_only(place, memory, length, nullptr, stream, ec);
        });
    }
#endif

    /* ---- Verbs: see the section of that name in syncedmem.h ---- */

    /** Starts bringing a range to a place, and returns. */
    void prefetch(Place place, Range range, StreamRef stream, std::error_code &ec) const noexcept
    {
        detail::report(syncedmem_prefetch(buffer_, place.get(), range.offset(),
                                          range.length_in(size()), stream.get()),
                       ec);
    }

    /** Says that a range was written at a place through a pointer kept from before. */
    void mark_modified(Place place, Range range, std::error_code &ec) noexcept
    {
        detail::report(
            syncedmem_mark_modified(buffer_, place.get(), range.offset(), range.length_in(size())),
            ec);
    }

    /** Sets every byte of a range. */
    void fill(std::uint8_t value, Range range, std::error_code &ec) noexcept
    {
        detail::report(syncedmem_fill(buffer_, range.offset(), range.length_in(size()), value), ec);
    }

    /** Gives up what a place has of the buffer, and frees its memory there. */
    void drop(Place place, std::error_code &ec) noexcept
    {
        detail::report(syncedmem_drop(buffer_, place.get()), ec);
    }

#if SYNCEDMEM_EXCEPTIONS
    void prefetch(Place place, Range range = Range(), StreamRef stream = StreamRef()) const
    {
        detail::or_throw([&](std::error_code &ec) { prefetch(place, range, stream, ec); });
    }

    void mark_modified(Place place, Range range = Range())
    {
        detail::or_throw([&](std::error_code &ec) { mark_modified(place, range, ec); });
    }

    void fill(std::uint8_t value, Range range = Range())
    {
        detail::or_throw([&](std::error_code &ec) { fill(value, range, ec); });
    }

    void drop(Place place)
    {
        detail::check(syncedmem_drop(buffer_, place.get()));
    }
#endif

  private:
    template <class Byte>
    Lease<Byte> begin(syncedmem_mode_t mode, Place place, Range range, StreamRef stream,
                      std::error_code &ec) const noexcept
    {
        Lease<Byte> lease;
        lease.begin(buffer_, place, mode, range, stream, ec);
        return lease;
    }

    void adopt_with(Place place, void *memory, std::size_t length, syncedmem_adopt_flags_t flags,
                    syncedmem_release_fn at_end, void *user, StreamRef stream,
                    std::error_code &ec) noexcept
    {
        detail::report(syncedmem_adopt(buffer_, place.get(), memory, length, flags, stream.get(),
                                       at_end, user),
                       ec);
    }

    /* Owns the releaser, which is NULL where there was no memory for it. */
    template <class Release>
    void adopt_with(Place place, void *memory, std::size_t length, syncedmem_adopt_flags_t flags,
                    StreamRef stream, std::error_code &ec,
                    detail::Releaser<Release> *releaser) noexcept
    {
        if (!releaser) {
            ec = errc::out_of_host_memory;
            return;
        }
        adopt_with(place, memory, length, flags, &detail::Releaser<Release>::run, releaser, stream,
                   ec);
        if (ec)
            delete releaser;
    }

    syncedmem_buffer *buffer_;
};

/** Copies bytes from one buffer to another, or within one: see syncedmem_copy(). */
inline void copy(Buffer &to, std::size_t to_offset, const Buffer &from, std::size_t from_offset,
                 std::size_t length, std::error_code &ec) noexcept
{
    detail::report(syncedmem_copy(to.get(), to_offset, from.get(), from_offset, length), ec);
}

/** A figure of the whole process. */
inline std::uint64_t process_stat(syncedmem_key_t key, std::error_code &ec) noexcept
{
    std::uint64_t figure;
    detail::report(syncedmem_stat(nullptr, key, &figure), ec);
    return figure;
}

/** The policy of buffers that have none of their own: see syncedmem_set_default_host_policy(). */
inline void set_default_host_policy(HostPolicy policy, std::error_code &ec) noexcept
{
    detail::report(syncedmem_set_default_host_policy(static_cast<std::int32_t>(policy)), ec);
}

#if SYNCEDMEM_EXCEPTIONS
inline void copy(Buffer &to, std::size_t to_offset, const Buffer &from, std::size_t from_offset,
                 std::size_t length)
{
    detail::check(syncedmem_copy(to.get(), to_offset, from.get(), from_offset, length));
}

inline std::uint64_t process_stat(syncedmem_key_t key)
{
    return detail::or_throw([&](std::error_code &ec) { return process_stat(key, ec); });
}

inline void set_default_host_policy(HostPolicy policy)
{
    detail::check(syncedmem_set_default_host_policy(static_cast<std::int32_t>(policy)));
}
#endif

} // namespace syncedmem

#endif
