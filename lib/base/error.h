/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last error of a thread.
 *
 * Set where the cause is known, with what the caller does not know: figures, names, the
 * driver's own code. Layers above pass the status on and leave the text alone.
 */
#ifndef SYNCEDMEM_BASE_ERROR_H
#define SYNCEDMEM_BASE_ERROR_H

#include "base/thread.h"
#include "syncedmem.h"

/* Keeps the text for this thread and returns the status, so that one line both reports and
 * returns. */
syncedmem_status_t syncedmem_error(syncedmem_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The usual one: what could not be allocated, and how many bytes. */
syncedmem_status_t syncedmem_error_no_host_memory(const char *what, size_t size);

/* This thread's message. For use within the library, where locks may be held:
 * syncedmem_last_error() is a public call, which hands out the log. */
const char *syncedmem_error_text(void);

/* A failure inside a call that succeeds all the same leaves no trace: kept before, put back
 * after. */
struct kept_error {
    char text[ERROR_TEXT_SIZE];
};

void syncedmem_error_keep(struct kept_error *kept);
void syncedmem_error_put_back(const struct kept_error *kept);

/* Names of the caller's may hold anything, and a message is one line. */
void syncedmem_make_one_line(char *text);

#endif
