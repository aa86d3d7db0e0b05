/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of transitions through caffe::SyncedMemory, every cell with its transfers. */
#include "caffe/syncedmem.hpp"

#include <cstdint>
#include <memory>
#include <type_traits>

#include "support.hpp"

using caffe::SyncedMemory;

/* ---- The class is the one that Caffe's users had ---- */

static_assert(SyncedMemory::UNINITIALIZED == 0 && SyncedMemory::HEAD_AT_CPU == 1, "");
static_assert(SyncedMemory::HEAD_AT_GPU == 2 && SyncedMemory::SYNCED == 3, "");
static_assert(std::is_default_constructible<SyncedMemory>::value, "");
static_assert(std::is_constructible<SyncedMemory, std::size_t>::value, "");
static_assert(!std::is_convertible<std::size_t, SyncedMemory>::value, "");
static_assert(!std::is_copy_constructible<SyncedMemory>::value, "");
static_assert(!std::is_copy_assignable<SyncedMemory>::value, "");

#define ASSERT_TYPE(type, expression)                                                              \
    static_assert(std::is_same<type, decltype(expression)>::value, #expression)

ASSERT_TYPE(const void *, std::declval<SyncedMemory &>().cpu_data());
ASSERT_TYPE(const void *, std::declval<SyncedMemory &>().gpu_data());
ASSERT_TYPE(void *, std::declval<SyncedMemory &>().mutable_cpu_data());
ASSERT_TYPE(void *, std::declval<SyncedMemory &>().mutable_gpu_data());
ASSERT_TYPE(void, std::declval<SyncedMemory &>().set_cpu_data(nullptr));
ASSERT_TYPE(void, std::declval<SyncedMemory &>().set_gpu_data(nullptr));
ASSERT_TYPE(void, std::declval<SyncedMemory &>().async_gpu_push(nullptr));
ASSERT_TYPE(void, std::declval<SyncedMemory &>().async_gpu_push(0));
ASSERT_TYPE(void,
            std::declval<SyncedMemory &>().async_gpu_push(std::declval<CUstream_st *const &>()));
ASSERT_TYPE(SyncedMemory::SyncedHead, std::declval<SyncedMemory &>().head());
ASSERT_TYPE(SyncedMemory::SyncedHead, std::declval<const SyncedMemory &>().head());
ASSERT_TYPE(std::size_t, std::declval<SyncedMemory &>().size());
ASSERT_TYPE(std::size_t, std::declval<const SyncedMemory &>().size());

/* As vendor headers have it; both may be in one program. */
typedef struct CUstream_st *cudaStream_t;
ASSERT_TYPE(void, std::declval<SyncedMemory &>().async_gpu_push(std::declval<cudaStream_t>()));

/* ---- The table ---- */

enum : std::size_t { SIZE = 65536 };

enum Call {
    CPU_DATA,
    MUTABLE_CPU_DATA,
    GPU_DATA,
    MUTABLE_GPU_DATA,
    SET_CPU_DATA,
    SET_GPU_DATA,
    ASYNC_GPU_PUSH,
    CALLS
};

struct Cell {
    SyncedMemory::SyncedHead head;
    unsigned transfers;
    bool refused;
};

/* A buffer in a state of which all bytes are known, and memory to adopt. */
struct World {
    World() : memory(SIZE), host(new unsigned char[SIZE]), device(nullptr), seed(0)
    {
        REQUIRE(syncedmem_sim_alloc(sim(0), SIZE, &device) == SYNCEDMEM_OK);
        pattern_write(host.get(), SIZE, 21);
        device_pattern_write(0, device, SIZE, 22);
    }

    SyncedMemory memory;
    std::unique_ptr<unsigned char[]> host;
    void *device;
    unsigned seed; /* of the bytes that the memory has */
};

static void bring_to(World &world, SyncedMemory::SyncedHead head)
{
    if (head == SyncedMemory::UNINITIALIZED)
        return;
    world.seed = 11;
    if (head == SyncedMemory::HEAD_AT_GPU)
        device_pattern_write(0, world.memory.mutable_gpu_data(), SIZE, world.seed);
    else
        pattern_write(world.memory.mutable_cpu_data(), SIZE, world.seed);
    if (head == SyncedMemory::SYNCED)
        world.memory.gpu_data();
    REQUIRE(world.memory.head() == head);
}

static bool device_has(const void *address, unsigned seed)
{
    return device_pattern_is(0, address, SIZE, seed);
}

/* The call, and the bytes that it gives. */
static bool call(World &world, Call which)
{
    switch (which) {
    case CPU_DATA:
        return pattern_is(world.memory.cpu_data(), SIZE, world.seed);
    case MUTABLE_CPU_DATA:
        return pattern_is(world.memory.mutable_cpu_data(), SIZE, world.seed);
    case GPU_DATA:
        return device_has(world.memory.gpu_data(), world.seed);
    case MUTABLE_GPU_DATA:
        return device_has(world.memory.mutable_gpu_data(), world.seed);
    case SET_CPU_DATA:
        world.memory.set_cpu_data(world.host.get());
        world.seed = 21;
        return true;
    case SET_GPU_DATA:
        world.memory.set_gpu_data(world.device);
        world.seed = 22;
        return true;
    case ASYNC_GPU_PUSH:
        world.memory.async_gpu_push(0);
        return true;
    case CALLS:
        break;
    }
    return false;
}

/* True when the call threw WRONG_STATE. */
static bool call_or_refusal(World &world, Call which)
{
    try {
        REQUIRE(call(world, which));
    } catch (const syncedmem::error &error) {
        REQUIRE(error.status() == SYNCEDMEM_WRONG_STATE);
        return true;
    }
    return false;
}

static void check_cell(Call which, SyncedMemory::SyncedHead from, const Cell &cell)
{
    World world;
    bring_to(world, from);
    const uint64_t before = transfers_of(world.memory.handle());
    const bool refused = call_or_refusal(world, which);
    REQUIRE(refused == cell.refused);
    REQUIRE(world.memory.head() == cell.head);
    REQUIRE(syncedmem_wait(world.memory.handle()) == SYNCEDMEM_OK);
    REQUIRE(transfers_of(world.memory.handle()) - before == cell.transfers);
    REQUIRE(pattern_is(world.memory.cpu_data(), SIZE, world.seed));
    REQUIRE(device_has(world.memory.gpu_data(), world.seed));
}

/* Columns: UNINITIALIZED, HEAD_AT_CPU, HEAD_AT_GPU, SYNCED. */
static void check_row(Call which, const Cell (&cells)[4])
{
    sim_setup();
    for (int from = 0; from < 4; from++)
        check_cell(which, static_cast<SyncedMemory::SyncedHead>(from), cells[from]);
}

enum : unsigned char { NO = false, REFUSED = true };
static const SyncedMemory::SyncedHead FRESH = SyncedMemory::UNINITIALIZED;
static const SyncedMemory::SyncedHead CPU = SyncedMemory::HEAD_AT_CPU;
static const SyncedMemory::SyncedHead GPU = SyncedMemory::HEAD_AT_GPU;
static const SyncedMemory::SyncedHead SYNCED = SyncedMemory::SYNCED;

TEST(cpu_data)
{
    check_row(CPU_DATA, {{CPU, 0, NO}, {CPU, 0, NO}, {SYNCED, 1, NO}, {SYNCED, 0, NO}});
}

TEST(mutable_cpu_data)
{
    check_row(MUTABLE_CPU_DATA, {{CPU, 0, NO}, {CPU, 0, NO}, {CPU, 1, NO}, {CPU, 0, NO}});
}

TEST(gpu_data)
{
    check_row(GPU_DATA, {{GPU, 0, NO}, {SYNCED, 1, NO}, {GPU, 0, NO}, {SYNCED, 0, NO}});
}

TEST(mutable_gpu_data)
{
    check_row(MUTABLE_GPU_DATA, {{GPU, 0, NO}, {GPU, 1, NO}, {GPU, 0, NO}, {GPU, 0, NO}});
}

TEST(set_cpu_data)
{
    check_row(SET_CPU_DATA, {{CPU, 0, NO}, {CPU, 0, NO}, {CPU, 0, NO}, {CPU, 0, NO}});
}

TEST(set_gpu_data)
{
    check_row(SET_GPU_DATA, {{GPU, 0, NO}, {GPU, 0, NO}, {GPU, 0, NO}, {GPU, 0, NO}});
}

TEST(async_gpu_push)
{
    check_row(ASYNC_GPU_PUSH,
              {{FRESH, 0, REFUSED}, {SYNCED, 1, NO}, {GPU, 0, REFUSED}, {SYNCED, 0, REFUSED}});
}

/* From HEAD_AT_CPU: 1 0 0 0 1 0 0 1 1. */
TEST(the_sequence)
{
    sim_setup();
    World world;
    bring_to(world, CPU);
    const Call calls[] = {GPU_DATA, CPU_DATA,         MUTABLE_GPU_DATA, MUTABLE_GPU_DATA, CPU_DATA,
                          GPU_DATA, MUTABLE_CPU_DATA, MUTABLE_GPU_DATA, MUTABLE_CPU_DATA};
    const unsigned costs[] = {1, 0, 0, 0, 1, 0, 0, 1, 1};
    for (int i = 0; i < 9; i++) {
        const uint64_t before = transfers_of(world.memory.handle());
        REQUIRE(call(world, calls[i]));
        REQUIRE(transfers_of(world.memory.handle()) - before == costs[i]);
    }
}

TEST(pointers_stay)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    const void *const host = memory.cpu_data();
    const void *const device = memory.gpu_data();
    REQUIRE(host != device && memory.mutable_cpu_data() == host);
    REQUIRE(memory.mutable_gpu_data() == device && memory.cpu_data() == host);
}

TEST(looking_changes_nothing)
{
    const SyncedMemory memory(SIZE);
    REQUIRE(memory.size() == SIZE && memory.head() == FRESH);
    REQUIRE(SyncedMemory().size() == 0);
    uint64_t bytes;
    REQUIRE(syncedmem_stat(nullptr, SYNCEDMEM_STAT_HOST_ALLOCATIONS, &bytes) == SYNCEDMEM_OK);
    REQUIRE(bytes == 0);
}

/* Only reachable through the C API: Caffe had no fifth head. */
TEST(a_split_head)
{
    sim_setup();
    World world;
    bring_to(world, SYNCED);
    syncedmem_place *const host = syncedmem_host();
    syncedmem_buffer *const buffer = world.memory.handle();
    REQUIRE(syncedmem_mark_modified(buffer, host, 0, 10) == SYNCEDMEM_OK);
    REQUIRE(syncedmem_mark_modified(buffer, sim(0), 10, 10) == SYNCEDMEM_OK);
    REQUIRE(syncedmem_head(buffer) == SYNCEDMEM_HEAD_SPLIT);
    REQUIRE(world.memory.head() == GPU);
    REQUIRE(device_has(world.memory.mutable_gpu_data(), world.seed) && world.memory.head() == GPU);
}
