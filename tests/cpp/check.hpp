/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small test runner for C++, which also works without exceptions, with 32 bits and under
 * ThreadSanitizer. Each test runs in a process of its own, forked before anything was used.
 *
 *     TEST(name) { REQUIRE(condition); }
 *     PROGRAM(name) { return exit_status; }      // for run_program()
 *
 * Arguments of the program are names of tests; without any all run.
 */
#ifndef SYNCEDMEM_TESTS_CHECK_HPP
#define SYNCEDMEM_TESTS_CHECK_HPP

#include <string>

namespace check
{

struct Test {
    Test(const char *test_name, void (*function)());
    const char *name;
    void (*run)();
    Test *next;
};

struct Program {
    Program(const char *program_name, int (*function)());
    const char *name;
    int (*run)();
    Program *next;
};

[[noreturn]] void fail(const char *file, int line, const char *condition);

struct Outcome {
    int status; /* exit status; 128 and the number for a signal */
    std::string said;
};

/* Starts this executable again as the PROGRAM of that name. */
Outcome run_program(const char *name);

} // namespace check

#define TEST(name)                                                                                 \
    static void test_##name();                                                                     \
    static ::check::Test registered_##name(#name, test_##name);                                    \
    static void test_##name()

#define PROGRAM(name)                                                                              \
    static int program_##name();                                                                   \
    static ::check::Program registered_program_##name(#name, program_##name);                      \
    static int program_##name()

#define REQUIRE(...)                                                                               \
    ((__VA_ARGS__) ? static_cast<void>(0) : ::check::fail(__FILE__, __LINE__, #__VA_ARGS__))

#endif
