/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that are traced, and what their files say.
 *
 * Starts this program again with the name of a small program in the environment, which runs
 * before main() would: the trace is ended by the end of a process only.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_TRACED_H
#define SYNCEDMEM_TESTS_UNIT_TRACED_H

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "json.h"
#include "support.h"

/* ---- In the program ---- */

struct program {
    const char *name;
    int (*run)(void); /* its exit status */
};

/* Of the test; what is left has no name. */
enum { PROGRAMS = 40 };

static const struct program programs[PROGRAMS];

__attribute__((constructor)) static void run_program(void)
{
    const char *name = getenv("SYNCEDMEM_TEST_PROGRAM");
    for (const struct program *at = programs; name && at->name; at++) {
        if (strcmp(name, at->name) == 0) {
            setenv("SYNCEDMEM_SIM", "devices=2,memory=16m", 1);
            setenv("SYNCEDMEM_LOG", "warning", 1);
            unsetenv("SYNCEDMEM_DEVICE");
            exit(at->run());
        }
    }
}

/* ---- Starting one ---- */

static char traced_folder[64];
static char traced_said[4000];

/* A file in a folder of this process's own. */
static const char *traced_path(const char *name)
{
    static char path[PATH_MAX];
    if (traced_folder[0] == '\0') {
        strcpy(traced_folder, "/tmp/syncedmem-trace-XXXXXX");
        cr_assert_not_null(mkdtemp(traced_folder));
    }
    snprintf(path, sizeof path, "%s/%s", traced_folder, name);
    return path;
}

static void traced_clean(void)
{
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf %s", traced_folder);
    if (traced_folder[0] != '\0') {
        cr_assert_eq(system(command), 0);
    }
}

static void traced_become(const char *path, const char *name, const char *trace, int output)
{
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    unsetenv("SYNCEDMEM_TRACE");
    if (trace != NULL) {
        setenv("SYNCEDMEM_TRACE", trace, 1);
    }
    setenv("SYNCEDMEM_TEST_PROGRAM", name, 1);
    execl(path, path, (char *)NULL);
    _exit(97);
}

/* Under valgrind the link itself would lead to valgrind. */
static const char *traced_self(void)
{
    static char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    return path;
}

/* What the program said is in `traced_said`; returns its process id. NULL: no trace. */
static pid_t traced_run(const char *name, const char *trace, int wanted)
{
    FILE *output = tmpfile();
    int state = 0;
    cr_assert_not_null(output);
    fflush(NULL);
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        traced_become(traced_self(), name, trace, fileno(output));
    }
    cr_assert_eq(waitpid(child, &state, 0), child);
    rewind(output);
    traced_said[fread(traced_said, 1, sizeof traced_said - 1, output)] = '\0';
    fclose(output);
    const int status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    cr_assert_eq(status, wanted, "%s: status %d: %s", name, status, traced_said);
    return child;
}

/* ---- Its file ---- */

/* NULL when there is none. Freed by the caller. */
static char *traced_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }
    size_t room = 1 << 16, length = 0;
    char *text = malloc(room);
    while (text != NULL &&
           (length += fread(text + length, 1, room - 1 - length, file)) == room - 1) {
        room *= 2;
        text = realloc(text, room);
    }
    fclose(file);
    cr_assert_not_null(text);
    text[length] = '\0';
    return text;
}

static bool event_is(const struct json *event, const char *name)
{
    return strcmp(json_text(event, "name"), name) == 0;
}

static char event_phase(const struct json *event)
{
    const char *phase = json_text(event, "ph");
    return phase[0] != '\0' && phase[1] == '\0' ? phase[0] : '?';
}

/* Has happened or was started: what the statistics count. */
static bool event_counts(const struct json *event)
{
    return event_phase(event) == 'X' || event_phase(event) == 'b';
}

static const struct json *event_end(const struct json *event)
{
    const struct json *end = event->next;
    while (end != NULL && !(event_phase(end) == 'e' && event_is(end, json_text(event, "name")) &&
                            strcmp(json_text(end, "id"), json_text(event, "id")) == 0)) {
        end = end->next;
    }
    return end;
}

/* What Chrome's format wants of every event. */
static void event_check(const struct json *event)
{
    const char phase = event_phase(event);
    const struct json *arguments = json_member(event, "args");
    cr_assert_eq(event->type, JSON_OBJECT);
    cr_assert_neq(json_text(event, "name")[0], '\0');
    cr_assert_neq(json_text(event, "cat")[0], '\0');
    cr_assert_gt(json_number(event, "pid"), 0);
    cr_assert_gt(json_number(event, "tid"), 0);
    cr_assert(arguments != NULL && arguments->type == JSON_OBJECT);
    cr_assert_not_null(strchr("XbeM", phase), "phase %c", phase);
    cr_assert(phase == 'M' || json_number(event, "ts") > 0);
    cr_assert_eq(phase == 'X', json_number(event, "dur") >= 0);
    cr_assert_eq(phase == 'b' || phase == 'e', json_text(event, "id")[0] != '\0');
    if (phase == 'b') {
        cr_assert_not_null(event_end(event), "%s has no end", json_text(event, "id"));
    }
}

/* The events of a whole file, the first of which names the process. Freed by json_free(). */
static struct json *traced_events(const char *path)
{
    char *text = traced_text(path);
    cr_assert_not_null(text, "no %s", path);
    struct json *trace = json_read(text);
    cr_assert(trace != NULL && trace->type == JSON_ARRAY, "not JSON: %.4000s", text);
    free(text);
    cr_assert(trace->first != NULL && event_is(trace->first, "process_name"));
    for (const struct json *event = trace->first; event != NULL; event = event->next) {
        event_check(event);
    }
    return trace;
}

static size_t traced_count(const struct json *trace, const char *name)
{
    size_t count = 0;
    for (const struct json *event = trace->first; event != NULL; event = event->next) {
        count += event_counts(event) && event_is(event, name);
    }
    return count;
}

#endif
