/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last error of a thread.
 *
 * Set where the cause is known, with what the caller does not know: figures, names, the
 * driver's own code. Layers above pass the status on and leave the text alone.
 */
#ifndef SYNCEDMEM_BASE_ERROR_H
#define SYNCEDMEM_BASE_ERROR_H

#include "syncedmem.h"

/* Keeps the text for this thread and returns the status, so that one line both reports and
 * returns. */
syncedmem_status_t syncedmem_error(syncedmem_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The usual one: what could not be allocated, and how many bytes. */
syncedmem_status_t syncedmem_error_no_host_memory(const char *what, size_t size);

/* Names of the caller's may hold anything, and a message is one line. */
void syncedmem_make_one_line(char *text);

#endif
