/* SPDX-License-Identifier: BSD-2-Clause */
/* The log: where lines go, which, and what the function may do. Each test is a fresh process. */
#include <errno.h>
#include <stdlib.h>

#include "support.h"

TestSuite(log, .timeout = 240);

enum { SIZE = 5000, TEXT_SIZE = 8192 };

/* ---- A child whose standard error is kept ---- */

static char printed[TEXT_SIZE];
static FILE *kept;
static void (*body)(void);

static void run_body(void)
{
    dup2(fileno(kept), STDERR_FILENO);
    body();
    fflush(stderr);
}

/* Exit status of the child; what it printed is in `printed`. */
static int run_printing(void (*function)(void))
{
    kept = tmpfile();
    cr_assert_not_null(kept);
    body = function;
    const int status = run_in_child(run_body);
    rewind(kept);
    printed[fread(printed, 1, TEXT_SIZE - 1, kept)] = '\0';
    fclose(kept);
    return status;
}

static bool says(const char *part)
{
    return strstr(printed, part) != NULL;
}

static int lines(void)
{
    int count = 0;
    for (const char *at = printed; *at != '\0'; at++) {
        count += *at == '\n';
    }
    return count;
}

/* ---- What there is to say ---- */

static void fail_a_call(void)
{
    CHILD_STATUS(syncedmem_create(SIZE_MAX, &(syncedmem_buffer *){NULL}), SYNCEDMEM_OUT_OF_RANGE);
}

static syncedmem_buffer *refuse_pinning(void)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_OK(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_PIN, 1));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_CHECK(stat_of(buffer, SYNCEDMEM_STAT_PIN_FALLBACKS) == 1);
    return buffer;
}

static void say_all(void)
{
    fail_a_call();
    syncedmem_release(refuse_pinning());
}

/* ---- The environment ---- */

static void with_environment(const char *value, int wanted_lines)
{
    setenv("SYNCEDMEM_LOG", value, 1);
    cr_assert_eq(run_printing(say_all), 0, "%s", printed);
    cr_assert_eq(lines(), wanted_lines, "SYNCEDMEM_LOG=%s: %s", value, printed);
    unsetenv("SYNCEDMEM_LOG");
}

Test(log, is_off_by_default)
{
    unsetenv("SYNCEDMEM_LOG");
    cr_assert_eq(run_printing(say_all), 0);
    cr_assert_str_eq(printed, "");
}

Test(log, levels_of_the_environment)
{
    with_environment("off", 0);
    with_environment("error", 0);
    with_environment("warning", 1);
    cr_assert(says("warning") && says("pageable"), "%s", printed);
    with_environment("debug", 4);
    cr_assert(says("OUT_OF_RANGE") && says("debug"), "%s", printed);
    with_environment("info", 2);
    cr_assert(says("opened"), "%s", printed);
}

Test(log, a_malformed_level_is_named_and_ignored)
{
    static const char *const values[] = {"verbose", "DEBUG", "", "warning "};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        with_environment(values[i], 1);
        cr_assert(says("SYNCEDMEM_LOG") && says(values[i]), "%s", printed);
    }
    char value[400];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    with_environment(value, 1);
    cr_assert_lt(strlen(printed), 300, "%s", printed);
    with_environment("two\nlines", 1);
}

/* ---- The function ---- */

static struct {
    int lines, others;
    pthread_t thread;
    syncedmem_log_level_t level;
    char text[1024];
    bool busy;
} seen;

static void on_line(void *user, syncedmem_log_level_t level, const char *line)
{
    CHILD_CHECK(user == &seen);
    CHILD_CHECK(is_one_line(line));
    seen.lines++;
    seen.level = level;
    seen.thread = pthread_self();
    snprintf(seen.text, sizeof seen.text, "%s", line);
}

