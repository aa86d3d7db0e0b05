/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file error.hpp
 * @brief How C++ code hears of failures: syncedmem::error, or a std::error_code.
 *
 * Part of syncedmem.hpp, which says how the two ways go together.
 */
#ifndef SYNCEDMEM_CPP_ERROR_HPP
#define SYNCEDMEM_CPP_ERROR_HPP

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "../../syncedmem.h"

/**
 * 1 where the members that throw exist. Follows the compiler's -fexceptions; define it as 0 before
 * the first include to have the compiler refuse them where exceptions are on, too.
 */
#ifndef SYNCEDMEM_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define SYNCEDMEM_EXCEPTIONS 1
#else
#define SYNCEDMEM_EXCEPTIONS 0
#endif
#endif

/** A result that is gone at once if no one keeps it, such as a lease. */
#if defined(__GNUC__)
#define SYNCEDMEM_KEEP __attribute__((warn_unused_result))
#else
#define SYNCEDMEM_KEEP
#endif

namespace syncedmem
{

/** The statuses of the C API (the negative ones), and what only the C++ layer finds. */
enum class errc : std::int32_t {
    invalid_argument = SYNCEDMEM_INVALID_ARGUMENT,
    out_of_range = SYNCEDMEM_OUT_OF_RANGE,
    wrong_state = SYNCEDMEM_WRONG_STATE,
    unsupported = SYNCEDMEM_UNSUPPORTED,
    not_found = SYNCEDMEM_NOT_FOUND,
    wrong_memory = SYNCEDMEM_WRONG_MEMORY,
    busy = SYNCEDMEM_BUSY,
    invalid_lease = SYNCEDMEM_INVALID_LEASE,
    out_of_host_memory = SYNCEDMEM_OUT_OF_HOST_MEMORY,
    out_of_device_memory = SYNCEDMEM_OUT_OF_DEVICE_MEMORY,
    no_device = SYNCEDMEM_NO_DEVICE,
    device_error = SYNCEDMEM_DEVICE_ERROR,

    /**
     * These bytes are no array of that type for the host: they are on a device, or their size or
     * address does not suit it. Take the pointer, or another type or range.
     */
    wrong_span = 1
};

namespace detail
{

class SYNCEDMEM_API error_category final : public std::error_category
{
  public:
    const char *name() const noexcept override
    {
        return "syncedmem";
    }

    std::string message(int code) const override
    {
        if (code == static_cast<int>(errc::wrong_span))
            return "These bytes are no array of that type for the host.";
        return syncedmem_status_text(code);
    }

    std::error_condition default_error_condition(int code) const noexcept override
    {
        switch (static_cast<errc>(code)) {
        case errc::invalid_argument:
        case errc::invalid_lease:
            return std::errc::invalid_argument;
        case errc::out_of_range:
            return std::errc::result_out_of_range;
        case errc::wrong_state:
            return std::errc::operation_not_permitted;
        case errc::unsupported:
            return std::errc::not_supported;
        case errc::not_found:
            return std::errc::no_such_device_or_address;
        case errc::wrong_memory:
        case errc::wrong_span:
            return std::errc::bad_address;
        case errc::busy:
            return std::errc::device_or_resource_busy;
        case errc::out_of_host_memory:
        case errc::out_of_device_memory:
            return std::errc::not_enough_memory;
        case errc::no_device:
            return std::errc::no_such_device;
        case errc::device_error:
            return std::errc::io_error;
        }
        return std::error_condition(code, *this);
    }
};

} // namespace detail

/**
 * The category of this library's codes.
 *
 * Each has a condition of the standard's beside it: `code == std::errc::not_enough_memory` holds
 * for both kinds of memory, `std::errc::device_or_resource_busy` for BUSY.
 */
SYNCEDMEM_API inline const std::error_category &category() noexcept
{
    /* Never destroyed: destructors of other globals may still ask. */
    alignas(detail::error_category) static unsigned char room[sizeof(detail::error_category)];
    static const std::error_category *const one = ::new (room) detail::error_category;
    return *one;
}

inline std::error_code make_error_code(errc code) noexcept
{
    return std::error_code(static_cast<int>(code), category());
}

/**
 * What a call throws.
 *
 * what() is the line of syncedmem_last_error() about this very failure, code() its
 * status in category(). Where there is no memory for the line, std::bad_alloc is thrown instead.
 */
class SYNCEDMEM_API error : public std::system_error
{
  public:
    error(std::error_code code, const char *line) : std::system_error(code), line_(line)
    {
    }

    /** Of a call of the C API that has just failed on this thread. */
    explicit error(syncedmem_status_t status)
        : error(std::error_code(status, category()), syncedmem_last_error())
    {
    }

    /** The status of the C API. */
    syncedmem_status_t status() const noexcept
    {
        return code().value();
    }

    const char *what() const noexcept override
    {
        return line_.what();
    }

  private:
    std::runtime_error line_; /* a text whose copies do not throw */
};

namespace detail
{

/* Does not touch a code that is clear already: that would cost more than a hot call. */
inline void report(syncedmem_status_t status, std::error_code &ec) noexcept
{
    if (status != SYNCEDMEM_OK)
        ec.assign(status, category());
    else if (ec)
        ec.clear();
}

#if SYNCEDMEM_EXCEPTIONS

[[noreturn]] __attribute__((cold, noinline)) inline void throw_error(std::error_code code)
{
    const bool is_of_c_api = code.value() < 0;
    throw error(code, is_of_c_api ? syncedmem_last_error() : code.message().c_str());
}

inline void check(syncedmem_status_t status)
{
    if (__builtin_expect(status != SYNCEDMEM_OK, 0))
        throw_error(std::error_code(status, category()));
}

/* Calls the form that does not throw, and throws what it reports. */
template <class Call>
auto or_throw(Call call) -> typename std::enable_if<
    std::is_void<decltype(call(std::declval<std::error_code &>()))>::value>::type
{
    std::error_code ec;
    call(ec);
    if (ec)
        throw_error(ec);
}

template <class Call>
auto or_throw(Call call) ->
    typename std::enable_if<!std::is_void<decltype(call(std::declval<std::error_code &>()))>::value,
                            decltype(call(std::declval<std::error_code &>()))>::type
{
    std::error_code ec;
    auto result = call(ec);
    if (ec)
        throw_error(ec);
    return result;
}

#endif

} // namespace detail
} // namespace syncedmem

namespace std
{
template <> struct is_error_code_enum<syncedmem::errc> : true_type {
};
} // namespace std

#endif
