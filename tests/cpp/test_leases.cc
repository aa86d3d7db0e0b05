/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases that end with their scope. */
#include <stdexcept>
#include <type_traits>

#include "support.hpp"
#include "throws.hpp"

using syncedmem::Buffer;
using syncedmem::errc;
using syncedmem::Head;
using syncedmem::host;
using syncedmem::Place;
using syncedmem::Range;
using syncedmem::ReadLease;
using syncedmem::Stream;
using syncedmem::WriteLease;

enum : std::size_t { SIZE = 4096 };

static_assert(!std::is_copy_constructible<ReadLease>::value, "");
static_assert(std::is_nothrow_move_constructible<ReadLease>::value, "");
static_assert(std::is_same<decltype(ReadLease().data()), const void *>::value, "");
static_assert(std::is_same<decltype(WriteLease().data()), void *>::value, "");
static_assert(std::is_same<decltype(ReadLease().as<int>()), const int *>::value, "");
static_assert(std::is_same<decltype(WriteLease().span<int>()), syncedmem::Span<int>>::value, "");

static std::uint64_t open_leases(const Buffer &buffer)
{
    return buffer.stat(SYNCEDMEM_STAT_LEASES);
}

TEST(ends_with_its_scope)
{
    Buffer buffer(SIZE);
    {
        WriteLease lease = buffer.write(host(), Range(8, 64));
        REQUIRE(lease && lease.size() == 64 && lease.offset() == 0 && lease.token() != 0);
        lease.span<float>()[15] = 1;
        REQUIRE(open_leases(buffer) == 1);
    }
    REQUIRE(open_leases(buffer) == 0);
    REQUIRE(buffer.read(host(), Range::of<float>(17, 1)).span<float>()[0] > 0.5F);
    REQUIRE(open_leases(buffer) == 0);
}

TEST(ends_on_unwinding)
{
    Buffer buffer(SIZE);
    try {
        const WriteLease lease = buffer.read_write(host());
        REQUIRE(open_leases(buffer) == 1);
        throw std::runtime_error("on the way");
    } catch (const std::runtime_error &) {
        REQUIRE(open_leases(buffer) == 0);
    }
    buffer.mutable_cpu_data();
}

TEST(busy)
{
    sim_setup();
    Buffer buffer(SIZE);
    const WriteLease lease = buffer.write(host(), Range(0, 100));
    std::error_code ec;
    REQUIRE(throws(errc::busy, [&] { buffer.cpu_data(); }));
    REQUIRE(throws(errc::busy, [&] { buffer.read(Place(sim(0)), Range(99, 1)).end(); }));
    REQUIRE(!buffer.write(host(), Range(50, 1), {}, ec) &&
            ec == std::errc::device_or_resource_busy);
    REQUIRE(buffer.read(host(), Range(100, 1), {}, ec) && !ec);
    REQUIRE(open_leases(buffer) == 1);
}

TEST(readers_share)
{
    Buffer buffer(SIZE);
    buffer.mutable_cpu_data();
    const ReadLease one = buffer.read(host());
    const ReadLease other = buffer.read(host());
    REQUIRE(one.data() == other.data() && one.token() != other.token());
    REQUIRE(open_leases(buffer) == 2);
    REQUIRE(throws(errc::busy, [&] { buffer.mutable_cpu_data(); }));
}

TEST(end_and_end_again)
{
    Buffer buffer(SIZE);
    WriteLease lease = buffer.write(host());
    lease.end();
    REQUIRE(!lease && lease.data() == nullptr && lease.size() == 0 && open_leases(buffer) == 0);
    lease.end();
    WriteLease none;
    none.end();
    REQUIRE(throws(errc::wrong_span, [&] { none.span<char>(); }));
}

TEST(moved)
{
    Buffer buffer(SIZE);
    WriteLease one = buffer.write(host(), Range(0, 10));
    const syncedmem_token_t token = one.token();
    WriteLease other(std::move(one));
    REQUIRE(!one && other.token() == token);
    one.end();
    REQUIRE(open_leases(buffer) == 1);
    WriteLease &itself = other;
    other = std::move(itself);
    REQUIRE(other.token() == token && open_leases(buffer) == 1);
    other = buffer.write(host(), Range(10, 10));
    REQUIRE(other.token() != token && open_leases(buffer) == 1);
}

TEST(outlives_its_buffer)
{
    const std::uint64_t before = syncedmem::process_stat(SYNCEDMEM_STAT_HOST_BYTES);
    {
        ReadLease lease;
        {
            Buffer buffer(SIZE);
            lease = buffer.view(Range(10, 20)).read(host());
        }
        REQUIRE(lease.span<unsigned char>()[19] == 0);
    }
    REQUIRE(syncedmem::process_stat(SYNCEDMEM_STAT_HOST_BYTES) == before);
    REQUIRE(syncedmem::process_stat(SYNCEDMEM_STAT_LEASES) == 0);
}

TEST(on_a_device)
{
    sim_setup();
    const Place device(sim(1));
    Buffer buffer(SIZE);
    const Stream stream(device);
    {
        const WriteLease lease = buffer.write(device, Range(), stream);
        stream_pattern_write(stream.get(), lease.data(), SIZE, 4);
        REQUIRE(throws(errc::wrong_span, [&] { lease.span<char>(); }));
        REQUIRE(device_knows(1, lease.as<float>()));
    }
    REQUIRE(buffer.head() == Head::at_gpu && pattern_is(buffer.cpu_data(), SIZE, 4));
    REQUIRE(throws(errc::invalid_argument, [&] { buffer.read(Place(sim(0)), {}, stream).end(); }));
}

/* Later calls come after what is on the stream when the lease ends. */
TEST(orders_later_calls)
{
    sim_setup();
    const Place device(sim(0));
    Buffer buffer(SIZE);
    const Stream stream(device);
    Gate gate;
    WriteLease lease = buffer.write(device, {}, stream);
    gate.put(stream.get());
    stream_pattern_write(stream.get(), lease.data(), SIZE, 4);
    lease.end();
    gate.open();
    REQUIRE(pattern_is(buffer.cpu_data(), SIZE, 4));
}

TEST(wrong_ranges_and_places)
{
    Buffer buffer(SIZE);
    std::error_code ec;
    REQUIRE(throws(errc::out_of_range, [&] { buffer.read(host(), Range(1, SIZE)).end(); }));
    REQUIRE(throws(errc::invalid_argument, [&] { buffer.read(Place()).end(); }));
    const ReadLease none = buffer.read(host(), Range(SIZE + 1, 0), {}, ec);
    REQUIRE(!none && none.data() == nullptr && ec == errc::out_of_range);
    REQUIRE(open_leases(buffer) == 0);
}
