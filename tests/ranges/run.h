/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs streams of operations, and makes bad ones shorter. */
#ifndef SYNCEDMEM_TESTS_RANGES_RUN_H
#define SYNCEDMEM_TESTS_RANGES_RUN_H

#include <stdbool.h>
#include <stddef.h>

enum { STREAM_OPERATIONS_MOST = 400, DEVICES_HERE = 1 };

struct run_options {
    bool trace;   /* a line on standard error for each call */
    bool careful; /* all bytes are looked at after each operation */
    bool planted; /* a difference is made up at each drop(), to try the shrinker */
};

/*
 * Runs a stream. Returns NULL when library and model agree, else what differs; the process is of no
 * more use then. The first call sets up the devices.
 */
const char *run_stream(const unsigned char *stream, size_t size, struct run_options options);

/*
 * Runs it in a child of a process that has not touched a device. True when it went well; else
 * the first line of what differs, or how the child died, is in `message`.
 */
bool run_in_fork(const unsigned char *stream, size_t size, struct run_options options,
                 char *message, size_t message_size);

/* Makes a bad stream shorter in place, in forks; returns the new size. */
size_t shrink(unsigned char *stream, size_t size, bool planted);

/* Shrinks, then prints the operations and the difference, and writes the stream to a file. */
void report_bad_stream(unsigned char *stream, size_t size, const char *path);

#endif
