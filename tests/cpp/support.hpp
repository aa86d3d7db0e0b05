/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests in C++ share: simulated devices, patterns, gates. Works without exceptions. */
#ifndef SYNCEDMEM_TESTS_SUPPORT_HPP
#define SYNCEDMEM_TESTS_SUPPORT_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "check.hpp"
#include "syncedmem.h"
#include "syncedmem/sim.h"

/* ---- Simulated devices: two of 64 MiB; the first is this thread's current device ---- */

void sim_setup();
syncedmem_place *sim(unsigned device);

uint64_t device_memory_free(unsigned device);

/* The device knows the address as memory of its own. */
bool device_knows(unsigned device, const void *address);

/* The process comes down to at most so many threads: each stream that was used has one. */
bool threads_come_down_to(std::size_t most);

/* ---- Patterns: seed 0 is zero bytes ---- */

void pattern_write(void *bytes, std::size_t size, unsigned seed);
bool pattern_is(const void *bytes, std::size_t size, unsigned seed);

/* By kernels on the device's default stream, waited for. */
void device_pattern_write(unsigned device, void *address, std::size_t size, unsigned seed);
bool device_pattern_is(unsigned device, const void *address, std::size_t size, unsigned seed);

/* On a stream, not waited for. */
void stream_pattern_write(syncedmem_stream *stream, void *address, std::size_t size, unsigned seed);

/* ---- Figures ---- */

uint64_t stat_of(const syncedmem_buffer *buffer, syncedmem_key_t key);

inline uint64_t transfers_of(const syncedmem_buffer *buffer)
{
    return stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS);
}

/* ---- A gate holds up a stream until it is opened ---- */

class Gate
{
  public:
    Gate() : open_(false)
    {
    }

    void put(syncedmem_stream *stream);

    void open()
    {
        open_ = true;
    }

    bool is_open() const
    {
        return open_;
    }

  private:
    std::atomic<bool> open_;
};

void sleep_ms(unsigned milliseconds);

#endif
