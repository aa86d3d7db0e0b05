/* SPDX-License-Identifier: BSD-2-Clause */
#include "support.hpp"

#include <cstring>
#include <ctime>

#include <dirent.h>

/* ---- Simulated devices ---- */

namespace
{

enum Verb { WRITE, COMPARE };

struct Job {
    Verb verb;
    std::size_t size;
    unsigned seed;
    bool *answer;
};

void kernel(void *arguments, void *const *addresses, std::size_t)
{
    const Job *const job = static_cast<const Job *>(arguments);
    if (job->verb == WRITE)
        pattern_write(addresses[0], job->size, job->seed);
    else
        *job->answer = pattern_is(addresses[0], job->size, job->seed);
}

void nothing(void *, void *const *, std::size_t)
{
}

void launch(syncedmem_stream *stream, const Job &job, const void *address)
{
    REQUIRE(syncedmem_sim_launch(stream, kernel, &job, sizeof job, &address, 1) == SYNCEDMEM_OK);
}

void launch_and_wait(unsigned device, const Job &job, const void *address)
{
    syncedmem_stream *stream;
    if (job.size == 0)
        return;
    REQUIRE(syncedmem_stream_default(sim(device), &stream) == SYNCEDMEM_OK);
    launch(stream, job, address);
    REQUIRE(syncedmem_stream_wait(stream) == SYNCEDMEM_OK);
    syncedmem_stream_release(stream);
}

} // namespace

void sim_setup()
{
    REQUIRE(syncedmem_sim_configure("devices=2,memory=64m") == SYNCEDMEM_OK);
    REQUIRE(syncedmem_device_set_current(sim(0)) == SYNCEDMEM_OK);
}

syncedmem_place *sim(unsigned device)
{
    syncedmem_place *place;
    REQUIRE(syncedmem_device_find(device == 0 ? "sim:0" : "sim:1", &place) == SYNCEDMEM_OK);
    return place;
}

uint64_t device_memory_free(unsigned device)
{
    uint64_t bytes;
    REQUIRE(syncedmem_device_number(sim(device), SYNCEDMEM_PLACE_MEMORY_FREE, &bytes) ==
            SYNCEDMEM_OK);
    return bytes;
}

bool device_knows(unsigned device, const void *address)
{
    syncedmem_stream *stream;
    REQUIRE(syncedmem_stream_default(sim(device), &stream) == SYNCEDMEM_OK);
    const syncedmem_status_t status =
        syncedmem_sim_launch(stream, nothing, nullptr, 0, &address, 1);
    syncedmem_stream_wait(stream);
    syncedmem_stream_release(stream);
    return address != nullptr && status == SYNCEDMEM_OK;
}

static std::size_t count_threads()
{
    std::size_t count = 0;
    DIR *const tasks = opendir("/proc/self/task");
    REQUIRE(tasks != nullptr);
    while (const dirent *const entry = readdir(tasks))
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

bool threads_come_down_to(std::size_t most)
{
    for (int i = 0; i < 5000 && count_threads() > most; i++)
        sleep_ms(1);
    return count_threads() <= most;
}

/* ---- Patterns ---- */

static unsigned char pattern_at(unsigned seed, std::size_t index)
{
    return seed == 0 ? static_cast<unsigned char>(0)
                     : static_cast<unsigned char>(seed * 89 + index * 31 + (index >> 8) * 7);
}

void pattern_write(void *bytes, std::size_t size, unsigned seed)
{
    for (std::size_t i = 0; i < size; i++)
        static_cast<unsigned char *>(bytes)[i] = pattern_at(seed, i);
}

bool pattern_is(const void *bytes, std::size_t size, unsigned seed)
{
    for (std::size_t i = 0; i < size; i++)
        if (static_cast<const unsigned char *>(bytes)[i] != pattern_at(seed, i))
            return false;
    return true;
}

void device_pattern_write(unsigned device, void *address, std::size_t size, unsigned seed)
{
    launch_and_wait(device, Job{WRITE, size, seed, nullptr}, address);
}

bool device_pattern_is(unsigned device, const void *address, std::size_t size, unsigned seed)
{
    bool answer = size == 0;
    launch_and_wait(device, Job{COMPARE, size, seed, &answer}, address);
    return answer;
}

void stream_pattern_write(syncedmem_stream *stream, void *address, std::size_t size, unsigned seed)
{
    launch(stream, Job{WRITE, size, seed, nullptr}, address);
}

/* ---- Figures ---- */

uint64_t stat_of(const syncedmem_buffer *buffer, syncedmem_key_t key)
{
    uint64_t figure;
    REQUIRE(syncedmem_stat(buffer, key, &figure) == SYNCEDMEM_OK);
    return figure;
}

/* ---- Gates ---- */

void sleep_ms(unsigned milliseconds)
{
    const timespec time = {static_cast<time_t>(milliseconds / 1000),
                           static_cast<long>(milliseconds % 1000) * 1000000};
    nanosleep(&time, nullptr);
}

static void kernel_gate(void *arguments, void *const *, std::size_t)
{
    const Gate *const gate = static_cast<const Gate *>(arguments);
    while (!gate->is_open())
        sleep_ms(1);
}

void Gate::put(syncedmem_stream *stream)
{
    REQUIRE(syncedmem_sim_launch(stream, kernel_gate, this, 0, nullptr, 0) == SYNCEDMEM_OK);
}
