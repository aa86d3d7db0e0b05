/* SPDX-License-Identifier: BSD-2-Clause */
/* The class without any macro: namespace and policy are the library's. CPU_ONLY as Caffe had it. */
#define CPU_ONLY
#include <syncedmem/caffe.hpp>

#include <thread>

#include "support.hpp"

using syncedmem::SyncedMemory;

template <class T, class = void> struct has_push : std::false_type {
};
template <class T>
struct has_push<T, decltype(static_cast<void>(std::declval<T &>().async_gpu_push(0)))>
    : std::true_type {
};
static_assert(!has_push<SyncedMemory>::value, "absent under CPU_ONLY");

enum : std::size_t { SIZE = 65536 };

static uint64_t pins_asked_for(SyncedMemory &memory)
{
    REQUIRE(syncedmem_set_home(memory.handle(), sim(0)) == SYNCEDMEM_OK);
    REQUIRE(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 1) == SYNCEDMEM_OK);
    memory.cpu_data();
    memory.gpu_data();
    REQUIRE(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 0) == SYNCEDMEM_OK);
    return stat_of(memory.handle(), SYNCEDMEM_STAT_PIN_FALLBACKS);
}

/* Unlike Caffe's mode, the policy of the process is the same in a new thread. */
TEST(the_policy_of_the_process)
{
    sim_setup();
    SyncedMemory pageable(SIZE), pinned(SIZE), pinned_too(SIZE);
    REQUIRE(pins_asked_for(pageable) == 0);
    REQUIRE(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED) == SYNCEDMEM_OK);
    REQUIRE(pins_asked_for(pinned) == 1);
    std::thread([&] { REQUIRE(pins_asked_for(pinned_too) == 1); }).join();
}

/* As a host program: no device call is ever needed. */
TEST(on_the_host)
{
    SyncedMemory memory(SIZE);
    pattern_write(memory.mutable_cpu_data(), SIZE, 1);
    REQUIRE(pattern_is(memory.cpu_data(), SIZE, 1));
    REQUIRE(memory.head() == SyncedMemory::HEAD_AT_CPU && syncedmem_device_count() == 0);
}
