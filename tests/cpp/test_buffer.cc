/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffer: what it refers to, its plain calls, spans, views, verbs, figures. */
#include <type_traits>
#include <vector>

#include "support.hpp"
#include "throws.hpp"

using syncedmem::Buffer;
using syncedmem::errc;
using syncedmem::Head;
using syncedmem::host;
using syncedmem::Place;
using syncedmem::Range;
using syncedmem::Span;

enum : std::size_t { SIZE = 4096 };

/* ---- What kind of type it is ---- */

static_assert(!std::is_copy_constructible<Buffer>::value, "");
static_assert(!std::is_copy_assignable<Buffer>::value, "");
static_assert(std::is_nothrow_move_constructible<Buffer>::value, "");
static_assert(std::is_nothrow_move_assignable<Buffer>::value, "");
static_assert(!std::is_convertible<std::size_t, Buffer>::value, "");
static_assert(sizeof(Buffer) == sizeof(void *), "");

template <class B> using Mutable = decltype(std::declval<B>().mutable_cpu_data());
template <class B> using Written = decltype(std::declval<B>().write(Place()));
template <class B> using Shared = decltype(std::declval<B>().share());

template <template <class> class Use, class B, class = void> struct can : std::false_type {
};
template <template <class> class Use, class B>
struct can<Use, B, decltype(static_cast<void>(std::declval<Use<B> *>()))> : std::true_type {
};

static_assert(can<Mutable, Buffer &>::value && !can<Mutable, const Buffer &>::value, "");
static_assert(can<Written, Buffer &>::value && !can<Written, const Buffer &>::value, "");
static_assert(can<Shared, Buffer &>::value && !can<Shared, const Buffer &>::value, "");

/* ---- Moving, sharing ---- */

TEST(no_buffer)
{
    Buffer none;
    std::error_code ec;
    REQUIRE(!none && none.get() == nullptr && none.size() == 0);
    REQUIRE(none.head() == Head::uninitialized);
    REQUIRE(throws(errc::invalid_argument, [&] { none.cpu_data(); }));
    REQUIRE(none.mutable_gpu_data(ec) == nullptr && ec == errc::invalid_argument);
    REQUIRE(throws(errc::invalid_argument, [&] { none.read(host()).end(); }));
    REQUIRE(throws(errc::invalid_argument, [&] { none.view(Range()); }));
    REQUIRE(throws(errc::invalid_argument, [&] { none.stat(SYNCEDMEM_STAT_TRANSFERS); }));
    REQUIRE(throws(errc::invalid_argument, [&] { none.describe(); }));
    REQUIRE(!none.share());
}

TEST(moved_from_and_assigned_again)
{
    Buffer one(SIZE);
    syncedmem_buffer *const handle = one.get();
    Buffer other(std::move(one));
    REQUIRE(other.get() == handle && !one && one.size() == 0);
    REQUIRE(throws(errc::invalid_argument, [&] { one.cpu_data(); }));
    one = Buffer(10);
    REQUIRE(one.size() == 10 && one.cpu_data() != nullptr);
    one = std::move(other);
    REQUIRE(one.get() == handle && !other);
}

TEST(moved_to_itself)
{
    Buffer buffer(SIZE);
    Buffer &itself = buffer;
    syncedmem_buffer *const handle = buffer.get();
    buffer = std::move(itself);
    REQUIRE(buffer.get() == handle);
    swap(buffer, itself);
    REQUIRE(buffer.get() == handle && buffer.cpu_data() != nullptr);
}

TEST(in_a_vector)
{
    std::vector<Buffer> buffers;
    for (std::size_t i = 0; i < 100; i++)
        buffers.emplace_back(i);
    buffers.erase(buffers.begin());
    for (std::size_t i = 0; i < 99; i++)
        REQUIRE(buffers[i].size() == i + 1);
}

