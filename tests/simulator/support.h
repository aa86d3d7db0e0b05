/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the engine share: devices, blocks and copies that must succeed, and a
 * kernel that holds a stream up until the test lets it go.
 */
#ifndef SYNCEDMEM_TESTS_SIMULATOR_SUPPORT_H
#define SYNCEDMEM_TESTS_SIMULATOR_SUPPORT_H

#include <criterion/criterion.h>

#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static inline struct engine_device *device_from(const struct engine_settings *settings)
{
    struct engine_device *device;
    cr_assert_eq(syncedmem_engine_device_create(settings, &device), ENGINE_OK);
    return device;
}

static inline struct engine_device *device_with(uint64_t memory)
{
    struct engine_settings settings = {.memory = memory};
    return device_from(&settings);
}

static inline void *block_of(struct engine_device *device, size_t size)
{
    void *address;
    cr_assert_eq(syncedmem_engine_alloc(device, size, &address), ENGINE_OK);
    return address;
}

static inline struct engine_stream *stream_of(struct engine_device *device)
{
    struct engine_stream *stream;
    cr_assert_eq(syncedmem_engine_stream_create(device, &stream), ENGINE_OK);
    return stream;
}

/* Waits for the event, gives it back and says how it ended. */
static inline enum engine_result outcome(struct engine_event *event)
{
    enum engine_result result = syncedmem_engine_event_wait(event);
    syncedmem_engine_event_release(event);
    return result;
}

/* One side of a copy: host memory where the device is NULL. */
struct side {
    struct engine_device *device;
    void *address;
};

/* Copies bytes from one side to the other, and says how that ended or why it did not begin. */
static inline enum engine_result copy_bytes(struct engine_stream *stream, struct side to,
                                            struct side from, size_t length)
{
    struct engine_region region = {.length = length};
    struct engine_copy copy = {.to = to.address,
                               .from = from.address,
                               .to_device = to.device,
                               .from_device = from.device,
                               .regions = &region,
                               .count = 1};
    struct engine_event *event;
    enum engine_result result = syncedmem_engine_copy(stream, &copy, &event);
    return result == ENGINE_OK ? outcome(event) : result;
}

static inline enum engine_result fill_bytes(struct engine_stream *stream, void *to, size_t length,
                                            uint8_t value)
{
    struct engine_region region = {.length = length};
    struct engine_fill fill = {.to = to, .regions = &region, .count = 1, .value = value};
    struct engine_event *event;
    enum engine_result result = syncedmem_engine_fill(stream, &fill, &event);
    return result == ENGINE_OK ? outcome(event) : result;
}

static inline bool all_are(const unsigned char *bytes, size_t length, unsigned char value)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/*
 * A kernel whose argument is a semaphore: the stream stands still until that is posted. Wait for
 * the stream before the semaphore goes.
 */
static inline void kernel_wait(void *arguments, void *const *addresses, size_t count)
{
    (void)addresses;
    (void)count;
    sem_wait(arguments);
}

static inline void hold_up(struct engine_stream *stream, sem_t *gate)
{
    cr_assert_eq(sem_init(gate, 0, 0), 0);
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_wait, gate, 0, NULL, 0, NULL), ENGINE_OK);
}

/* Numbers that are the same in each run. */
static inline uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
