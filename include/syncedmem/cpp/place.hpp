/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file place.hpp
 * @brief Places (the host, and devices) and streams.
 *
 * Part of syncedmem.hpp.
 */
#ifndef SYNCEDMEM_CPP_PLACE_HPP
#define SYNCEDMEM_CPP_PLACE_HPP

#include "error.hpp"

namespace syncedmem
{

/* ------------------------------------------------------------------------
 * Places
 * --------------------------------------------------------------------- */

/** A place that can hold bytes: a value, as cheap as the pointer that it is. */
class Place
{
  public:
    /** No place. */
    constexpr Place() noexcept : place_(nullptr)
    {
    }

    explicit constexpr Place(syncedmem_place *place) noexcept : place_(place)
    {
    }

    syncedmem_place *get() const noexcept
    {
        return place_;
    }

    explicit operator bool() const noexcept
    {
        return place_ != nullptr;
    }

    bool is_host() const noexcept
    {
        return place_ == syncedmem_host();
    }

    /** "host", "sim:0": what device_find() takes. These texts live as long as the process. */
    const char *name() const noexcept
    {
        return text(SYNCEDMEM_PLACE_NAME);
    }

    /** "host", "sim". */
    const char *backend() const noexcept
    {
        return text(SYNCEDMEM_PLACE_BACKEND);
    }

    /** What a person would call it. */
    const char *description() const noexcept
    {
        return text(SYNCEDMEM_PLACE_DESCRIPTION);
    }

    /** A property that is a number: #SYNCEDMEM_PLACE_MEMORY_TOTAL and those after it. */
    std::uint64_t number(syncedmem_key_t key, std::error_code &ec) const noexcept
    {
        std::uint64_t number;
        detail::report(syncedmem_device_number(place_, key, &number), ec);
        return number;
    }

#if SYNCEDMEM_EXCEPTIONS
    std::uint64_t number(syncedmem_key_t key) const
    {
        return detail::or_throw([&](std::error_code &ec) { return number(key, ec); });
    }

    std::uint64_t memory_total() const
    {
        return number(SYNCEDMEM_PLACE_MEMORY_TOTAL);
    }

    std::uint64_t memory_free() const
    {
        return number(SYNCEDMEM_PLACE_MEMORY_FREE);
    }
#endif

    friend bool operator==(Place one, Place other) noexcept
    {
        return one.place_ == other.place_;
    }

    friend bool operator!=(Place one, Place other) noexcept
    {
        return one.place_ != other.place_;
    }

  private:
    /* Fails for no place only. */
    const char *text(syncedmem_key_t key) const noexcept
    {
        const char *text;
        return place_ && syncedmem_device_text(place_, key, &text) == SYNCEDMEM_OK ? text : "";
    }

    syncedmem_place *place_;
};

inline Place host() noexcept
{
    return Place(syncedmem_host());
}

inline std::size_t device_count() noexcept
{
    return syncedmem_device_count();
}

/** See syncedmem_device_at(). */
inline Place device_at(std::size_t index, std::error_code &ec) noexcept
{
    syncedmem_place *place;
    detail::report(syncedmem_device_at(index, &place), ec);
    return Place(place);
}

/** The place with that name: see syncedmem_device_find(). */
inline Place device_find(const char *name, std::error_code &ec) noexcept
{
    syncedmem_place *place;
    detail::report(syncedmem_device_find(name, &place), ec);
    return Place(place);
}

/** The device that this thread uses when none is named: see syncedmem_device_current(). */
inline Place device_current(std::error_code &ec) noexcept
{
    syncedmem_place *place;
    detail::report(syncedmem_device_current(&place), ec);
    return Place(place);
}

/** Chooses that device; no place goes back to the default. */
inline void device_set_current(Place place, std::error_code &ec) noexcept
{
    detail::report(syncedmem_device_set_current(place.get()), ec);
}

#if SYNCEDMEM_EXCEPTIONS
inline Place device_at(std::size_t index)
{
    return detail::or_throw([&](std::error_code &ec) { return device_at(index, ec); });
}

inline Place device_find(const char *name)
{
    return detail::or_throw([&](std::error_code &ec) { return device_find(name, ec); });
}

inline Place device_current()
{
    return detail::or_throw([](std::error_code &ec) { return device_current(ec); });
}

inline void device_set_current(Place place)
{
    detail::check(syncedmem_device_set_current(place.get()));
}
#endif

/* ------------------------------------------------------------------------
 * Streams
 * --------------------------------------------------------------------- */

/**
 * A queue of work on one device. Moved, not copied.
 *
 * Its end does not wait: what was put on the stream is still done. A lease that names the stream
 * must have ended before.
 */
class Stream
{
  public:
    /** No stream. */
    Stream() noexcept : stream_(nullptr)
    {
    }

    Stream(Stream &&other) noexcept : stream_(other.release())
    {
    }

    Stream &operator=(Stream &&other) noexcept
    {
        Stream moved(std::move(other));
        std::swap(stream_, moved.stream_);
        return *this;
    }

    ~Stream()
    {
        syncedmem_stream_release(stream_);
    }

    /** A new stream of a device. */
    static Stream create(Place place, std::error_code &ec) noexcept
    {
        Stream stream;
        detail::report(syncedmem_stream_create(place.get(), &stream.stream_), ec);
        return stream;
    }

    /** The device's default stream, the one that the plain calls are ordered with. */
    static Stream default_of(Place place, std::error_code &ec) noexcept
    {
        Stream stream;
        detail::report(syncedmem_stream_default(place.get(), &stream.stream_), ec);
        return stream;
    }

    /** Takes over a reference. */
    static Stream take(syncedmem_stream *stream) noexcept
    {
        Stream taken;
        taken.stream_ = stream;
        return taken;
    }

    /** Blocks until everything put on the stream so far has ended. */
    void wait(std::error_code &ec) const noexcept
    {
        detail::report(syncedmem_stream_wait(stream_), ec);
    }

#if SYNCEDMEM_EXCEPTIONS
    explicit Stream(Place place) : Stream()
    {
        detail::check(syncedmem_stream_create(place.get(), &stream_));
    }

    static Stream default_of(Place place)
    {
        return detail::or_throw([&](std::error_code &ec) { return default_of(place, ec); });
    }

    void wait() const
    {
        detail::check(syncedmem_stream_wait(stream_));
    }
#endif

    explicit operator bool() const noexcept
    {
        return stream_ != nullptr;
    }

    syncedmem_stream *get() const noexcept
    {
        return stream_;
    }

    /** Gives up the reference: the caller owes a syncedmem_stream_release(). */
    syncedmem_stream *release() noexcept
    {
        syncedmem_stream *const stream = stream_;
        stream_ = nullptr;
        return stream;
    }

  private:
    syncedmem_stream *stream_;
};

/** Names a stream in a call: a Stream, a handle of the C API, or `{}` for the default stream. */
class StreamRef
{
  public:
    constexpr StreamRef() noexcept : stream_(nullptr)
    {
    }

    StreamRef(const Stream &stream) noexcept : stream_(stream.get())
    {
    }

    constexpr StreamRef(syncedmem_stream *stream) noexcept : stream_(stream)
    {
    }

    syncedmem_stream *get() const noexcept
    {
        return stream_;
    }

  private:
    syncedmem_stream *stream_;
};

} // namespace syncedmem

#endif
