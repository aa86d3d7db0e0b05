/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of which a part, mixed.cc, is built without exceptions. */
#include "support.hpp"
#include "throws.hpp"

syncedmem::Buffer make_filled(std::size_t size, std::uint8_t value, std::error_code &ec);

TEST(a_program_of_both_kinds)
{
    std::error_code ec;
    syncedmem::Buffer buffer = make_filled(100, 7, ec);
    REQUIRE(!ec && buffer.cpu_span<std::uint8_t>()[99] == 7);
    REQUIRE(!make_filled(SIZE_MAX, 7, ec) && ec == syncedmem::errc::out_of_range);
    REQUIRE(throws(syncedmem::errc::out_of_range, [&] { buffer.fill(1, {1, 100}); }));
}
