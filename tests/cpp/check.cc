/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include "syncedmem.h"

namespace
{

check::Test *tests;
check::Test **tests_end = &tests;
check::Program *programs;

enum { SECONDS = 600 };

void clean_environment()
{
    unsetenv("SYNCEDMEM_SIM");
    unsetenv("SYNCEDMEM_DEVICE");
    unsetenv("SYNCEDMEM_LOG");
}

int status_of(pid_t child)
{
    int state = 0;
    if (child < 0 || waitpid(child, &state, 0) != child)
        return -1;
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

bool run(const check::Test &test)
{
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        test.run();
        std::exit(EXIT_SUCCESS);
    }
    const int status = status_of(child);
    if (status != 0)
        std::printf("# ended with status %d\n", status);
    std::printf("%s - %s\n", status == 0 ? "ok" : "not ok", test.name);
    return status == 0;
}

bool is_wanted(const check::Test &test, char **names)
{
    for (char **name = names; *name; name++)
        if (std::strcmp(*name, test.name) == 0)
            return true;
    return !*names;
}

int run_program_named(const char *name)
{
    for (check::Program *program = programs; program; program = program->next)
        if (std::strcmp(program->name, name) == 0)
            return program->run();
    return 96;
}

} // namespace

check::Test::Test(const char *test_name, void (*function)())
    : name(test_name), run(function), next(nullptr)
{
    *tests_end = this;
    tests_end = &next;
}

check::Program::Program(const char *program_name, int (*function)())
    : name(program_name), run(function), next(programs)
{
    programs = this;
}

void check::fail(const char *file, int line, const char *condition)
{
    std::printf("%s:%d: not true: %s (last error: %s)\n", file, line, condition,
                syncedmem_last_error());
    std::fflush(nullptr);
    _exit(EXIT_FAILURE);
}

check::Outcome check::run_program(const char *name)
{
    Outcome outcome;
    int ends[2];
    char text[4096], path[4096] = {};
    /* Not executed by that name: under valgrind it would be valgrind. */
    REQUIRE(readlink("/proc/self/exe", path, sizeof path - 1) > 0 && pipe(ends) == 0);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(path, "program", "--program", name, static_cast<char *>(nullptr));
        _exit(97);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
        outcome.said.append(text, static_cast<std::size_t>(got));
    close(ends[0]);
    outcome.status = status_of(child);
    return outcome;
}

/* A process may end while a thread of it begins: LeakSanitizer takes what the sanitizers' own start
 * of the thread holds at that moment for a leak. */
extern "C" __attribute__((visibility("default"))) const char *__lsan_default_suppressions();

const char *__lsan_default_suppressions()
{
    return "leak:__pthread_getattr_np\n";
}

int main(int count, char **arguments)
{
    unsigned passed = 0, failed = 0;
    clean_environment();
    if (count == 3 && std::strcmp(arguments[1], "--program") == 0)
        return run_program_named(arguments[2]);
    for (check::Test *test = tests; test; test = test->next) {
        if (!is_wanted(*test, arguments + 1))
            continue;
        const bool ok = run(*test);
        passed += ok;
        failed += !ok;
    }
    std::printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed ? EXIT_FAILURE : EXIT_SUCCESS;
}
