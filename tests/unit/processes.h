/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of a test's own: a forked child that goes on from here, and this program started
 * again as another one. What they print and how they end is kept.
 *
 * The small programs of a file are in a table; one runs when its name is in the environment,
 * before main() would. Neither may use Criterion.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_PROCESSES_H
#define SYNCEDMEM_TESTS_UNIT_PROCESSES_H

#include <stdlib.h>
#include <sys/wait.h>

#include "ends_early.h"
#include "support.h"

#define PROGRAM_VARIABLE "SYNCEDMEM_TEST_PROGRAM"

enum { OUTCOME_LINES = 4000, OUTCOME_SECONDS = 20, OUTCOME_NO_START = 97 };

/* The allocator of the sanitizers does not survive a fork while another thread allocates. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CAN_FORK_AMONG_ALLOCATIONS = 0 };
#else
enum { CAN_FORK_AMONG_ALLOCATIONS = 1 };
#endif

struct outcome {
    int status; /* 128 and the number for a signal */
    char said[OUTCOME_LINES];
};

static inline void outcome_read(int from, struct outcome *outcome)
{
    size_t length = 0;
    ssize_t got;
    while (length < OUTCOME_LINES - 1 &&
           (got = read(from, outcome->said + length, OUTCOME_LINES - 1 - length)) > 0) {
        length += (size_t)got;
    }
    outcome->said[length] = '\0';
}

/* What the child does: it does not return. */
typedef void (*outcome_child_fn)(const void *argument);

/* Runs a function in a forked child, which an alarm ends when it hangs. */
static inline struct outcome outcome_of(outcome_child_fn child_runs, const void *argument)
{
    struct outcome outcome = {.status = -1};
    int ends[2], state = 0;
    fflush(NULL);
    if (pipe(ends) != 0) {
        return outcome;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        alarm(OUTCOME_SECONDS * (unsigned)(getenv("SYNCEDMEM_TEST_ROUNDS") != NULL ? 10 : 1));
        child_runs(argument);
        leave_child(OUTCOME_NO_START);
    }
    close(ends[1]);
    outcome_read(ends[0], &outcome);
    close(ends[0]);
    if (child > 0 && waitpid(child, &state, 0) == child) {
        outcome.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    }
    return outcome;
}

/* ---- A child that goes on from here ---- */

static inline void outcome_go_on(const void *argument)
{
    void (*const *body)(void) = (void (*const *)(void))argument;
    (*body)();
    leave_child(0);
}

static inline struct outcome outcome_of_fork(void (*body)(void))
{
    return outcome_of(outcome_go_on, (const void *)&body);
}

/* The child's checks hold, and it says nothing. Checks are CHILD_CHECK and the like. */
#define assert_forked(body)                                                                        \
    do {                                                                                           \
        const struct outcome outcome_ = outcome_of_fork(body);                                     \
        cr_assert_eq(outcome_.status, 0, "%s: status %d: %s", #body, outcome_.status,              \
                     outcome_.said);                                                               \
        cr_assert_str_eq(outcome_.said, "", "%s said: %s", #body, outcome_.said);                  \
    } while (0)

/* ---- This program again ---- */

struct program {
    const char *name;
    int (*run)(void); /* exits, or returns the status */
};

/* By its path: under valgrind the link itself would lead to valgrind. */
static inline void outcome_start(const void *argument)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    setenv(PROGRAM_VARIABLE, argument, 1);
    execl(path, path, (char *)NULL);
}

/* For a constructor: runs the program that the environment names, if any. */
static inline void run_named_program(const struct program *programs, size_t count)
{
    const char *name = getenv(PROGRAM_VARIABLE);
    for (size_t i = 0; name != NULL && i < count; i++) {
        if (strcmp(name, programs[i].name) == 0) {
            const char *settings = getenv("SYNCEDMEM_TEST_SIM");
            setenv("SYNCEDMEM_SIM", settings != NULL ? settings : "memory=4m", 1);
            unsetenv("SYNCEDMEM_DEVICE");
            unsetenv("SYNCEDMEM_LOG");
            exit(programs[i].run());
        }
    }
}

/* The program ends with that status, and not a word. */
#define assert_program(name, wanted)                                                               \
    do {                                                                                           \
        const struct outcome outcome_ = outcome_of(outcome_start, (name));                         \
        cr_assert_eq(outcome_.status, (wanted), "%s: status %d: %s", (name), outcome_.status,      \
                     outcome_.said);                                                               \
        cr_assert_str_eq(outcome_.said, "", "%s said: %s", (name), outcome_.said);                 \
    } while (0)

/* The same a few times, for what depends on the moment; and in the adversarial mode. */
#define assert_program_often(name, wanted)                                                         \
    do {                                                                                           \
        for (int round_ = 0; round_ < 4; round_++) {                                               \
            assert_program(name, wanted);                                                          \
        }                                                                                          \
        setenv("SYNCEDMEM_TEST_SIM", "memory=4m,seed=7", 1);                                       \
        assert_program(name, wanted);                                                              \
        unsetenv("SYNCEDMEM_TEST_SIM");                                                            \
    } while (0)

#endif
