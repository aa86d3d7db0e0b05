/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "syncedmem.h"

bool bench_quick;

/* Exit statuses of a benchmark's process. */
enum { EXIT_OUTCOME = 10, EXIT_OUTCOME_END = EXIT_OUTCOME + OUTCOME_SKIPPED + 1 };

_Noreturn void bench_fail(const char *file, int line, const char *condition)
{
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s is not so: %s\n", file, line, condition, syncedmem_last_error());
    _exit(EXIT_FAILURE);
}

static int wait_for(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return EXIT_FAILURE;
    return WEXITSTATUS(status);
}

static int run_alone(const struct benchmark *benchmark)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const enum outcome outcome = benchmark->run(benchmark);
        fflush(stdout);
        _exit(EXIT_OUTCOME + (int)outcome);
    }
    return wait_for(child);
}

static void run_and_count(const struct benchmark *benchmark, struct tally *tally)
{
    const int exit_status = run_alone(benchmark);
    if (exit_status < EXIT_OUTCOME || exit_status >= EXIT_OUTCOME_END) {
        printf("%s: failed to run\n", benchmark->name);
        tally->failed++;
    } else if (exit_status == EXIT_OUTCOME + OUTCOME_MET) {
        tally->met++;
    } else if (exit_status == EXIT_OUTCOME + OUTCOME_NOT_MET) {
        tally->not_met++;
    } else if (exit_status == EXIT_OUTCOME + OUTCOME_SKIPPED) {
        tally->skipped++;
    }
}

static bool is_wanted(const struct benchmark *benchmark, const char *filter)
{
    return !(bench_quick && benchmark->large) && (!filter || strstr(benchmark->name, filter));
}

static bool is_any_wanted(const struct suite *suite, const char *filter)
{
    for (size_t i = 0; i < suite->count; i++)
        if (is_wanted(&suite->benchmarks[i], filter))
            return true;
    return false;
}

void bench_run_suite(const struct suite *suite, const char *filter, struct tally *tally)
{
    if (!is_any_wanted(suite, filter))
        return;
    if (suite->title)
        printf("\n%s\n\n", suite->title);
    suite->print_head();
    for (size_t i = 0; i < suite->count; i++)
        if (is_wanted(&suite->benchmarks[i], filter))
            run_and_count(&suite->benchmarks[i], tally);
}
