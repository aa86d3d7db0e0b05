/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

/* Stands in for the state of a thread that failed before there was memory for one. */
static struct thread_state lost_error;

static void free_state(void *stored)
{
    struct thread_state *state = stored;
    if (state == &lost_error)
        return;
    syncedmem_log_discard(state->log_lines);
    free(state);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, free_state) == 0;
}

static struct thread_state *stored_state(void)
{
    pthread_once(&once, make_key);
    return key_made ? pthread_getspecific(key) : NULL;
}

struct thread_state *syncedmem_thread_peek(void)
{
    struct thread_state *state = stored_state();
    return state == &lost_error ? NULL : state;
}

struct thread_state *syncedmem_thread_get(void)
{
    struct thread_state *state = syncedmem_thread_peek();
    if (state || !key_made)
        return state;
    state = calloc(1, sizeof *state);
    if (state && pthread_setspecific(key, state) != 0) {
        free(state);
        state = NULL;
    }
    return state;
}

void syncedmem_thread_set_lost_error(void)
{
    if (key_made)
        pthread_setspecific(key, &lost_error);
}

bool syncedmem_thread_has_lost_error(void)
{
    return stored_state() == &lost_error;
}
