/* SPDX-License-Identifier: BSD-2-Clause */
/* What is not as it was in Caffe: each row of the tables in docs/caffe.md, by its name there. */
#include "caffe/syncedmem.hpp"

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "support.hpp"

using caffe::Caffe;
using caffe::SyncedMemory;

enum : std::size_t { SIZE = 65536 };

template <class Call> static bool fails(syncedmem_status_t status, Call call)
{
    try {
        call();
    } catch (const syncedmem::error &error) {
        return error.status() == status && error.what()[0] != '\0';
    }
    return false;
}

static uint64_t process_stat(syncedmem_key_t key)
{
    return stat_of(nullptr, key);
}

/* ---- Failures ---- */

TEST(no_device_memory)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    pattern_write(memory.mutable_cpu_data(), SIZE, 1);
    REQUIRE(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_ALLOC, 1) == SYNCEDMEM_OK);
    REQUIRE(fails(SYNCEDMEM_OUT_OF_DEVICE_MEMORY, [&] { memory.gpu_data(); }));
    REQUIRE(memory.head() == SyncedMemory::HEAD_AT_CPU && pattern_is(memory.cpu_data(), SIZE, 1));
    REQUIRE(device_pattern_is(0, memory.gpu_data(), SIZE, 1));
}

TEST(more_than_the_device_has)
{
    sim_setup();
    SyncedMemory memory(std::size_t(65) << 20);
    REQUIRE(fails(SYNCEDMEM_OUT_OF_DEVICE_MEMORY, [&] { memory.mutable_gpu_data(); }));
    REQUIRE(memory.head() == SyncedMemory::UNINITIALIZED && memory.cpu_data());
}

TEST(no_host_memory)
{
    const std::size_t half = static_cast<std::size_t>(PTRDIFF_MAX) - 65536;
    SyncedMemory one(half), other(half);
    const bool one_fails = fails(SYNCEDMEM_OUT_OF_HOST_MEMORY, [&] { one.cpu_data(); });
    REQUIRE(one_fails || sizeof(void *) == 4); /* with 32 bits one half may be there */
    REQUIRE(fails(SYNCEDMEM_OUT_OF_HOST_MEMORY, [&] { other.cpu_data(); }));
    REQUIRE(other.head() == SyncedMemory::UNINITIALIZED);
}

TEST(a_size_that_cannot_be)
{
    SyncedMemory memory(SIZE_MAX);
    REQUIRE(memory.size() == SIZE_MAX && memory.head() == SyncedMemory::UNINITIALIZED);
    REQUIRE(fails(SYNCEDMEM_OUT_OF_RANGE, [&] { memory.cpu_data(); }));
    REQUIRE(fails(SYNCEDMEM_OUT_OF_RANGE, [&] { memory.handle(); }));
}

TEST(no_device)
{
    SyncedMemory memory(SIZE);
    REQUIRE(fails(SYNCEDMEM_NO_DEVICE, [&] { memory.gpu_data(); }));
    REQUIRE(fails(SYNCEDMEM_NO_DEVICE, [&] { memory.set_gpu_data(&memory); }));
    REQUIRE(pattern_is(memory.mutable_cpu_data(), SIZE, 0));
    REQUIRE(fails(SYNCEDMEM_NO_DEVICE, [&] { memory.async_gpu_push(nullptr); }));
    REQUIRE(memory.head() == SyncedMemory::HEAD_AT_CPU);
}

static syncedmem_status_t noted_status;
static std::string noted_call, noted_line;

static void note(syncedmem_status_t status, const char *call, const char *line)
{
    noted_status = status;
    noted_call = call;
    noted_line = line;
}

TEST(a_handler_that_returns)
{
    const SyncedMemory::FailureHandler before = SyncedMemory::set_failure_handler(note);
    SyncedMemory memory(SIZE);
    REQUIRE(memory.gpu_data() == nullptr && noted_status == SYNCEDMEM_NO_DEVICE);
    REQUIRE(noted_call == "gpu_data" && noted_line == syncedmem_last_error());
    REQUIRE(memory.mutable_gpu_data() == nullptr && noted_call == "mutable_gpu_data");
    SyncedMemory large(SIZE_MAX);
    REQUIRE(large.mutable_cpu_data() == nullptr && noted_status == SYNCEDMEM_OUT_OF_RANGE);
    REQUIRE(large.handle() == nullptr && noted_call == "handle");
    REQUIRE(SyncedMemory::set_failure_handler(nullptr) == note);
    REQUIRE(fails(SYNCEDMEM_NO_DEVICE, [&] { memory.gpu_data(); }));
    REQUIRE(SyncedMemory::set_failure_handler(before) == before);
}

