/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the unit tests share. support.c is linked into every one of them.
 *
 * - Patterns: bytes made from a seed, so that any byte can be checked anywhere. Seed 0 is zero.
 * - Devices: the simulator configured once a process, kernels that write and check patterns.
 * - Figures: statistics and head of a buffer at one moment.
 * - Gates: a kernel that holds up its stream until the test lets go.
 * - Children: a test that needs a fresh process forks one, before it touches a device.
 *
 * In a child, and in other threads, nothing of Criterion may be used: CHILD_CHECK ends the
 * child with status 1, threads count their faults.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_SUPPORT_H
#define SYNCEDMEM_TESTS_UNIT_SUPPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pthread.h>

#include <criterion/criterion.h>

#include "syncedmem.h"
#include "syncedmem/sim.h"

/* ---- Statuses ---- */

/* The status is the one wanted; the message names both and the last error. */
#define assert_status(call, wanted)                                                                \
    do {                                                                                           \
        const syncedmem_status_t status_ = (call);                                                 \
        cr_assert_eq(status_, (wanted), "%s: %s instead of %s (%s)", #call,                        \
                     syncedmem_status_name(status_), syncedmem_status_name(wanted),                \
                     syncedmem_last_error());                                                      \
    } while (0)

#define assert_ok(call) assert_status(call, SYNCEDMEM_OK)

/* Not empty, and no line break. */
bool is_one_line(const char *text);

bool contains(const char *text, const char *part);

/* ---- Patterns ---- */

unsigned char pattern_at(unsigned seed, size_t index);
void pattern_write(void *bytes, size_t size, unsigned seed);
bool pattern_is(const void *bytes, size_t size, unsigned seed);

/* ---- Simulated devices ---- */

/* For .init: two devices of 64 MiB; the first is the current device of this thread. */
void sim_setup(void);

/* The same with a specification of one's own; the first call of a process decides. */
void sim_setup_with(const char *specification);

syncedmem_place *sim(unsigned device);

/* These put a kernel on the device's default stream and wait for it. Address NULL with size 0. */
void device_pattern_write(unsigned device, const void *address, size_t size, unsigned seed);
bool device_pattern_is(unsigned device, const void *address, size_t size, unsigned seed);
void device_write(unsigned device, const void *address, const void *bytes, size_t size);
void device_read(unsigned device, const void *address, void *bytes, size_t size);

/* As device_pattern_write(), on a stream and without waiting. False when the launch failed. */
bool stream_pattern_write(syncedmem_stream *stream, const void *address, size_t size,
                          unsigned seed);

/* Starts a copy of device bytes to host memory that must live until the stream is waited for. */
bool stream_read(syncedmem_stream *stream, const void *address, void *bytes, size_t size);

/* The device knows the address as memory of its own. */
bool device_knows(unsigned device, const void *address);

uint64_t device_memory_free(unsigned device);

/* So much is free there, or will be when unfinished work has ended. */
bool device_memory_gets_free(unsigned device, uint64_t bytes);

/* ---- Figures ---- */

enum { STATS = 16 };

struct figures {
    syncedmem_head_t head;
    uint64_t stat[STATS]; /* by key */
};

uint64_t stat_of(const syncedmem_buffer *buffer, syncedmem_key_t key);
struct figures figures_of(const syncedmem_buffer *buffer);

/* Nothing differs, waits excepted. */
bool figures_equal(const struct figures *one, const struct figures *other);

/* The home is fixed, or not yet. Where it is not, it is left at device 0. */
bool home_is_open(syncedmem_buffer *buffer);
bool home_is_fixed_at(syncedmem_buffer *buffer, unsigned device);

/* ---- Gates ---- */

struct gate {
    atomic_bool *open; /* outlives the gate */
    pthread_t opener;
};

/* Holds up the stream until the gate is opened. */
void gate_put(struct gate *gate, syncedmem_stream *stream);
void gate_open(struct gate *gate);
bool gate_is_open(struct gate *gate);

/* Starts a thread that opens the gate after a while, unless it is opened before. */
void gate_open_later(struct gate *gate, unsigned milliseconds);
/* Opens the gate and ends that thread. */
void gate_join(struct gate *gate);

void sleep_ms(unsigned milliseconds);
uint64_t now_ms(void);

/* ---- Children ---- */

/* Exit status of a forked child that ran the function, 128 and the number for a signal. */
int run_in_child(void (*body)(void));

/* The end of a child: no exit handlers, but coverage is counted. */
_Noreturn void leave_child(int status);

#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: child: not true: %s (last error: %s)\n", __FILE__, __LINE__,   \
                    #condition, syncedmem_last_error());                                           \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define CHILD_STATUS(call, wanted)                                                                 \
    do {                                                                                           \
        const syncedmem_status_t status_ = (call);                                                 \
        if (status_ != (wanted)) {                                                                 \
            fprintf(stderr, "%s:%d: child: %s: %s instead of %s (last error: %s)\n", __FILE__,     \
                    __LINE__, #call, syncedmem_status_name(status_),                               \
                    syncedmem_status_name(wanted), syncedmem_last_error());                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define CHILD_OK(call) CHILD_STATUS(call, SYNCEDMEM_OK)

/* A test that is nothing but a function run in a child. */
#define CHILD_TEST(suite, name)                                                                    \
    static void child_##suite##_##name(void);                                                      \
    Test(suite, name, .timeout = 240)                                                              \
    {                                                                                              \
        cr_assert_eq(run_in_child(child_##suite##_##name), 0);                                     \
    }                                                                                              \
    static void child_##suite##_##name(void)

#endif
