/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log.
 *
 * A line is kept with the thread that writes it, since locks may be held, and handed out when the
 * public call returns.
 */
#ifndef SYNCEDMEM_BASE_LOG_H
#define SYNCEDMEM_BASE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "syncedmem.h"

struct log_line;

/* Whether lines of that level are wanted. */
bool syncedmem_log_wants(syncedmem_log_level_t level);

void syncedmem_log(syncedmem_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* INVALID_ARGUMENT for a level that is none. */
syncedmem_status_t syncedmem_log_configure(syncedmem_log_fn function, void *user,
                                           syncedmem_log_level_t level);

/* How many lines all threads keep; read by every call that returns. */
extern _Atomic(unsigned) syncedmem_log_kept;

/* Hands this thread's lines out. No lock is held. */
void syncedmem_log_flush(void);

/* For a thread that ends. */
void syncedmem_log_discard(struct log_line *lines);

#endif