/* ---- The end of the process ---- */

static void touch_both(SyncedMemory &memory)
{
    sim_setup();
    std::memset(memory.mutable_cpu_data(), 1, memory.size());
    memory.gpu_data();
}

static SyncedMemory global_memory(SIZE);
static SyncedMemory *volatile leaked_memory;

PROGRAM(a_global)
{
    touch_both(global_memory);
    return 7;
}

PROGRAM(a_static_made_late)
{
    static SyncedMemory memory(SIZE);
    touch_both(memory);
    return 0;
}

PROGRAM(one_never_destroyed)
{
    leaked_memory = new SyncedMemory(SIZE);
    touch_both(*leaked_memory);
    return 0;
}

/* Destroyed after everything else of the program. */
PROGRAM(used_at_exit)
{
    std::atexit([] {
        try {
            (void)global_memory.cpu_data();
            (void)global_memory.mutable_gpu_data();
        } catch (const syncedmem::error &) {
        }
    });
    touch_both(global_memory);
    return 0;
}

static void kernel_slow(void *, void *const *, std::size_t)
{
    sleep_ms(50);
}

PROGRAM(a_push_under_way)
{
    touch_both(global_memory);
    global_memory.mutable_cpu_data();
    static const syncedmem::Stream stream{syncedmem::Place(sim(0))};
    REQUIRE(syncedmem_sim_launch(stream.get(), kernel_slow, nullptr, 0, nullptr, 0) ==
            SYNCEDMEM_OK);
    global_memory.async_gpu_push(stream);
    return 3;
}

static void ends_quietly(const char *program, int status)
{
    for (int i = 0; i < 3; i++) {
        const check::Outcome outcome = check::run_program(program);
        if (outcome.status != status || !outcome.said.empty())
            std::printf("# %s: status %d: %s\n", program, outcome.status, outcome.said.c_str());
        REQUIRE(outcome.status == status && outcome.said.empty());
    }
}

TEST(at_exit)
{
    ends_quietly("a_global", 7);
    ends_quietly("a_static_made_late", 0);
    ends_quietly("one_never_destroyed", 0);
    ends_quietly("used_at_exit", 0);
    ends_quietly("a_push_under_way", 3);
}

/* ---- Devices ---- */

TEST(another_current_device)
{
    sim_setup();
    const uint64_t free_before[] = {device_memory_free(0), device_memory_free(1)};
    {
        SyncedMemory memory(SIZE);
        pattern_write(memory.mutable_cpu_data(), SIZE, 3);
        REQUIRE(device_knows(0, memory.gpu_data()));
        REQUIRE(syncedmem_device_set_current(sim(1)) == SYNCEDMEM_OK);
        REQUIRE(device_knows(0, memory.mutable_gpu_data()));
        REQUIRE(pattern_is(memory.mutable_cpu_data(), SIZE, 3));
        memory.async_gpu_push(nullptr);
        REQUIRE(device_pattern_is(0, memory.gpu_data(), SIZE, 3));
        REQUIRE(device_memory_free(1) == free_before[1]);
    }
    REQUIRE(device_memory_free(0) == free_before[0]);
    syncedmem_place *current;
    REQUIRE(syncedmem_device_current(&current) == SYNCEDMEM_OK && current == sim(1));
    SyncedMemory next(SIZE);
    REQUIRE(device_knows(1, next.gpu_data()));
}

TEST(destroyed_by_another_thread)
{
    sim_setup();
    const uint64_t before = device_memory_free(0);
    std::unique_ptr<SyncedMemory> memory(new SyncedMemory(SIZE));
    memory->gpu_data();
    std::thread([&] { memory.reset(); }).join();
    REQUIRE(device_memory_free(0) == before);
}

/* ---- The mode ---- */

/* Pins that were asked for and refused show who asked. */
static uint64_t pins_asked_for(SyncedMemory &memory)
{
    REQUIRE(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 1) == SYNCEDMEM_OK);
    memory.mutable_cpu_data();
    memory.gpu_data();
    REQUIRE(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 0) == SYNCEDMEM_OK);
    return stat_of(memory.handle(), SYNCEDMEM_STAT_PIN_FALLBACKS);
}

