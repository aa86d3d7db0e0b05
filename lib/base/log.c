/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"

enum { LINE_SIZE = 500 };

struct log_line {
    struct log_line *next;
    syncedmem_log_level_t level;
    char text[LINE_SIZE];
};

static const char *const level_names[] = {"off", "error", "warning", "info", "debug"};

enum { LEVELS = sizeof level_names / sizeof *level_names };

/* ---- Where lines go ---- */

struct destination {
    syncedmem_log_fn function;
    void *user;
};

static struct destination destination;
static struct lock lock = LOCK_INITIALIZER;
static _Atomic(int32_t) wanted_level;
static pthread_once_t environment_once = PTHREAD_ONCE_INIT;
_Atomic(unsigned) syncedmem_log_kept;

static bool level_of_name(const char *name, syncedmem_log_level_t *out_level)
{
    for (int32_t level = 0; level < LEVELS; level++) {
        if (strcmp(name, level_names[level]) == 0) {
            *out_level = level;
            return true;
        }
    }
    return false;
}

/* The log is off then, so this goes to where the user looks for it. */
static void name_malformed(const char *name)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line,
             "SYNCEDMEM_LOG is \"%.40s\", not off, error, warning, info or debug: ignored", name);
    syncedmem_make_one_line(line);
    fprintf(stderr, "syncedmem warning: %s\n", line);
}

static void read_environment(void)
{
    const char *name = secure_getenv("SYNCEDMEM_LOG");
    syncedmem_log_level_t level = SYNCEDMEM_LOG_OFF;
    if (!name)
        return;
    if (level_of_name(name, &level))
        atomic_store(&wanted_level, level);
    else
        name_malformed(name);
}

bool syncedmem_log_wants(syncedmem_log_level_t level)
{
    pthread_once(&environment_once, read_environment);
    return level <= atomic_load_explicit(&wanted_level, memory_order_relaxed);
}

syncedmem_status_t syncedmem_log_configure(syncedmem_log_fn function, void *user,
                                           syncedmem_log_level_t level)
{
    if (level < 0 || level >= LEVELS)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%d is no log level", (int)level);
    pthread_once(&environment_once, read_environment);
    const syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    destination = (struct destination){function, user};
    atomic_store(&wanted_level, level);
    syncedmem_unlock(&lock);
    return SYNCEDMEM_OK;
}

static void write_line(const struct log_line *line)
{
    if (syncedmem_lock(&lock) != SYNCEDMEM_OK)
        return; /* a forked child cannot know where lines go */
    const struct destination to = destination;
    syncedmem_unlock(&lock);
    if (to.function)
        to.function(to.user, line->level, line->text);
    else
        fprintf(stderr, "syncedmem %s: %s\n", level_names[line->level], line->text);
}

/* ---- Lines ---- */

/* Without memory the line is lost: the log is no reason for a call to fail. */
static struct log_line *keep_line(syncedmem_log_level_t level)
{
    struct thread_state *state = syncedmem_thread_get();
    struct log_line *line = state ? malloc(sizeof *line) : NULL;
    if (!line)
        return NULL;
    *line = (struct log_line){.level = level};
    struct log_line **last = &state->log_lines;
    while (*last)
        last = &(*last)->next;
    *last = line;
    atomic_fetch_add_explicit(&syncedmem_log_kept, 1, memory_order_relaxed);
    return line;
}

void syncedmem_log(syncedmem_log_level_t level, const char *format, ...)
{
    if (!syncedmem_log_wants(level))
        return;
    struct log_line *line = keep_line(level);
    if (!line)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line->text, sizeof line->text, format, arguments);
    va_end(arguments);
    syncedmem_make_one_line(line->text);
}

static struct log_line *free_first(struct log_line *line)
{
    struct log_line *next = line->next;
    free(line);
    atomic_fetch_sub_explicit(&syncedmem_log_kept, 1, memory_order_relaxed);
    return next;
}

static struct log_line *take_lines(void)
{
    struct thread_state *state = syncedmem_thread_peek();
    struct log_line *lines = state ? state->log_lines : NULL;
    if (state)
        state->log_lines = NULL;
    return lines;
}

/* The function may call the library, which then has lines of its own to hand out, and failures
 * of its own that are not this call's. */
void syncedmem_log_flush(void)
{
    struct log_line *lines = take_lines();
    if (!lines)
        return;
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    while (lines) {
        write_line(lines);
        lines = free_first(lines);
    }
    syncedmem_error_put_back(&kept);
}

void syncedmem_log_discard(struct log_line *lines)
{
    while (lines)
        lines = free_first(lines);
}
