/* SPDX-License-Identifier: BSD-2-Clause */
/* Adoption with release functions that are objects. */
#include <memory>
#include <stdexcept>
#include <vector>

#include "support.hpp"
#include "throws.hpp"

using syncedmem::Buffer;
using syncedmem::errc;
using syncedmem::host;
using syncedmem::Place;

enum : std::size_t { SIZE = 4096 };

/* Counts its calls, and that every object of it goes. */
class Counter
{
  public:
    Counter(int *calls, int *objects) : calls_(calls), objects_(objects)
    {
        ++*objects_;
    }

    Counter(const Counter &other) noexcept : Counter(other.calls_, other.objects_)
    {
    }

    Counter &operator=(const Counter &) = delete;

    ~Counter()
    {
        --*objects_;
    }

    void operator()() const
    {
        ++*calls_;
    }

  private:
    int *calls_;
    int *objects_;
};

TEST(released_once_by_the_last_reference)
{
    int calls = 0, objects = 0;
    alignas(64) static unsigned char bytes[SIZE];
    pattern_write(bytes, SIZE, 2);
    {
        Buffer buffer(SIZE);
        buffer.adopt(host(), bytes, SIZE, Counter(&calls, &objects));
        REQUIRE(buffer.cpu_data() == bytes && calls == 0 && objects == 1);
        const Buffer shared = buffer.share();
        buffer = Buffer();
        REQUIRE(calls == 0 && pattern_is(shared.cpu_data(), SIZE, 2));
    }
    REQUIRE(calls == 1 && objects == 0);
}

TEST(released_by_another_adoption_and_by_drop)
{
    sim_setup();
    int calls = 0, objects = 0;
    unsigned char one[SIZE], other[SIZE];
    pattern_write(one, SIZE, 3);
    pattern_write(other, SIZE, 4);
    Buffer buffer(SIZE);
    buffer.adopt(host(), one, SIZE, Counter(&calls, &objects));
    buffer.adopt(host(), other, SIZE, Counter(&calls, &objects));
    REQUIRE(calls == 1 && objects == 1);
    buffer.gpu_data();
    buffer.drop(host());
    REQUIRE(calls == 2 && objects == 0);
    REQUIRE(pattern_is(buffer.cpu_data(), SIZE, 4));
}

TEST(not_called_when_adoption_fails)
{
    int calls = 0, objects = 0;
    unsigned char bytes[SIZE];
    std::error_code ec;
    Buffer buffer(SIZE);
    REQUIRE(throws(errc::out_of_range,
                   [&] { buffer.adopt(host(), bytes, SIZE - 1, Counter(&calls, &objects)); }));
    buffer.adopt(host(), nullptr, SIZE, Counter(&calls, &objects), {}, ec);
    REQUIRE(ec == errc::invalid_argument);
    const syncedmem::ReadLease lease = buffer.read(host());
    REQUIRE(
        throws(errc::busy, [&] { buffer.adopt(host(), bytes, SIZE, Counter(&calls, &objects)); }));
    REQUIRE(calls == 0 && objects == 0);
}

/* A release function whose copy throws on its way in. */
struct Explosive {
    Explosive() = default;
    Explosive(const Explosive &)
    {
        throw std::runtime_error("no copy");
    }
    void operator()() const
    {
    }
};

TEST(not_called_when_it_cannot_be_moved)
{
    unsigned char bytes[SIZE];
    Buffer buffer(SIZE);
    const Explosive explosive;
    bool thrown = false;
    try {
        buffer.adopt(host(), bytes, SIZE, explosive);
    } catch (const std::runtime_error &) {
        thrown = true;
    }
    REQUIRE(thrown && buffer.head() == syncedmem::Head::uninitialized);
}

TEST(keeps_what_it_captures)
{
    std::weak_ptr<std::vector<float>> seen;
    {
        Buffer buffer(4000);
        {
            auto values = std::make_shared<std::vector<float>>(1000, 1.5F);
            seen = values;
            buffer.adopt(host(), values->data(), 4000, [values] {});
        }
        REQUIRE(!seen.expired() && buffer.cpu_span<float>()[999] > 1);
    }
    REQUIRE(seen.expired());
}

TEST(may_call_the_library)
{
    unsigned char bytes[SIZE];
    std::size_t size = 0;
    Buffer other(20);
    {
        Buffer buffer(SIZE);
        buffer.adopt(host(), bytes, SIZE, [&] {
            other.mutable_cpu_data();
            size = other.size();
        });
    }
    REQUIRE(size == 20 && other.head() == syncedmem::Head::at_cpu);
}

TEST(without_a_release_function)
{
    sim_setup();
    unsigned char bytes[SIZE];
    std::error_code ec;
    Buffer buffer(SIZE);
    buffer.adopt(host(), bytes, SIZE);
    buffer.adopt(host(), bytes, SIZE, nullptr, {}, ec);
    REQUIRE(!ec && buffer.cpu_data() == bytes);
    buffer.adopt_read_only(host(), bytes, SIZE, nullptr, {}, ec);
    REQUIRE(!ec && buffer.cpu_data() == bytes);
}

TEST(read_only_memory_is_never_written)
{
    sim_setup();
    int calls = 0, objects = 0;
    static const unsigned char constant[SIZE] = {1, 2, 3};
    Buffer buffer(SIZE);
    buffer.adopt_read_only(host(), constant, SIZE, Counter(&calls, &objects));
    REQUIRE(buffer.cpu_data() == constant);
    REQUIRE(buffer.cpu_span<unsigned char>()[2] == 3 && calls == 0);
    buffer.mutable_cpu_span<unsigned char>()[2] = 4;
    REQUIRE(calls == 1 && objects == 0 && buffer.cpu_data() != constant && constant[2] == 3);
    REQUIRE(buffer.cpu_span<unsigned char>()[1] == 2);
}

TEST(at_a_device_after_a_stream)
{
    sim_setup();
    const Place device(sim(0));
    const syncedmem::Stream stream(device);
    int calls = 0, objects = 0;
    void *memory;
    Gate gate;
    REQUIRE(syncedmem_sim_alloc(sim(0), SIZE, &memory) == SYNCEDMEM_OK);
    {
        Buffer buffer(SIZE);
        gate.put(stream.get());
        stream_pattern_write(stream.get(), memory, SIZE, 8);
        buffer.adopt(device, memory, SIZE, Counter(&calls, &objects), stream);
        gate.open();
        REQUIRE(pattern_is(buffer.cpu_data(), SIZE, 8));
    }
    REQUIRE(calls == 1 && objects == 0);
    REQUIRE(syncedmem_sim_free(sim(0), memory) == SYNCEDMEM_OK);
}