TEST(the_last_reference_frees)
{
    const auto bytes = [] { return syncedmem::process_stat(SYNCEDMEM_STAT_HOST_BYTES); };
    const std::uint64_t before = bytes();
    Buffer one(SIZE);
    one.mutable_cpu_data();
    REQUIRE(bytes() > before);
    Buffer shared = one.share();
    Buffer view = one.view(Range(1, 2));
    one = Buffer();
    REQUIRE(pattern_is(shared.cpu_data(), SIZE, 0));
    shared = Buffer();
    REQUIRE(pattern_is(view.cpu_data(), 2, 0) && bytes() > before);
    view = Buffer();
    REQUIRE(bytes() == before);
}

TEST(shared_bytes_are_the_same)
{
    Buffer one(SIZE);
    Buffer other = one.share();
    pattern_write(one.mutable_cpu_data(), SIZE, 1);
    REQUIRE(one.get() == other.get() && pattern_is(other.cpu_data(), SIZE, 1));
}

TEST(the_handle_goes_in_and_out)
{
    Buffer one(SIZE);
    syncedmem_buffer *const handle = one.release();
    REQUIRE(!one && syncedmem_size(handle) == SIZE);
    Buffer other = Buffer::take(handle);
    REQUIRE(other.size() == SIZE);
    const Buffer again = Buffer::take(syncedmem_retain(handle));
    REQUIRE(again.size() == SIZE);
}

/* ---- Plain calls ---- */

TEST(the_sequence_of_transfers)
{
    sim_setup();
    Buffer buffer(10);
    std::uint64_t before = 0;
    const auto transfers = [&] {
        const std::uint64_t now = buffer.stat(SYNCEDMEM_STAT_TRANSFERS);
        const std::uint64_t more = now - before;
        before = now;
        return more;
    };
    buffer.mutable_cpu_data();
    REQUIRE(buffer.head() == Head::at_cpu && transfers() == 0);
    buffer.gpu_data();
    REQUIRE(buffer.head() == Head::synced && transfers() == 1);
    buffer.cpu_data();
    REQUIRE(buffer.head() == Head::synced && transfers() == 0);
    buffer.mutable_gpu_data();
    buffer.mutable_gpu_data();
    REQUIRE(buffer.head() == Head::at_gpu && transfers() == 0);
    buffer.cpu_data();
    REQUIRE(buffer.head() == Head::synced && transfers() == 1);
    buffer.gpu_data();
    buffer.mutable_cpu_data();
    REQUIRE(buffer.head() == Head::at_cpu && transfers() == 0);
    buffer.mutable_gpu_data();
    REQUIRE(buffer.head() == Head::at_gpu && transfers() == 1);
    buffer.mutable_cpu_data();
    REQUIRE(buffer.head() == Head::at_cpu && transfers() == 1);
}

TEST(reading_through_const_moves_bytes)
{
    sim_setup();
    Buffer buffer(SIZE);
    pattern_write(buffer.mutable_cpu_data(), SIZE, 3);
    const Buffer &constant = buffer;
    REQUIRE(device_pattern_is(0, constant.gpu_data(), SIZE, 3));
    REQUIRE(constant.head() == Head::synced && constant.valid_bytes(Place(sim(0))) == SIZE);
    REQUIRE(constant.read(host()).as<unsigned char>()[1] == constant.cpu_span<unsigned char>()[1]);
}

TEST(set_and_push)
{
    sim_setup();
    alignas(64) unsigned char bytes[SIZE];
    void *device;
    pattern_write(bytes, SIZE, 5);
    REQUIRE(syncedmem_sim_alloc(sim(0), SIZE, &device) == SYNCEDMEM_OK);
    {
        Buffer buffer(SIZE);
        buffer.set_cpu_data(bytes, sizeof bytes);
        REQUIRE(buffer.cpu_data() == bytes && buffer.head() == Head::at_cpu);
        syncedmem::Stream stream{Place(sim(0))};
        buffer.async_gpu_push(stream);
        REQUIRE(buffer.head() == Head::synced);
        REQUIRE(throws(errc::wrong_state, [&] { buffer.async_gpu_push(); }));
        buffer.wait();
        device_pattern_write(0, device, SIZE, 6);
        buffer.set_gpu_data(device, SIZE);
        REQUIRE(buffer.gpu_data() == device && pattern_is(buffer.cpu_data(), SIZE, 6));
        REQUIRE(throws(errc::out_of_range, [&] { buffer.set_cpu_data(bytes, SIZE - 1); }));
        REQUIRE(throws(errc::wrong_memory, [&] { buffer.set_gpu_data(bytes, SIZE); }));
    }
    REQUIRE(pattern_is(bytes, SIZE, 6) && device_knows(0, device));
    REQUIRE(syncedmem_sim_free(sim(0), device) == SYNCEDMEM_OK);
}