TEST(the_mode_at_the_first_use)
{
    sim_setup();
    SyncedMemory in_cpu_mode(SIZE), in_gpu_mode(SIZE);
    REQUIRE(pins_asked_for(in_cpu_mode) == 0);
    Caffe::set_mode(Caffe::GPU);
    REQUIRE(pins_asked_for(in_gpu_mode) == 1);
}

TEST(the_mode_changes)
{
    sim_setup();
    const uint64_t before = process_stat(SYNCEDMEM_STAT_HOST_BYTES);
    {
        SyncedMemory pageable(SIZE), pinned(SIZE);
        pattern_write(pageable.mutable_cpu_data(), SIZE, 1);
        Caffe::set_mode(Caffe::GPU);
        pattern_write(pinned.mutable_cpu_data(), SIZE, 2);
        pinned.gpu_data();
        pageable.gpu_data();
        Caffe::set_mode(Caffe::CPU);
        const void *const host = pinned.mutable_cpu_data();
        REQUIRE(pattern_is(host, SIZE, 2) && pinned.cpu_data() == host);
        Caffe::set_mode(Caffe::GPU);
        REQUIRE(pattern_is(pageable.cpu_data(), SIZE, 1));
        pinned.set_cpu_data(pageable.mutable_cpu_data());
    }
    REQUIRE(process_stat(SYNCEDMEM_STAT_HOST_BYTES) == before);
}

TEST(pinning_is_refused)
{
    sim_setup();
    Caffe::set_mode(Caffe::GPU);
    SyncedMemory memory(SIZE);
    REQUIRE(pins_asked_for(memory) == 1);
    REQUIRE(pattern_is(memory.cpu_data(), SIZE, 0) && memory.head() == SyncedMemory::SYNCED);
}

/* ---- Size 0 ---- */

TEST(size_0)
{
    sim_setup();
    SyncedMemory memory;
    REQUIRE(memory.cpu_data() && memory.head() == SyncedMemory::HEAD_AT_CPU);
    memory.async_gpu_push(nullptr);
    REQUIRE(memory.gpu_data() == nullptr && memory.head() == SyncedMemory::SYNCED);
    REQUIRE(memory.mutable_gpu_data() == nullptr && memory.mutable_cpu_data());
    memory.set_cpu_data(nullptr);
    memory.set_gpu_data(nullptr);
    REQUIRE(memory.head() == SyncedMemory::HEAD_AT_GPU && memory.cpu_data());
}

/* ---- Memory of the caller's ---- */

TEST(null)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    REQUIRE(fails(SYNCEDMEM_INVALID_ARGUMENT, [&] { memory.set_cpu_data(nullptr); }));
    REQUIRE(fails(SYNCEDMEM_INVALID_ARGUMENT, [&] { memory.set_gpu_data(nullptr); }));
    REQUIRE(memory.head() == SyncedMemory::UNINITIALIZED);
}

TEST(memory_of_the_wrong_kind)
{
    sim_setup();
    unsigned char bytes[SIZE];
    void *device;
    REQUIRE(syncedmem_sim_alloc(sim(0), SIZE, &device) == SYNCEDMEM_OK);
    SyncedMemory memory(SIZE);
    REQUIRE(fails(SYNCEDMEM_WRONG_MEMORY, [&] { memory.set_gpu_data(bytes); }));
    REQUIRE(fails(SYNCEDMEM_WRONG_MEMORY, [&] { memory.set_cpu_data(device); }));
    REQUIRE(memory.head() == SyncedMemory::UNINITIALIZED);
    REQUIRE(syncedmem_sim_free(sim(0), device) == SYNCEDMEM_OK);
}

TEST(its_own_memory)
{
    SyncedMemory memory(SIZE);
    unsigned char *const own = static_cast<unsigned char *>(memory.mutable_cpu_data());
    pattern_write(own, SIZE, 1);
    REQUIRE(fails(SYNCEDMEM_INVALID_ARGUMENT, [&] { memory.set_cpu_data(own); }));
    REQUIRE(fails(SYNCEDMEM_INVALID_ARGUMENT, [&] { memory.set_cpu_data(own + 100); }));
    REQUIRE(memory.cpu_data() == own && pattern_is(own, SIZE, 1));
}

