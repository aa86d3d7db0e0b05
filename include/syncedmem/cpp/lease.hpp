/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file lease.hpp
 * @brief Leases that end with their scope.
 *
 * Part of syncedmem.hpp.
 */
#ifndef SYNCEDMEM_CPP_LEASE_HPP
#define SYNCEDMEM_CPP_LEASE_HPP

#include "place.hpp"
#include "span.hpp"

namespace syncedmem
{

class Buffer;

/**
 * Bracketed access to a range at a place, from Buffer::read(), write() or read_write() until end(),
 * at the latest until the scope is left, by an exception too. Moved, not copied.
 *
 *     {
 *         Stream stream(device);                             // lives longer than the lease
 *         WriteLease out = buffer.write(device, Range(), stream);
 *         launch(kernel, stream, out.as<float>());
 *     }                                                      // later calls come after the kernel
 *
 * ReadLease hands out pointers to const, WriteLease others. It keeps its buffer, so it may outlive
 * the Buffer it came from. A stream that it names must live until the lease has ended: declare
 * the stream first.
 *
 * Assigning to a lease ends it after the new one has begun; where the two would exclude each
 * other, call end() first.
 */
template <class Byte> class Lease
{
  public:
    /** No lease. */
    Lease() noexcept
        : buffer_(nullptr), token_(0), pointer_(nullptr), offset_(0), length_(0), is_on_host_(false)
    {
    }

    Lease(Lease &&other) noexcept : Lease()
    {
        swap(other);
    }

    Lease &operator=(Lease &&other) noexcept
    {
        Lease moved(std::move(other));
        swap(moved);
        return *this;
    }

    /** Ends the lease, which cannot fail: see syncedmem_end(). */
    ~Lease()
    {
        if (token_)
            (void)syncedmem_end(buffer_, token_);
        syncedmem_release(buffer_);
    }

    /** Ends the lease now. No lease, or one that has ended: nothing to do. */
    void end(std::error_code &ec) noexcept
    {
        const syncedmem_status_t status = token_ ? syncedmem_end(buffer_, token_) : SYNCEDMEM_OK;
        detail::report(status, ec);
        if (status == SYNCEDMEM_OK)
            forget();
    }

    /** The range as a row of T; only for a lease on the host. */
    template <class T> Span<detail::like<Byte, T>> span(std::error_code &ec) const noexcept
    {
        ec.clear();
        if (!is_on_host_)
            ec = errc::wrong_span;
        return ec ? Span<detail::like<Byte, T>>()
                  : detail::make_span<detail::like<Byte, T>>(pointer_, length_, ec);
    }

#if SYNCEDMEM_EXCEPTIONS
    void end()
    {
        detail::or_throw([&](std::error_code &ec) { end(ec); });
    }

    template <class T> Span<detail::like<Byte, T>> span() const
    {
        return detail::or_throw([&](std::error_code &ec) { return span<T>(ec); });
    }
#endif

    /** It is open. */
    explicit operator bool() const noexcept
    {
        return token_ != 0;
    }

    /**
     * The first byte of the range at the place; NULL when the lease is not open. On a device it is
     * for kernels, and not to be read or written by the host.
     */
    Byte *data() const noexcept
    {
        return pointer_;
    }

    /** data() as a pointer to T. */
    template <class T> detail::like<Byte, T> *as() const noexcept
    {
        return static_cast<detail::like<Byte, T> *>(pointer_);
    }

    /** Where a driver hands out objects and not addresses: the range's offset in data(). Else 0. */
    std::size_t offset() const noexcept
    {
        return offset_;
    }

    /** Length of the range in bytes. */
    std::size_t size() const noexcept
    {
        return length_;
    }

    syncedmem_token_t token() const noexcept
    {
        return token_;
    }

  private:
    friend class Buffer;

    void begin(syncedmem_buffer *buffer, Place place, syncedmem_mode_t mode, Range range,
               StreamRef stream, std::error_code &ec) noexcept
    {
        void *pointer;
        const std::size_t length = range.length_in(syncedmem_size(buffer));
        const syncedmem_status_t status =
            syncedmem_begin(buffer, place.get(), mode, range.offset(), length, stream.get(),
                            &pointer, &offset_, &token_);
        detail::report(status, ec);
        if (status != SYNCEDMEM_OK)
            return;
        buffer_ = syncedmem_retain(buffer); /* the token keeps the memory, and not the handle */
        pointer_ = pointer;
        length_ = length;
        is_on_host_ = place.is_host();
    }

    void forget() noexcept
    {
        syncedmem_release(buffer_);
        buffer_ = nullptr;
        token_ = 0;
        pointer_ = nullptr;
        offset_ = 0;
        length_ = 0;
        is_on_host_ = false;
    }

    void swap(Lease &other) noexcept
    {
        std::swap(buffer_, other.buffer_);
        std::swap(token_, other.token_);
        std::swap(pointer_, other.pointer_);
        std::swap(offset_, other.offset_);
        std::swap(length_, other.length_);
        std::swap(is_on_host_, other.is_on_host_);
    }

    syncedmem_buffer *buffer_;
    syncedmem_token_t token_;
    Byte *pointer_;
    std::size_t offset_;
    std::size_t length_;
    bool is_on_host_;
};

/** Bytes that are read. */
using ReadLease = Lease<const void>;

/** Bytes that are written, or read and written. */
using WriteLease = Lease<void>;

} // namespace syncedmem

#endif
