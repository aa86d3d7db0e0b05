/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "trace/file.h"
#include "trace/trace.h"

atomic_int syncedmem_trace_state = TRACE_UNREAD;

static struct lock lock = LOCK_INITIALIZER;
static char pattern[PATH_MAX];
static bool has_ended;

static void set_state(enum trace_state state)
{
    atomic_store_explicit(&syncedmem_trace_state, (int)state, memory_order_relaxed);
}

/* ---- Lines ---- */

enum { TEXT_SIZE = 100 };

struct line {
    size_t length;
    char text[TRACE_LINE_SIZE];
};

static __attribute__((format(printf, 2, 3))) void append(struct line *line, const char *format, ...)
{
    const size_t room = sizeof line->text - line->length;
    va_list arguments;
    va_start(arguments, format);
    const int added = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    if (added > 0)
        line->length += (size_t)added < room ? (size_t)added : room - 1;
}

/* Cut off so that a line has room for all of its texts. Only names of programs are ever long, or
 * need an escape; what they are encoded in is not known. */
static void append_text(struct line *line, const char *key, const char *text)
{
    char escaped[TEXT_SIZE + sizeof "\\u0000"];
    size_t length = 0;
    for (; *text && length < TEXT_SIZE; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte < ' ' || byte > '~' || byte == '"' || byte == '\\')
            length += (size_t)snprintf(escaped + length, sizeof escaped - length, "\\u%04x", byte);
        else
            escaped[length++] = (char)byte;
    }
    escaped[length] = '\0';
    append(line, ",\"%s\":\"%s\"", key, escaped);
}

static void append_number(struct line *line, const char *key, uint64_t number)
{
    append(line, ",\"%s\":%llu", key, (unsigned long long)number);
}

/* The format counts in microseconds. */
static void append_time(struct line *line, const char *key, uint64_t nanoseconds)
{
    append(line, ",\"%s\":%llu.%03u", key, (unsigned long long)(nanoseconds / 1000),
           (unsigned)(nanoseconds % 1000));
}

static void begin_line(struct line *line, const char *name, char phase)
{
    line->length = 0;
    append(line, "{\"name\":\"%s\",\"cat\":\"syncedmem\",\"ph\":\"%c\",\"pid\":%ld,\"tid\":%ld",
           name, phase, (long)getpid(), (long)gettid());
}

static void describe_process(struct line *line)
{
    begin_line(line, "process_name", 'M');
    append(line, ",\"args\":{\"library\":\"syncedmem\"");
    append_text(line, "name", program_invocation_short_name);
    append(line, "}}");
}

/* ---- The file ---- */

/* Under the lock. A forked child opens its own here, at its first event. */
static bool open_file(void)
{
    struct line line;
    if (syncedmem_trace_file_is_open())
        return true;
    describe_process(&line);
    return !has_ended && syncedmem_trace_file_open(pattern) &&
           syncedmem_trace_file_add(line.text, line.length) && syncedmem_trace_file_flush();
}

static void add_line(const struct line *line)
{
    if (syncedmem_lock(&lock) != SYNCEDMEM_OK)
        return;
    if (!open_file() || !syncedmem_trace_file_add(line->text, line->length))
        set_state(TRACE_OFF);
    syncedmem_unlock(&lock);
}

/* No thread is left that could hold the lock or be writing. */
static void in_child(void)
{
    syncedmem_lock_init(&lock);
    if (trace_state() != TRACE_ON)
        return;
    syncedmem_trace_file_forget();
    if (!syncedmem_trace_pattern_has_pid(pattern))
        set_state(TRACE_OFF);
}

static bool keep_pattern(const char *value)
{
    const bool fits = strlen(value) < sizeof pattern;
    if (fits)
        memcpy(pattern, value, strlen(value) + 1);
    else
        syncedmem_log(SYNCEDMEM_LOG_WARNING, "SYNCEDMEM_TRACE is too long for a name of a file");
    return fits;
}

