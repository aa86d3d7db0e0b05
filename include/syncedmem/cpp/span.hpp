/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file span.hpp
 * @brief Typed bytes on the host, and ranges of bytes.
 *
 * Part of syncedmem.hpp.
 */
#ifndef SYNCEDMEM_CPP_SPAN_HPP
#define SYNCEDMEM_CPP_SPAN_HPP

#include <cstddef>
#include <cstdint>
#include <limits>

#include "error.hpp"

#if __cplusplus >= 202002L && defined(__has_include)
#if __has_include(<span>)
#include <span>
#endif
#endif

namespace syncedmem
{

/**
 * A row of T that someone else owns: std::span as far as C++11 can have it.
 *
 * The same type in every standard, so that functions that take it can be called across. From
 * C++20 on it becomes a std::span where one is asked for. Like a pointer it says nothing of how
 * long the bytes live: see the call it comes from.
 */
template <class T> class Span
{
  public:
    using element_type = T;
    using value_type = typename std::remove_cv<T>::type;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using pointer = T *;
    using reference = T &;
    using iterator = T *;

    constexpr Span() noexcept : data_(nullptr), size_(0)
    {
    }

    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }

    /** A Span of const T from one of T. */
    template <class U, class = typename std::enable_if<std::is_same<const U, T>::value>::type>
    constexpr Span(const Span<U> &other) noexcept : data_(other.data()), size_(other.size())
    {
    }

    constexpr T *data() const noexcept
    {
        return data_;
    }

    /** How many T there are. */
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }

    constexpr std::size_t size_bytes() const noexcept
    {
        return size_ * sizeof(T);
    }

    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }

    constexpr T &operator[](std::size_t index) const
    {
        return data_[index];
    }

    constexpr T &front() const
    {
        return data_[0];
    }

    constexpr T &back() const
    {
        return data_[size_ - 1];
    }

    constexpr T *begin() const noexcept
    {
        return data_;
    }

    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }

    /** `count` of them from `first` on; as in std::span, they must be there. */
    constexpr Span subspan(std::size_t first, std::size_t count) const
    {
        return Span(data_ + first, count);
    }

  private:
    T *data_;
    std::size_t size_;
};

namespace detail
{

/* A product that is too large becomes one that no buffer has, so that calls are OUT_OF_RANGE. */
constexpr std::size_t bytes_of(std::size_t count, std::size_t size)
{
    return count > (std::numeric_limits<std::size_t>::max() - 1) / size
               ? std::numeric_limits<std::size_t>::max() - 1
               : count * size;
}

/* T, const where Byte is. */
template <class Byte, class T>
using like = typename std::conditional<std::is_const<Byte>::value, const T, T>::type;

/* The bytes as a row of T, if they can be one. */
template <class T, class Byte>
Span<T> make_span(Byte *pointer, std::size_t bytes, std::error_code &ec) noexcept
{
    static_assert(std::is_trivially_copyable<typename std::remove_cv<T>::type>::value,
                  "bytes that move between places are no objects that would have to be moved");
    if (bytes % sizeof(T) != 0 || reinterpret_cast<std::uintptr_t>(pointer) % alignof(T) != 0) {
        ec = errc::wrong_span;
        return Span<T>();
    }
    return Span<T>(static_cast<T *>(pointer), bytes / sizeof(T));
}

} // namespace detail

/** Some of a buffer's bytes. `Range()`, or `{}` in a call, are all of them. */
class Range
{
  public:
    /** All bytes. */
    constexpr Range() noexcept : Range(0, to_the_end)
    {
    }

    /** So many bytes from an offset on. */
    constexpr Range(std::size_t offset, std::size_t length) noexcept
        : offset_(offset), length_(length)
    {
    }

    /** All bytes from an offset on. */
    static constexpr Range from(std::size_t offset) noexcept
    {
        return Range(offset, to_the_end);
    }

    /** The bytes of `count` elements of type T, the first of them being number `first`. */
    template <class T> static constexpr Range of(std::size_t first, std::size_t count) noexcept
    {
        return Range(detail::bytes_of(first, sizeof(T)), detail::bytes_of(count, sizeof(T)));
    }

    constexpr std::size_t offset() const noexcept
    {
        return offset_;
    }

    /** How many bytes that are in a buffer of so many. */
    constexpr std::size_t length_in(std::size_t size) const noexcept
    {
        return length_ != to_the_end ? length_ : offset_ < size ? size - offset_ : 0;
    }

  private:
    static constexpr std::size_t to_the_end = std::numeric_limits<std::size_t>::max();

    std::size_t offset_;
    std::size_t length_;
};

} // namespace syncedmem

#if defined(__cpp_lib_span)
template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<syncedmem::Span<T>> = true;
template <class T> inline constexpr bool std::ranges::enable_view<syncedmem::Span<T>> = true;
#endif

#endif
