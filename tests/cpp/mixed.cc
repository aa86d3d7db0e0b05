/* SPDX-License-Identifier: BSD-2-Clause */
/* Built without exceptions, and linked with test_mixed.cc, which is built with them. */
#include <syncedmem.hpp>

static_assert(!SYNCEDMEM_EXCEPTIONS, "");

syncedmem::Buffer make_filled(std::size_t size, std::uint8_t value, std::error_code &ec);

syncedmem::Buffer make_filled(std::size_t size, std::uint8_t value, std::error_code &ec)
{
    syncedmem::Buffer buffer = syncedmem::Buffer::create(size, ec);
    if (!ec)
        buffer.fill(value, {}, ec);
    return buffer;
}