TEST(a_failure_changes_nothing)
{
    sim_setup();
    Buffer buffer(SIZE);
    pattern_write(buffer.mutable_cpu_data(), SIZE, 7);
    REQUIRE(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_ALLOC, 1) == SYNCEDMEM_OK);
    REQUIRE(throws(errc::out_of_device_memory, [&] { buffer.mutable_gpu_data(); }));
    REQUIRE(buffer.head() == Head::at_cpu && pattern_is(buffer.cpu_data(), SIZE, 7));
    REQUIRE(device_pattern_is(0, buffer.mutable_gpu_data(), SIZE, 7));
}

TEST(the_constructor_fails)
{
    const std::size_t size = static_cast<std::size_t>(PTRDIFF_MAX) + 1;
    std::error_code ec;
    REQUIRE(throws(errc::out_of_range, [&] { Buffer buffer(size); }));
    REQUIRE(!Buffer::create(size, ec) && ec == errc::out_of_range);
}

TEST(size_zero)
{
    sim_setup();
    Buffer buffer(0);
    REQUIRE(buffer && buffer.size() == 0 && buffer.cpu_data() != nullptr);
    REQUIRE(buffer.mutable_gpu_data() == nullptr && buffer.head() == Head::at_gpu);
    REQUIRE(buffer.cpu_span<double>().empty());
    REQUIRE(buffer.read(host()).span<int>().empty());
    buffer.fill(1);
    buffer.set_cpu_data(nullptr, 0);
}

/* ---- Spans ---- */

static_assert(std::is_convertible<Span<int>, Span<const int>>::value, "");
static_assert(!std::is_convertible<Span<const int>, Span<int>>::value, "");
static_assert(!std::is_convertible<Span<int>, Span<const unsigned>>::value, "");

TEST(spans)
{
    sim_setup();
    Buffer buffer(10 * sizeof(float));
    float x = 0;
    for (float &element : buffer.mutable_cpu_span<float>())
        element = x++;
    REQUIRE(buffer.head() == Head::at_cpu);
    const Span<const float> row = buffer.cpu_span<float>();
    REQUIRE(row.size() == 10 && row.size_bytes() == buffer.size() && !row.empty());
    REQUIRE(row.front() < 0.5F && row.back() > 8.5F && row[3] > 2.5F &&
            row.end() - row.begin() == 10);
    REQUIRE(row.subspan(2, 3).size() == 3 && row.subspan(2, 3).data() == row.data() + 2);
    static_assert(std::is_same<decltype(buffer.gpu_data<float>()), const float *>::value, "");
    static_assert(std::is_same<decltype(buffer.mutable_gpu_data<float>()), float *>::value, "");
    REQUIRE(device_knows(0, buffer.gpu_data<float>()));
    REQUIRE(device_knows(0, buffer.mutable_gpu_data<float>()));
}

TEST(bytes_that_are_no_row)
{
    Buffer buffer(10);
    REQUIRE(throws(errc::wrong_span, [&] { buffer.cpu_span<float>(); }));
    REQUIRE(buffer.mutable_cpu_span<std::uint16_t>().size() == 5);
    REQUIRE(throws(errc::wrong_span, [&] { buffer.view(Range(1, 4)).mutable_cpu_span<float>(); }));
    REQUIRE(buffer.view(Range(4, 4)).cpu_span<float>().size() == 1);
}

