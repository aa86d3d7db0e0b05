/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library keeps for each thread: its last error and its current device.
 *
 * Kept behind a pthread key and not in thread-local variables: those take from a
 * small reserve when the library is opened with dlopen, and hot calls need neither.
 */
#ifndef SYNCEDMEM_BASE_THREAD_H
#define SYNCEDMEM_BASE_THREAD_H

#include <stdbool.h>

#include "syncedmem.h"

enum { ERROR_TEXT_SIZE = 400 };

struct log_line;

struct thread_state {
    syncedmem_place *current_device; /* NULL: none chosen */
    struct log_line *log_lines;      /* not handed out yet; see base/log.h */
    const char *traced_call;         /* the public function that runs, while the trace is on */
    char error_text[ERROR_TEXT_SIZE];
};

/* This thread's state, or NULL when it has none yet. */
struct thread_state *syncedmem_thread_peek(void);

/* This thread's state, made if need be; NULL when there is no memory for it. */
struct thread_state *syncedmem_thread_get(void);

/* This thread has an error whose text could not be kept. */
void syncedmem_thread_set_lost_error(void);
bool syncedmem_thread_has_lost_error(void);

#endif