/* As it was: never freed, and what was there before is, when it was the library's own. */
TEST(set_memory_is_not_freed)
{
    sim_setup();
    unsigned char one[SIZE], other[SIZE];
    const uint64_t before = process_stat(SYNCEDMEM_STAT_HOST_BYTES);
    pattern_write(one, SIZE, 1);
    pattern_write(other, SIZE, 2);
    {
        SyncedMemory memory(SIZE);
        memory.mutable_cpu_data();
        memory.set_cpu_data(one);
        REQUIRE(process_stat(SYNCEDMEM_STAT_HOST_BYTES) == before);
        memory.gpu_data();
        memory.set_cpu_data(other);
        REQUIRE(device_pattern_is(0, memory.gpu_data(), SIZE, 2));
    }
    REQUIRE(pattern_is(one, SIZE, 1) && pattern_is(other, SIZE, 2));
}

/* ---- Pushes ---- */

TEST(a_push_from_another_state)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    REQUIRE(fails(SYNCEDMEM_WRONG_STATE, [&] { memory.async_gpu_push(0); }));
    memory.gpu_data();
    REQUIRE(fails(SYNCEDMEM_WRONG_STATE, [&] { memory.async_gpu_push(0); }));
    REQUIRE(memory.head() == SyncedMemory::HEAD_AT_GPU);
}

/* A stream that is held up, a push on it, and something that opens the gate later. */
class HeldUpPush
{
  public:
    HeldUpPush(SyncedMemory &memory, unsigned seed) : stream_(syncedmem::Place(sim(0))), gate_()
    {
        pattern_write(memory.mutable_cpu_data(), SIZE, seed);
        gate_.put(stream_.get());
        memory.async_gpu_push(stream_);
        REQUIRE(memory.head() == SyncedMemory::SYNCED);
        opener_ = std::thread([this] {
            sleep_ms(30);
            gate_.open();
        });
    }

    ~HeldUpPush()
    {
        opener_.join();
    }

    bool is_under_way() const
    {
        return !gate_.is_open();
    }

  private:
    syncedmem::Stream stream_;
    Gate gate_;
    std::thread opener_;
};

TEST(written_while_a_push_is_under_way)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    HeldUpPush push(memory, 4);
    pattern_write(memory.mutable_cpu_data(), SIZE, 5);
    REQUIRE(!push.is_under_way() && device_pattern_is(0, memory.gpu_data(), SIZE, 5));
}

TEST(read_while_a_push_is_under_way)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    HeldUpPush push(memory, 4);
    REQUIRE(pattern_is(memory.cpu_data(), SIZE, 4) && push.is_under_way());
    REQUIRE(device_pattern_is(0, memory.gpu_data(), SIZE, 4) && !push.is_under_way());
}

TEST(replaced_while_a_push_is_under_way)
{
    sim_setup();
    unsigned char bytes[SIZE];
    pattern_write(bytes, SIZE, 6);
    SyncedMemory memory(SIZE);
    HeldUpPush push(memory, 4);
    memory.set_cpu_data(bytes);
    REQUIRE(device_pattern_is(0, memory.gpu_data(), SIZE, 6));
}

TEST(destroyed_while_a_push_is_under_way)
{
    sim_setup();
    unsigned char bytes[SIZE];
    const uint64_t before = device_memory_free(0);
    std::unique_ptr<SyncedMemory> memory(new SyncedMemory(SIZE));
    memory->set_cpu_data(bytes);
    HeldUpPush push(*memory, 4);
    memory.reset();
    REQUIRE(!push.is_under_way());
    pattern_write(bytes, SIZE, 0);
    REQUIRE(device_memory_free(0) == before);
}

TEST(a_push_that_fails_later)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    pattern_write(memory.mutable_cpu_data(), SIZE, 7);
    REQUIRE(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1) == SYNCEDMEM_OK);
    memory.async_gpu_push(nullptr);
    REQUIRE(fails(SYNCEDMEM_DEVICE_ERROR, [&] { memory.gpu_data(); }));
    REQUIRE(memory.head() == SyncedMemory::HEAD_AT_CPU);
    REQUIRE(device_pattern_is(0, memory.gpu_data(), SIZE, 7));
}

/* ---- Native streams ---- */

static syncedmem_stream *hooked_stream;

