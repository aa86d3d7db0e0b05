/* SPDX-License-Identifier: BSD-2-Clause */
/* Where there is a std::span, ours becomes one. */
/* standard: 20 */
#include <algorithm>
#include <numeric>
#include <ranges>
#include <span>

#include "support.hpp"
#include "throws.hpp"

using syncedmem::Buffer;
using syncedmem::Span;

static_assert(std::ranges::contiguous_range<Span<float>>);
static_assert(std::ranges::borrowed_range<Span<float>>);
static_assert(std::ranges::view<Span<const float>>);
static_assert(std::is_convertible_v<Span<float>, std::span<float>>);
static_assert(std::is_convertible_v<Span<float>, std::span<const float>>);
static_assert(!std::is_convertible_v<Span<const float>, std::span<float>>);

static int sum(std::span<const int> numbers)
{
    return std::accumulate(numbers.begin(), numbers.end(), 0);
}

TEST(becomes_a_std_span)
{
    Buffer buffer(10 * sizeof(int));
    const std::span<int> numbers = buffer.mutable_cpu_span<int>();
    std::iota(numbers.begin(), numbers.end(), 1);
    REQUIRE(sum(buffer.cpu_span<int>()) == 55);
    REQUIRE(sum(buffer.read(syncedmem::host()).span<int>()) == 55);
    REQUIRE(std::ranges::max(buffer.cpu_span<int>()) == 10);
}
