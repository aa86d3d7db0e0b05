/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criterion/criterion.h"

enum { FAILED = 1 };

/* ---- The list, in the order of the source ---- */

static struct standin_test *tests;
static struct standin_test **end = &tests;

void standin_register(struct standin_test *test)
{
    *end = test;
    end = &test->next;
}

static const struct standin_options *options_of_suite(const char *suite)
{
    static const struct standin_options none;
    for (const struct standin_test *test = tests; test; test = test->next)
        if (!test->name && strcmp(test->suite, suite) == 0)
            return &test->options;
    return &none;
}

/* ---- In the child ---- */

void standin_fail(const char *file, int line, const char *what, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    printf("%s:%d: %s%s%s\n", file, line, what, *message ? ": " : "", message);
    fflush(NULL);
    _exit(FAILED);
}

static void call(void (*function)(void))
{
    if (function)
        function();
}

static void run_here(const struct standin_test *test)
{
    const struct standin_options *suite = options_of_suite(test->suite);
    call(suite->init);
    call(test->options.init);
    test->run();
    call(test->options.fini);
    call(suite->fini);
}

/* The child is killed when its time is up. */
static void set_alarm(const struct standin_test *test)
{
    const struct standin_options *suite = options_of_suite(test->suite);
    const double seconds = test->options.timeout > 0 ? test->options.timeout : suite->timeout;
    if (seconds > 0)
        alarm((unsigned)seconds + 1);
}

/* ---- In the parent ---- */

static int run_in_child(const struct standin_test *test)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        set_alarm(test);
        run_here(test);
        exit(EXIT_SUCCESS);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return status;
}

static bool ended_as_wanted(const struct standin_test *test, int status)
{
    const int signal = test->options.signal;
    if (signal)
        return WIFSIGNALED(status) && WTERMSIG(status) == signal;
    return WIFEXITED(status) && WEXITSTATUS(status) == test->options.exit_code;
}

static void explain(int status)
{
    if (WIFSIGNALED(status))
        printf("# ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        printf("# ended with status %d\n", WEXITSTATUS(status));
}

static bool run(const struct standin_test *test)
{
    if (getenv("STANDIN_NO_FORK") && !test->options.signal && !test->options.exit_code) {
        run_here(test);
        return true;
    }
    const int status = run_in_child(test);
    const bool passed = ended_as_wanted(test, status);
    if (!passed)
        explain(status);
    return passed;
}

/* No names: all are wanted. */
static bool is_wanted(const struct standin_test *test, char **names)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", test->suite, test->name);
    for (char **wanted = names; *wanted; wanted++)
        if (strcmp(*wanted, name) == 0 || strcmp(*wanted, test->suite) == 0)
            return true;
    return !*names;
}

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;
    (void)argc;
    for (const struct standin_test *test = tests; test; test = test->next) {
        if (!test->name || !is_wanted(test, argv + 1))
            continue;
        const bool ok = run(test);
        printf("%s - %s/%s\n", ok ? "ok" : "not ok", test->suite, test->name);
        passed += ok;
        failed += !ok;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