CHILD_TEST(log, levels_of_the_function)
{
    for (syncedmem_log_level_t level = 0; level <= SYNCEDMEM_LOG_DEBUG; level++) {
        memset(&seen, 0, sizeof seen);
        CHILD_OK(syncedmem_set_log(on_line, &seen, level));
        fail_a_call();
        CHILD_CHECK(seen.lines == (level == SYNCEDMEM_LOG_DEBUG));
        if (seen.lines > 0) {
            CHILD_CHECK(seen.level == SYNCEDMEM_LOG_DEBUG);
            CHILD_CHECK(pthread_equal(seen.thread, pthread_self()));
            CHILD_CHECK(strstr(seen.text, syncedmem_last_error()) != NULL);
            CHILD_CHECK(strstr(seen.text, "OUT_OF_RANGE") != NULL);
        }
    }
}

CHILD_TEST(log, a_pin_fallback_is_a_warning)
{
    for (syncedmem_log_level_t level = 0; level <= SYNCEDMEM_LOG_INFO; level++) {
        memset(&seen, 0, sizeof seen);
        CHILD_OK(syncedmem_set_log(on_line, &seen, level));
        syncedmem_release(refuse_pinning());
        CHILD_CHECK(seen.lines == (level >= SYNCEDMEM_LOG_WARNING));
        CHILD_CHECK(seen.lines == 0 || seen.level == SYNCEDMEM_LOG_WARNING);
    }
}

CHILD_TEST(log, a_malformed_simulator_is_a_warning)
{
    syncedmem_place *place;
    setenv("SYNCEDMEM_SIM", "devices=many", 1);
    CHILD_OK(syncedmem_set_log(on_line, &seen, SYNCEDMEM_LOG_WARNING));
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_CHECK(seen.lines == 1 && seen.level == SYNCEDMEM_LOG_WARNING);
    CHILD_CHECK(strstr(seen.text, "SYNCEDMEM_SIM") != NULL);
    CHILD_CHECK(strstr(seen.text, "devices") != NULL);
}

CHILD_TEST(log, unknown_levels_change_nothing)
{
    CHILD_OK(syncedmem_set_log(on_line, &seen, SYNCEDMEM_LOG_DEBUG));
    CHILD_STATUS(syncedmem_set_log(NULL, NULL, -1), SYNCEDMEM_INVALID_ARGUMENT);
    CHILD_STATUS(syncedmem_set_log(NULL, NULL, 5), SYNCEDMEM_INVALID_ARGUMENT);
    CHILD_CHECK(seen.lines == 2);
    fail_a_call();
    CHILD_CHECK(seen.lines == 3);
}

/* Successful calls have nothing to say, but what happens once. */
CHILD_TEST(log, success_is_silent)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_OK(syncedmem_set_log(on_line, &seen, SYNCEDMEM_LOG_DEBUG));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    syncedmem_release(buffer);
    /* What happens once: the simulator was opened. */
    CHILD_CHECK(seen.lines == 1 && seen.level == SYNCEDMEM_LOG_INFO);
}

/* ---- What the function may do ---- */

static syncedmem_buffer *subject;

static void on_line_calls(void *user, syncedmem_log_level_t level, const char *line)
{
    const void *pointer;
    size_t needed;
    (void)user;
    (void)level;
    (void)line;
    seen.lines++;
    errno = 77;
    CHILD_OK(syncedmem_cpu_data(subject, &pointer));
    CHILD_OK(syncedmem_gpu_data(subject, &pointer));
    CHILD_OK(syncedmem_describe(subject, NULL, 0, &needed));
    CHILD_OK(syncedmem_fill(subject, 0, 10, 1));
    if (!seen.busy) {
        seen.busy = true;
        fail_a_call(); /* a line within a line */
        seen.busy = false;
    }
}

