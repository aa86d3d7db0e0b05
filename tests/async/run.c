/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

/* The end of a child leaves out what coverage is written at. */
void __gcov_exit(void) __attribute__((weak));

static _Noreturn void run_child(uint64_t seed, bool fails, bool trace)
{
    alarm(60);
    const char *difference = program_run(seed, fails, trace);
    if (difference != NULL) {
        fprintf(stderr, "%s\n", difference);
    }
    if (__gcov_exit) {
        __gcov_exit();
    }
    fflush(NULL);
    _exit(difference != NULL);
}

bool run_seed(uint64_t seed, bool fails, bool trace)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        run_child(seed, fails, trace);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) {
        return true;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    }
    fprintf(stderr, "seed %llu went badly; again: async.drive --%s %llu\n",
            (unsigned long long)seed, fails ? "failing-seed" : "seed", (unsigned long long)seed);
    return false;
}

unsigned run_seeds(uint64_t first, uint64_t count, bool fails, unsigned bad_most)
{
    unsigned bad = 0;
    for (uint64_t seed = first; seed < first + count && bad < bad_most; seed++) {
        bad += !run_seed(seed, fails, false);
    }
    return bad;
}
