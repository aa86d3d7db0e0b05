/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

static bool set_up;

static void run_steps(const unsigned char *stream, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct op op = op_read(stream + i * OP_BYTES);
        world.step = (unsigned)i;
        step_take(&op);
        EXPECT(!world.planted || op.kind != OP_DROP, "a difference that is made up");
        for (unsigned n = 0; n < ROOTS && world.careful; n++) {
            check_bytes(&world.root[n]);
        }
    }
    world.step = (unsigned)count;
    world_end();
}

const char *run_stream(const unsigned char *stream, size_t size, struct run_options options)
{
    const size_t count = size / OP_BYTES;
    world.trace = options.trace;
    world.careful = options.careful;
    world.planted = options.planted;
    if (!set_up && !world_setup(DEVICES_HERE)) {
        return "the devices cannot be had";
    }
    set_up = true;
    if (setjmp(world.out) != 0) {
        return world.message;
    }
    world_begin();
    run_steps(stream, count > STREAM_OPERATIONS_MOST ? STREAM_OPERATIONS_MOST : count);
    return NULL;
}

/* ---- In forks ---- */

static void child(const unsigned char *stream, size_t size, struct run_options options, int answer)
{
    alarm(20);
    const char *difference = run_stream(stream, size, options);
    if (difference == NULL) {
        _exit(0);
    }
    const ssize_t written = write(answer, difference, strlen(difference));
    _exit(written > 0 ? 1 : 2);
}

static bool read_answer(int from, pid_t pid, char *message, size_t size)
{
    size_t used = 0;
    ssize_t got;
    while (used + 1 < size && (got = read(from, message + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    message[used] = '\0';
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        snprintf(message, size, "killed by signal %d", WTERMSIG(status));
    } else if (status != 0 && used == 0) {
        snprintf(message, size, "ended with %d", WEXITSTATUS(status));
    }
    return status == 0;
}

bool run_in_fork(const unsigned char *stream, size_t size, struct run_options options,
                 char *message, size_t message_size)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends) != 0) {
        abort();
    }
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(stream, size, options, ends[1]);
    }
    close(ends[1]);
    const bool good = pid > 0 && read_answer(ends[0], pid, message, message_size);
    close(ends[0]);
    return good;
}

/* ---- Shrinking ---- */

/* How the stream is run while it is made shorter: as it was found bad. */
struct shrinking {
    unsigned char *stream;
    size_t size;
    struct run_options options;
    unsigned tries; /* for one that is bad only now and then */
    char kind[40];  /* of the difference: a stream with another one is another find */
};

/* The message without its numbers, as far as it goes. */
static void kind_of(const char *message, char *kind, size_t size)
{
    size_t used = 0;
    for (; *message != '\0' && used + 1 < size; message++) {
        if (strchr("0123456789abcdefx", *message) == NULL) {
            kind[used++] = *message;
        }
    }
    kind[used] = '\0';
}

static bool is_bad(struct shrinking *shrinking, const unsigned char *stream, size_t size)
{
    char message[1024];
    char kind[sizeof shrinking->kind];
    for (unsigned i = 0; i < shrinking->tries; i++) {
        if (run_in_fork(stream, size, shrinking->options, message, sizeof message)) {
            continue;
        }
        kind_of(message, kind, sizeof kind);
        if (shrinking->kind[0] == '\0') {
            memcpy(shrinking->kind, kind, sizeof kind);
        }
        return strcmp(kind, shrinking->kind) == 0;
    }
    return false;
}

/* Leaves out so many operations at a time, wherever it stays bad. True when some could go. */
static bool leave_out(struct shrinking *shrinking, size_t operations)
{
    const size_t part = operations * OP_BYTES;
    unsigned char *trial = malloc(shrinking->size + 1);
    bool shorter = false;
    for (size_t at = 0; trial != NULL && at + part <= shrinking->size;) {
        const size_t rest = shrinking->size - at - part;
        memcpy(trial, shrinking->stream, at);
        memcpy(trial + at, shrinking->stream + at + part, rest);
        if (is_bad(shrinking, trial, shrinking->size - part)) {
            shrinking->size -= part;
            memcpy(shrinking->stream, trial, shrinking->size);
            shorter = true;
        } else {
            at += part;
        }
    }
    free(trial);
    return shorter;
}

/* Sets bytes to zero wherever it stays bad. */
static void simplify(struct shrinking *shrinking)
{
    for (size_t at = 0; at < shrinking->size; at++) {
        const unsigned char byte = shrinking->stream[at];
        if (at % OP_BYTES == 0 || byte == 0) {
            continue;
        }
        shrinking->stream[at] = 0;
        if (!is_bad(shrinking, shrinking->stream, shrinking->size)) {
            shrinking->stream[at] = byte;
        }
    }
}

size_t shrink(unsigned char *stream, size_t size, bool planted)
{
    struct shrinking shrinking = {stream, size - size % OP_BYTES, {false, true, planted}, 1, ""};
    if (!is_bad(&shrinking, stream, shrinking.size)) {
        shrinking.options.careful = false;
        shrinking.tries = 5;
    }
    if (!is_bad(&shrinking, stream, shrinking.size)) {
        return size;
    }
    size_t part = shrinking.size / OP_BYTES / 2;
    while (part > 0) {
        if (!leave_out(&shrinking, part) || part > 1) {
            part /= 2;
        }
    }
    simplify(&shrinking);
    return shrinking.size;
}

void report_bad_stream(unsigned char *stream, size_t size, const char *path)
{
    char message[1024] = "it went well when it was run alone";
    size = shrink(stream, size, false);
    FILE *file = fopen(path, "wb");
    if (file != NULL) {
        fwrite(stream, 1, size, file);
        fclose(file);
    }
    for (int careful = 1; careful >= 0; careful--) {
        const struct run_options options = {true, careful != 0, false};
        if (!run_in_fork(stream, size, options, message, sizeof message)) {
            break;
        }
    }
    fprintf(stderr, "%s\n%zu operations kept as %s\n", message, size / OP_BYTES, path);
}
