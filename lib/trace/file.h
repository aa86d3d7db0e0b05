/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of the trace: a JSON array, written through a buffer of its own.
 *
 * Not by stdio, whose buffers a forked child would write once more. What has been written is at
 * any moment the array without its end, which Perfetto and chrome://tracing open all the same.
 *
 * Calls are made under the trace's lock. They report to the log, and change no errno that matters:
 * the public call keeps it.
 */
#ifndef SYNCEDMEM_TRACE_FILE_H
#define SYNCEDMEM_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { TRACE_LINE_SIZE = 1024 };

/* Makes the file that the pattern names: "%p" in it is the process id, "%%" a percent sign. False
 * when that cannot be, and then the log says why. */
bool syncedmem_trace_file_open(const char *pattern);

bool syncedmem_trace_file_is_open(void);

/* Every process has a file of its own. */
bool syncedmem_trace_pattern_has_pid(const char *pattern);

/* One more element, shorter than TRACE_LINE_SIZE. False when the file could not be written: it is
 * closed then, ended after the last element that fitted, and the log says so. */
bool syncedmem_trace_file_add(const char *element, size_t length);
bool syncedmem_trace_file_flush(void);

/* Ends the array. */
void syncedmem_trace_file_close(void);

/* In a forked child: the file, and what is not yet written, are the parent's. */
void syncedmem_trace_file_forget(void);

#endif
