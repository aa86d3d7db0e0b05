/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for Criterion where that does not run: under ThreadSanitizer, and for pointers of
 * another size. As much of it as the tests here use, with the same meaning.
 *
 * Each test runs in a child of its own, as with Criterion; with STANDIN_NO_FORK in the
 * environment all run in one process, for a debugger. Arguments of the program are names of
 * tests ("suite/name") or of suites to run; without any all run.
 */
#ifndef STANDIN_CRITERION_H
#define STANDIN_CRITERION_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Tests and suites ---- */

struct standin_options {
    int signal;     /* the test has to end by it */
    int exit_code;  /* or to exit with it */
    double timeout; /* seconds */
    void (*init)(void);
    void (*fini)(void);
    int end_of_list_;
};

struct standin_test {
    const char *suite;
    const char *name; /* NULL: options of the whole suite */
    void (*run)(void);
    struct standin_options options;
    struct standin_test *next;
};

void standin_register(struct standin_test *test);

#define Test(...) STANDIN_TEST(__VA_ARGS__, .end_of_list_ = 0)
#define TestSuite(...) STANDIN_SUITE(__VA_ARGS__, .end_of_list_ = 0)

#define STANDIN_TEST(suite_, name_, ...)                                                           \
    static void standin_run_##suite_##_##name_(void);                                              \
    STANDIN_REGISTER(suite_##_##name_, .suite = #suite_, .name = #name_,                           \
                     .run = standin_run_##suite_##_##name_, .options = {__VA_ARGS__})              \
    static void standin_run_##suite_##_##name_(void)

#define STANDIN_SUITE(suite_, ...)                                                                 \
    STANDIN_REGISTER(suite_, .suite = #suite_, .options = {__VA_ARGS__})                           \
    struct standin_semicolon

#define STANDIN_REGISTER(id, ...)                                                                  \
    static struct standin_test standin_test_##id = {__VA_ARGS__};                                  \
    __attribute__((constructor)) static void standin_register_##id(void)                           \
    {                                                                                              \
        standin_register(&standin_test_##id);                                                      \
    }

/* ---- Assertions: each may be followed by a message in the manner of printf ---- */

/* Arguments more than the format wants are fine. */
_Noreturn void standin_fail(const char *file, int line, const char *what, const char *format, ...);

/* The empty text at the end is the message where there is none. */
#define cr_assert(...) STANDIN_IS(__VA_ARGS__, "")
#define cr_assert_not(...) STANDIN_IS_NOT(__VA_ARGS__, "")
#define cr_assert_null(...) STANDIN_NULL(==, __VA_ARGS__, "")
#define cr_assert_not_null(...) STANDIN_NULL(!=, __VA_ARGS__, "")
#define cr_assert_eq(...) STANDIN_COMPARE(==, __VA_ARGS__, "")
#define cr_assert_neq(...) STANDIN_COMPARE(!=, __VA_ARGS__, "")
#define cr_assert_lt(...) STANDIN_COMPARE(<, __VA_ARGS__, "")
#define cr_assert_leq(...) STANDIN_COMPARE(<=, __VA_ARGS__, "")
#define cr_assert_gt(...) STANDIN_COMPARE(>, __VA_ARGS__, "")
#define cr_assert_geq(...) STANDIN_COMPARE(>=, __VA_ARGS__, "")
#define cr_assert_str_eq(...) STANDIN_TEXT(==, __VA_ARGS__, "")
#define cr_assert_str_neq(...) STANDIN_TEXT(!=, __VA_ARGS__, "")
#define cr_assert_arr_eq(...) STANDIN_ARRAY(==, __VA_ARGS__, "")
#define cr_assert_float_eq(...) STANDIN_NEAR(__VA_ARGS__, "")
#define cr_assert_fail(...) standin_fail(__FILE__, __LINE__, "failed", "" __VA_ARGS__)

#define STANDIN_IS(condition, ...) STANDIN_CHECK(condition, #condition, __VA_ARGS__)
#define STANDIN_IS_NOT(condition, ...) STANDIN_CHECK(!(condition), "!(" #condition ")", __VA_ARGS__)
#define STANDIN_NULL(op, a, ...) STANDIN_CHECK((a)op NULL, #a " " #op " NULL", __VA_ARGS__)
#define STANDIN_COMPARE(op, a, b, ...) STANDIN_CHECK((a)op(b), #a " " #op " " #b, __VA_ARGS__)
#define STANDIN_TEXT(op, a, b, ...) STANDIN_CHECK(strcmp(a, b) op 0, #a " " #op " " #b, __VA_ARGS__)
#define STANDIN_ARRAY(op, a, b, size, ...)                                                         \
    STANDIN_CHECK(memcmp(a, b, size) op 0, #a " " #op " " #b, __VA_ARGS__)
#define STANDIN_NEAR(a, b, epsilon, ...)                                                           \
    STANDIN_CHECK(fabs((double)((a) - (b))) <= (double)(epsilon), #a " near " #b, __VA_ARGS__)

#define STANDIN_CHECK(condition, text, ...)                                                        \
    do {                                                                                           \
        if (!(condition))                                                                          \
            standin_fail(__FILE__, __LINE__, text, __VA_ARGS__);                                   \
    } while (0)

#endif