/* ---- Views, ranges ---- */

TEST(views_see_each_other)
{
    sim_setup();
    Buffer parent(SIZE);
    Buffer view = parent.view(Range(100, 50));
    pattern_write(view.mutable_cpu_data(), 50, 9);
    REQUIRE(view.size() == 50 && view.head() == Head::at_cpu);
    const unsigned char *const device = static_cast<const unsigned char *>(parent.gpu_data());
    REQUIRE(device_pattern_is(0, device + 100, 50, 9));
    REQUIRE(throws(errc::out_of_range, [&] { view.view(Range(40, 11)); }));
    REQUIRE(throws(errc::unsupported, [&] { view.drop(host()); }));
}

TEST(ranges)
{
    Buffer buffer(100);
    REQUIRE(buffer.view(Range()).size() == 100);
    REQUIRE(buffer.view(Range::from(30)).size() == 70);
    REQUIRE(buffer.view(Range::from(100)).size() == 0);
    REQUIRE(buffer.view(Range::of<float>(2, 3)).size() == 12);
    REQUIRE(throws(errc::out_of_range, [&] { buffer.view(Range::from(101)); }));
    REQUIRE(throws(errc::out_of_range, [&] { buffer.view(Range(SIZE_MAX, SIZE_MAX)); }));
    REQUIRE(throws(errc::out_of_range, [&] { buffer.view(Range::of<float>(0, SIZE_MAX / 2)); }));
    REQUIRE(throws(errc::out_of_range, [&] { buffer.view(Range::of<float>(SIZE_MAX / 2, 1)); }));
}

/* ---- Home, policy, verbs, figures ---- */

TEST(home_and_policy)
{
    sim_setup();
    Buffer buffer(SIZE);
    buffer.set_home(Place(sim(1)));
    buffer.set_host_policy(syncedmem::HostPolicy::pinned);
    REQUIRE(device_knows(1, buffer.gpu_data()));
    REQUIRE(throws(errc::wrong_state, [&] { buffer.set_home(Place(sim(0))); }));
    REQUIRE(throws(errc::wrong_state,
                   [&] { buffer.set_host_policy(syncedmem::HostPolicy::pageable); }));
    syncedmem::set_default_host_policy(syncedmem::HostPolicy::pageable);
}

TEST(verbs)
{
    sim_setup();
    const Place device(sim(0));
    Buffer one(SIZE);
    Buffer other(SIZE);
    one.fill(7);
    copy(other, 10, one, 0, 20);
    REQUIRE(other.cpu_span<unsigned char>()[9] == 0 && other.cpu_span<unsigned char>()[10] == 7);
    one.prefetch(device);
    one.wait();
    REQUIRE(one.valid_bytes(device) == SIZE && one.valid_bytes(device, Range(1, 5)) == 5);
    one.mark_modified(host(), Range(0, 10));
    REQUIRE(one.valid_bytes(device) == SIZE - 10 && one.head() == Head::at_cpu);
    one.drop(device);
    REQUIRE(one.valid_bytes(device) == 0);
    REQUIRE(throws(errc::out_of_range, [&] { one.fill(0, Range(1, SIZE)); }));
    REQUIRE(throws(errc::out_of_range, [&] { copy(other, SIZE, one, 0, 1); }));
    REQUIRE(throws(errc::wrong_state, [&] { one.mark_modified(Place(sim(1))); }));
}

TEST(figures)
{
    Buffer buffer(SIZE);
    REQUIRE(buffer.describe().size() > 1 && buffer.describe().back() != '\0');
    buffer.mutable_cpu_data();
    REQUIRE(buffer.stat(SYNCEDMEM_STAT_HOST_ALLOCATIONS) == 1);
    REQUIRE(syncedmem::process_stat(SYNCEDMEM_STAT_HOST_ALLOCATIONS) == 1);
    REQUIRE(throws(errc::invalid_argument, [&] { buffer.stat(-1); }));
    REQUIRE(throws(errc::invalid_argument, [] { syncedmem::process_stat(-1); }));
}