static syncedmem_status_t hook(CUstream_st *native, syncedmem_stream **out_stream)
{
    *out_stream = nullptr;
    REQUIRE(native != nullptr);
    const syncedmem_status_t status = syncedmem_stream_create(sim(0), out_stream);
    hooked_stream = *out_stream;
    return status;
}

static syncedmem_status_t failing_hook(CUstream_st *, syncedmem_stream **out_stream)
{
    return syncedmem_device_at(SIZE_MAX, reinterpret_cast<syncedmem_place **>(out_stream));
}

TEST(a_native_stream)
{
    sim_setup();
    int token = 0;
    CUstream_st *const native = reinterpret_cast<CUstream_st *>(&token);
    SyncedMemory memory(SIZE);
    pattern_write(memory.mutable_cpu_data(), SIZE, 8);
    REQUIRE(fails(SYNCEDMEM_UNSUPPORTED, [&] { memory.async_gpu_push(native); }));
    REQUIRE(memory.head() == SyncedMemory::HEAD_AT_CPU);
    REQUIRE(SyncedMemory::set_stream_hook(failing_hook) == nullptr);
    REQUIRE(fails(SYNCEDMEM_NOT_FOUND, [&] { memory.async_gpu_push(native); }));
    REQUIRE(SyncedMemory::set_stream_hook(hook) == failing_hook);
    memory.async_gpu_push(native);
    REQUIRE(hooked_stream && memory.head() == SyncedMemory::SYNCED);
    REQUIRE(device_pattern_is(0, memory.gpu_data(), SIZE, 8));
}

/* The stream that the hook returned is given back after the push. */
TEST(native_streams_one_after_another)
{
    sim_setup();
    int token = 0;
    SyncedMemory memory(SIZE);
    SyncedMemory::set_stream_hook(hook);
    for (int i = 0; i < 30; i++) {
        memory.mutable_cpu_data();
        memory.async_gpu_push(reinterpret_cast<CUstream_st *>(&token));
        memory.gpu_data();
    }
    REQUIRE(threads_come_down_to(10));
}

TEST(streams_of_this_library)
{
    sim_setup();
    const syncedmem::Stream stream{syncedmem::Place(sim(1))};
    SyncedMemory memory(SIZE);
    memory.mutable_cpu_data();
    memory.async_gpu_push(stream.get());
    REQUIRE(device_knows(1, memory.gpu_data()));
    memory.mutable_cpu_data();
    memory.async_gpu_push(stream);
    memory.mutable_cpu_data();
    memory.async_gpu_push(static_cast<syncedmem_stream *>(nullptr));
    memory.mutable_cpu_data();
    const syncedmem::Stream other{syncedmem::Place(sim(0))};
    REQUIRE(fails(SYNCEDMEM_INVALID_ARGUMENT, [&] { memory.async_gpu_push(other); }));
}

/* ---- Threads ---- */

TEST(first_used_by_many_threads)
{
    sim_setup();
    SyncedMemory memory(SIZE);
    std::vector<std::thread> threads;
    const void *pointers[32];
    for (int i = 0; i < 32; i++)
        threads.emplace_back([&, i] {
            if (i % 2 == 0)
                REQUIRE(syncedmem_device_set_current(sim(0)) == SYNCEDMEM_OK);
            pointers[i] = i % 2 == 0 ? memory.gpu_data() : memory.cpu_data();
        });
    for (std::thread &thread : threads)
        thread.join();
    for (int i = 2; i < 32; i++)
        REQUIRE(pointers[i] == pointers[i - 2]);
    REQUIRE(stat_of(memory.handle(), SYNCEDMEM_STAT_HOST_ALLOCATIONS) == 1);
    REQUIRE(stat_of(memory.handle(), SYNCEDMEM_STAT_DEVICE_ALLOCATIONS) == 1);
}

/* ---- Host blocks ---- */

TEST(host_blocks_of_cuda)
{
    unsigned char bytes[16];
    REQUIRE(fails(SYNCEDMEM_WRONG_MEMORY, [&] { caffe::CaffeFreeHost(bytes, true); }));
    Caffe::set_mode(Caffe::GPU);
    void *block;
    bool use_cuda = true;
    caffe::CaffeMallocHost(&block, 100, &use_cuda);
    REQUIRE(block && !use_cuda);
    caffe::CaffeFreeHost(block, use_cuda);
}