static bool begin_trace(const char *value)
{
    if (pthread_atfork(NULL, NULL, in_child) != 0) {
        syncedmem_log(SYNCEDMEM_LOG_WARNING, "SYNCEDMEM_TRACE: no memory: no trace");
        return false;
    }
    if (syncedmem_lock(&lock) != SYNCEDMEM_OK)
        return false;
    const bool is_on = keep_pattern(value) && open_file();
    set_state(is_on ? TRACE_ON : TRACE_OFF);
    syncedmem_unlock(&lock);
    return is_on;
}

/* Later than the library is loaded: a program may set it for itself. */
static void read_environment(void)
{
    const char *value = secure_getenv("SYNCEDMEM_TRACE");
    if (!value || !begin_trace(value))
        set_state(TRACE_OFF);
}

/* Runs after what atexit() and destructors do with buffers; of one program's destructors the
 * lowest number is last. */
static __attribute__((destructor(101))) void end_trace(void)
{
    set_state(TRACE_OFF);
    if (syncedmem_lock(&lock) != SYNCEDMEM_OK)
        return;
    has_ended = true;
    syncedmem_trace_file_close();
    syncedmem_unlock(&lock);
}

/* ---- Calls ---- */

const char *syncedmem_trace_enter(const char *call)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (trace_state() == TRACE_UNREAD)
        pthread_once(&once, read_environment);
    struct thread_state *state = trace_is_on() ? syncedmem_thread_get() : NULL;
    if (!state)
        return NULL;
    const char *outer = state->traced_call;
    state->traced_call = call;
    return outer;
}

void syncedmem_trace_leave(const char *outer)
{
    struct thread_state *state = syncedmem_thread_peek();
    if (state)
        state->traced_call = outer;
}

/* ---- Events ---- */

static const char *const kind_names[TRACE_KINDS] = {
    [TRACE_TRANSFER] = "transfer",
    [TRACE_ZERO] = "zero",
    [TRACE_WAIT] = "wait",
    [TRACE_ORDER] = "order",
    [TRACE_ALLOCATION] = "allocation",
    [TRACE_FREE] = "free",
    [TRACE_EVICTION] = "eviction",
    [TRACE_FAILURE] = "failure",
};

uint64_t syncedmem_trace_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t syncedmem_trace_id(void)
{
    static _Atomic(uint64_t) last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static void append_id(struct line *line, uint64_t id)
{
    append(line, ",\"id\":\"%llu\"", (unsigned long long)id);
}

static void append_arguments(struct line *line, const struct trace_event *event)
{
    const struct thread_state *state = syncedmem_thread_peek();
    append(line, ",\"args\":{\"buffer\":%llu", (unsigned long long)event->buffer);
    append_number(line, "bytes", event->bytes);
    append_number(line, "regions", event->regions);
    if (event->stream)
        append_number(line, "stream", event->stream);
    if (event->place)
        append_text(line, "place", event->place);
    if (event->from)
        append_text(line, "from", event->from);
    if (state && state->traced_call)
        append_text(line, "call", state->traced_call);
    append(line, "}}");
}

void syncedmem_trace(const struct trace_event *event)
{
    const int kept_errno = errno;
    const uint64_t now = syncedmem_trace_clock();
    const uint64_t start = event->start ? event->start : now;
    struct line line;
    begin_line(&line, kind_names[event->kind], event->is_started ? 'b' : 'X');
    append_time(&line, "ts", start);
    if (event->is_started)
        append_id(&line, event->id);
    else
        append_time(&line, "dur", now - start);
    append_arguments(&line, event);
    add_line(&line);
    errno = kept_errno;
}

void syncedmem_trace_end(enum trace_kind kind, uint64_t id, bool failed)
{
    const int kept_errno = errno;
    struct line line;
    begin_line(&line, kind_names[kind], 'e');
    append_time(&line, "ts", syncedmem_trace_clock());
    append_id(&line, id);
    append(&line, ",\"args\":{\"failed\":%s}}", failed ? "true" : "false");
    add_line(&line);
    errno = kept_errno;
}
