/* SPDX-License-Identifier: BSD-2-Clause */
/* Every call there is without exceptions, once well and once not. */
/* flags: -fno-exceptions -fno-rtti */
#include <syncedmem.hpp>

#include "support.hpp"

using syncedmem::Buffer;
using syncedmem::errc;
using syncedmem::host;
using syncedmem::Place;
using syncedmem::Range;
using syncedmem::Stream;

static_assert(!SYNCEDMEM_EXCEPTIONS, "what throws is not declared");

/* Buffer(size) is not there. */
static_assert(!std::is_constructible<Buffer, std::size_t>::value, "");
static_assert(!std::is_constructible<Stream, Place>::value, "");

enum : std::size_t { SIZE = 4096 };

TEST(buffers)
{
    sim_setup();
    std::error_code ec;
    REQUIRE(!Buffer::create(SIZE_MAX, ec) && ec == errc::out_of_range);
    Buffer buffer = Buffer::create(SIZE, ec);
    REQUIRE(!ec && buffer.size() == SIZE);
    buffer.set_host_policy(syncedmem::HostPolicy::pinned, ec);
    REQUIRE(!ec);
    buffer.set_home(Place(sim(0)), ec);
    REQUIRE(!ec);
    REQUIRE(buffer.cpu_data(ec) && !ec && buffer.mutable_cpu_data(ec) && !ec);
    REQUIRE(buffer.gpu_data(ec) && !ec && buffer.mutable_gpu_data(ec) && !ec);
    REQUIRE(buffer.cpu_span<float>(ec).size() == SIZE / 4 && !ec);
    REQUIRE(buffer.mutable_cpu_span<float>(ec).size() == SIZE / 4 && !ec);
    REQUIRE(buffer.gpu_data<float>(ec) && buffer.mutable_gpu_data<float>(ec) && !ec);
    REQUIRE(buffer.valid_bytes(host(), {}, ec) == 0 && !ec);
    REQUIRE(buffer.stat(SYNCEDMEM_STAT_TRANSFERS, ec) == 3 && !ec);
    REQUIRE(!buffer.describe(ec).empty() && !ec);
    REQUIRE(buffer.view(Range(3, 4), ec).size() == 4 && !ec);
    buffer.set_home(Place(sim(1)), ec);
    REQUIRE(ec == errc::wrong_state);
    REQUIRE(!buffer.view(Range(1, SIZE), ec) && ec == errc::out_of_range);
    Buffer none;
    REQUIRE(!none.cpu_span<char>(ec).data() && ec == errc::invalid_argument);
}

TEST(memory)
{
    sim_setup();
    std::error_code ec;
    unsigned char bytes[SIZE];
    int calls = 0;
    Buffer buffer = Buffer::create(SIZE, ec);
    const Stream stream = Stream::create(Place(sim(0)), ec);
    buffer.set_cpu_data(bytes, SIZE, ec);
    REQUIRE(!ec);
    buffer.async_gpu_push(stream, ec);
    REQUIRE(!ec);
    buffer.wait(ec);
    REQUIRE(!ec);
    buffer.async_gpu_push({}, ec);
    REQUIRE(ec == errc::wrong_state);
    buffer.set_gpu_data(bytes, SIZE, ec);
    REQUIRE(ec == errc::wrong_memory);
    buffer.adopt(
        host(), bytes, SIZE, [&] { calls++; }, {}, ec);
    REQUIRE(!ec && calls == 0);
    buffer.adopt_read_only(
        host(), bytes, SIZE, [&] { calls++; }, {}, ec);
    REQUIRE(!ec && calls == 1);
    buffer.adopt(
        host(), bytes, 1, [&] { calls++; }, {}, ec);
    REQUIRE(ec == errc::out_of_range && calls == 1);
    buffer.drop(Place(sim(0)), ec);
    REQUIRE(!ec);
    buffer = Buffer();
    REQUIRE(calls == 2);
}

TEST(leases)
{
    std::error_code ec;
    Buffer buffer = Buffer::create(SIZE, ec);
    {
        syncedmem::WriteLease lease = buffer.write(host(), {}, {}, ec);
        REQUIRE(lease && !ec && lease.span<double>(ec).size() == SIZE / 8 && !ec);
        REQUIRE(!buffer.read(host(), {}, {}, ec) && ec == errc::busy);
        REQUIRE(!buffer.cpu_data(ec) && ec == errc::busy);
        lease.end(ec);
        REQUIRE(!ec);
        lease = buffer.read_write(host(), Range(8, 8), {}, ec);
        REQUIRE(lease && !ec);
    }
    REQUIRE(buffer.stat(SYNCEDMEM_STAT_LEASES, ec) == 0 && !ec);
}

TEST(verbs)
{
    sim_setup();
    const Place device(sim(0));
    std::error_code ec;
    Buffer one = Buffer::create(SIZE, ec), other = Buffer::create(SIZE, ec);
    one.fill(3, {}, ec);
    REQUIRE(!ec);
    copy(other, 0, one, 1, 10, ec);
    REQUIRE(!ec);
    one.prefetch(device, {}, {}, ec);
    REQUIRE(!ec);
    one.mark_modified(device, Range(1, 1), ec);
    REQUIRE(!ec);
    copy(other, SIZE, one, 0, 1, ec);
    REQUIRE(ec == errc::out_of_range);
}

TEST(places_and_streams)
{
    sim_setup();
    std::error_code ec;
    REQUIRE(syncedmem::device_at(1, ec) == Place(sim(1)) && !ec);
    REQUIRE(syncedmem::device_find("sim:1", ec) == Place(sim(1)) && !ec);
    syncedmem::device_set_current(Place(sim(1)), ec);
    REQUIRE(!ec && syncedmem::device_current(ec) == Place(sim(1)));
    REQUIRE(Place(sim(1)).number(SYNCEDMEM_PLACE_MEMORY_TOTAL, ec) == 64U << 20 && !ec);
    Stream::default_of(Place(sim(1)), ec).wait(ec);
    REQUIRE(!ec);
    Stream().wait(ec);
    REQUIRE(ec == errc::invalid_argument);
    REQUIRE(!Stream::create(host(), ec) && ec == errc::invalid_argument);
    syncedmem::set_default_host_policy(syncedmem::HostPolicy::pageable, ec);
    REQUIRE(!ec && syncedmem::process_stat(SYNCEDMEM_STAT_TRANSFERS, ec) == 0 && !ec);
}