CHILD_TEST(log, the_function_may_call_the_library)
{
    void *pointer;
    syncedmem_token_t token;
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(SIZE, &subject));
    CHILD_OK(syncedmem_set_log(on_line_calls, &seen, SYNCEDMEM_LOG_DEBUG));
    errno = 5;
    /* Fails with the buffer's lock held; the function then uses that buffer. */
    CHILD_STATUS(syncedmem_async_gpu_push(subject, NULL), SYNCEDMEM_WRONG_STATE);
    CHILD_CHECK(errno == 5);
    CHILD_CHECK(seen.lines == 2);
    CHILD_STATUS(syncedmem_end(subject, 12345), SYNCEDMEM_INVALID_LEASE);
    CHILD_CHECK(seen.lines == 4);
    CHILD_STATUS(syncedmem_begin(subject, sim(0), 9, 0, 1, NULL, &pointer, NULL, &token),
                 SYNCEDMEM_INVALID_ARGUMENT);
    CHILD_CHECK(seen.lines == 6);
    CHILD_STATUS(syncedmem_copy(subject, 0, subject, 0, SIZE + 1), SYNCEDMEM_OUT_OF_RANGE);
    CHILD_CHECK(errno == 5);
    syncedmem_release(subject);
}

static void on_line_sets(void *user, syncedmem_log_level_t level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
    seen.others++;
    CHILD_OK(syncedmem_set_log(on_line, &seen, SYNCEDMEM_LOG_DEBUG));
}

CHILD_TEST(log, the_function_may_set_another)
{
    CHILD_OK(syncedmem_set_log(on_line_sets, NULL, SYNCEDMEM_LOG_DEBUG));
    fail_a_call();
    CHILD_CHECK(seen.others == 1 && seen.lines == 0);
    fail_a_call();
    CHILD_CHECK(seen.others == 1 && seen.lines == 1);
}

static void back_to_standard_error(void)
{
    CHILD_OK(syncedmem_set_log(on_line, &seen, SYNCEDMEM_LOG_DEBUG));
    CHILD_OK(syncedmem_set_log(NULL, NULL, SYNCEDMEM_LOG_DEBUG));
    fail_a_call();
    CHILD_CHECK(seen.lines == 0);
    CHILD_OK(syncedmem_set_log(NULL, NULL, SYNCEDMEM_LOG_OFF));
    fail_a_call();
}

Test(log, null_is_standard_error)
{
    cr_assert_eq(run_printing(back_to_standard_error), 0, "%s", printed);
    cr_assert_eq(lines(), 1, "%s", printed);
    cr_assert(says("OUT_OF_RANGE"), "%s", printed);
}

/* What the program says goes before what the environment says. */
static void over_the_environment(void)
{
    CHILD_OK(syncedmem_set_log(NULL, NULL, SYNCEDMEM_LOG_OFF));
    fail_a_call();
}

Test(log, set_log_overrides_the_environment)
{
    setenv("SYNCEDMEM_LOG", "debug", 1);
    cr_assert_eq(run_printing(over_the_environment), 0);
    cr_assert_str_eq(printed, "");
    unsetenv("SYNCEDMEM_LOG");
}

/* ---- Threads: each hands out its own lines ---- */

static atomic_int total, strangers;

static void on_line_of_thread(void *user, syncedmem_log_level_t level, const char *line)
{
    char mine[32];
    (void)user;
    (void)level;
    snprintf(mine, sizeof mine, "%p", (void *)(uintptr_t)pthread_self());
    atomic_fetch_add(&total, 1);
    if (strstr(line, mine) == NULL) {
        atomic_fetch_add(&strangers, 1);
    }
}

static void *fail_often(void *argument)
{
    char name[32];
    syncedmem_place *place;
    snprintf(name, sizeof name, "%p", (void *)(uintptr_t)pthread_self());
    for (int i = 0; i < 500; i++) {
        syncedmem_device_find(name, &place);
    }
    return argument;
}

CHILD_TEST(log, threads)
{
    pthread_t threads[4];
    CHILD_OK(syncedmem_set_log(on_line_of_thread, NULL, SYNCEDMEM_LOG_DEBUG));
    for (int i = 0; i < 4; i++) {
        CHILD_CHECK(pthread_create(&threads[i], NULL, fail_often, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHILD_CHECK(atomic_load(&total) == 2000);
    CHILD_CHECK(atomic_load(&strangers) == 0);
}
