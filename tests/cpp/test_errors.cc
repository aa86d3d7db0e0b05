/* SPDX-License-Identifier: BSD-2-Clause */
/* syncedmem::error, codes and conditions, both ways of hearing of a failure. */
#include <cstring>
#include <type_traits>

#include "support.hpp"
#include "throws.hpp"

using syncedmem::Buffer;
using syncedmem::errc;

static_assert(std::is_base_of<std::system_error, syncedmem::error>::value, "");
static_assert(std::is_nothrow_copy_constructible<syncedmem::error>::value, "");
static_assert(std::is_error_code_enum<errc>::value, "");

TEST(what_is_the_last_error)
{
    try {
        syncedmem::device_find("nonsense");
        REQUIRE(false);
    } catch (const syncedmem::error &error) {
        REQUIRE(std::strcmp(error.what(), syncedmem_last_error()) == 0);
        REQUIRE(error.what()[0] != '\0');
        REQUIRE(error.status() == SYNCEDMEM_NOT_FOUND);
        REQUIRE(error.code() == errc::not_found);
        REQUIRE(error.code().message() == syncedmem_status_text(SYNCEDMEM_NOT_FOUND));
        REQUIRE(std::strcmp(error.code().category().name(), "syncedmem") == 0);
    }
}

TEST(what_stays_when_something_else_fails)
{
    std::exception_ptr kept;
    try {
        syncedmem::device_find("nonsense");
    } catch (...) {
        kept = std::current_exception();
    }
    const std::string line = syncedmem_last_error();
    REQUIRE(throws(errc::out_of_range, [] { Buffer buffer(SIZE_MAX); }));
    REQUIRE(line != syncedmem_last_error());
    try {
        std::rethrow_exception(kept);
    } catch (const std::exception &error) {
        REQUIRE(error.what() == line);
    }
}

TEST(is_a_system_error)
{
    try {
        Buffer buffer(SIZE_MAX);
        REQUIRE(false);
    } catch (const std::system_error &error) {
        REQUIRE(error.code() == std::errc::result_out_of_range);
    }
}

static bool has_condition(errc code, std::errc condition)
{
    return make_error_code(code) == condition;
}

TEST(conditions)
{
    REQUIRE(has_condition(errc::invalid_argument, std::errc::invalid_argument));
    REQUIRE(has_condition(errc::wrong_state, std::errc::operation_not_permitted));
    REQUIRE(has_condition(errc::unsupported, std::errc::not_supported));
    REQUIRE(has_condition(errc::not_found, std::errc::no_such_device_or_address));
    REQUIRE(has_condition(errc::wrong_memory, std::errc::bad_address));
    REQUIRE(has_condition(errc::wrong_span, std::errc::bad_address));
    REQUIRE(has_condition(errc::busy, std::errc::device_or_resource_busy));
    REQUIRE(has_condition(errc::invalid_lease, std::errc::invalid_argument));
    REQUIRE(has_condition(errc::out_of_host_memory, std::errc::not_enough_memory));
    REQUIRE(has_condition(errc::out_of_device_memory, std::errc::not_enough_memory));
    REQUIRE(has_condition(errc::no_device, std::errc::no_such_device));
    REQUIRE(has_condition(errc::device_error, std::errc::io_error));
}

/* A status of a later version has no name here, and is a failure all the same. */
TEST(an_unknown_status)
{
    const std::error_code code(-9999, syncedmem::category());
    REQUIRE(code && code.default_error_condition().value() == -9999);
    REQUIRE(code.message() == syncedmem_status_text(-9999));
}

TEST(a_code_is_cleared_on_success)
{
    std::error_code ec;
    REQUIRE(!syncedmem::device_find("nonsense", ec) && ec == errc::not_found);
    REQUIRE(syncedmem::device_find("host", ec) == syncedmem::host() && !ec);
    ec = std::make_error_code(std::errc::io_error);
    Buffer buffer = Buffer::create(10, ec);
    REQUIRE(buffer && !ec);
}

TEST(places)
{
    sim_setup();
    const syncedmem::Place device = syncedmem::device_find("sim:1");
    REQUIRE(device && device.get() == sim(1) && device != syncedmem::host());
    REQUIRE(std::strcmp(device.name(), "sim:1") == 0 && std::strcmp(device.backend(), "sim") == 0);
    REQUIRE(device.description()[0] != '\0' && !device.is_host() && syncedmem::host().is_host());
    REQUIRE(device.memory_total() == 64U << 20 && device.memory_free() <= device.memory_total());
    REQUIRE(throws(errc::invalid_argument, [&] { device.number(-1); }));
    REQUIRE(syncedmem::device_count() == 2);
    REQUIRE(syncedmem::device_at(1) == device);
    REQUIRE(throws(errc::not_found, [] { syncedmem::device_at(2); }));
    syncedmem::device_set_current(device);
    REQUIRE(syncedmem::device_current() == device);
    REQUIRE(throws(errc::invalid_argument, [] { device_set_current(syncedmem::host()); }));
    const syncedmem::Place none;
    REQUIRE(!none && none.get() == nullptr && none.name()[0] == '\0');
    REQUIRE(throws(errc::invalid_argument, [&] { none.memory_free(); }));
}

TEST(no_device)
{
    Buffer buffer(10);
    syncedmem::device_set_current(syncedmem::Place());
    REQUIRE(throws(errc::no_device, [&] { buffer.gpu_data(); }));
    REQUIRE(buffer.cpu_data() != nullptr);
}

TEST(streams)
{
    sim_setup();
    const syncedmem::Place device(sim(0));
    syncedmem::Stream one(device);
    syncedmem::Stream other;
    REQUIRE(one && !other && other.get() == nullptr);
    syncedmem_stream *const handle = one.get();
    other = std::move(one);
    REQUIRE(other.get() == handle && one.get() == nullptr);
    syncedmem::Stream &itself = other;
    other = std::move(itself);
    REQUIRE(other.get() == handle);
    other.wait();
    REQUIRE(throws(errc::invalid_argument, [&] { one.wait(); }));
    REQUIRE(throws(errc::invalid_argument, [] { syncedmem::Stream stream(syncedmem::host()); }));
    syncedmem::Stream::default_of(device).wait();
    one = syncedmem::Stream::take(other.release());
    REQUIRE(one.get() == handle && !other);
}

TEST(a_stream_that_is_assigned_to_goes)
{
    sim_setup();
    syncedmem::Stream stream;
    for (int i = 0; i < 30; i++) {
        stream = syncedmem::Stream(syncedmem::Place(sim(0)));
        stream.wait();
    }
    REQUIRE(threads_come_down_to(10));
}
