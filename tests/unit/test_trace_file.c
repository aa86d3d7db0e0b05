/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of the trace: its name, its form, and what becomes of it when a process ends, crashes,
 * forks or has no room. The events are made by the tests; test_trace.c has those of the library. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ends_early.h"
#include "trace/trace.h"
#include "traced.h"

TestSuite(trace_file, .timeout = 240, .fini = traced_clean);

enum { MANY = 1000, THREADS = 4, FORKS = 20 };

/* ---- Programs ---- */

static void trace_one(uint64_t number)
{
    if (trace_is_on()) {
        syncedmem_trace(&(struct trace_event){.kind = TRACE_ZERO, .buffer = number, .regions = 1});
    }
}

static void trace_many(uint64_t first)
{
    for (uint64_t i = 0; i < MANY; i++) {
        trace_one(first + i);
    }
}

/* The first public call reads the environment. */
static void begin(void)
{
    (void)syncedmem_last_error();
}

static int program_nothing(void)
{
    begin();
    return 0;
}

static int program_no_call(void)
{
    trace_one(1);
    return 0;
}

static int program_many(void)
{
    begin();
    trace_many(1);
    return 7;
}

static int program_is_off(void)
{
    begin();
    return trace_is_on() || trace_start() != 0;
}

static int program_texts(void)
{
    begin();
    const uint64_t id = syncedmem_trace_id(), start = trace_start();
    errno = 4711;
    syncedmem_trace(&(struct trace_event){.kind = TRACE_TRANSFER,
                                          .start = start,
                                          .buffer = UINT64_MAX,
                                          .bytes = 123456789012345,
                                          .regions = 3,
                                          .place = "a\"\\\n\x01/\x7f\xe4",
                                          .from = "",
                                          .stream = 5});
    syncedmem_trace(&(struct trace_event){.kind = TRACE_ZERO, .is_started = true, .id = id});
    syncedmem_trace_end(TRACE_ZERO, id, true);
    char text[5000];
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const char *outer = syncedmem_trace_enter(text);
    syncedmem_trace(&(struct trace_event){.kind = TRACE_FREE, .place = text, .from = text});
    syncedmem_trace_leave(outer);
    return errno == 4711 && start != 0 && outer == NULL ? 0 : 1;
}

static void at_exit(void)
{
    trace_many(1);
}

static int program_atexit(void)
{
    atexit(at_exit);
    begin();
    return 0;
}

static const char *program_name(void)
{
    const char *name = getenv("SYNCEDMEM_TEST_PROGRAM");
    return name != NULL ? name : "";
}

__attribute__((destructor)) static void at_destruction(void)
{
    if (strcmp(program_name(), "destructor") == 0) {
        trace_one(1);
    }
}

static atomic_bool has_traced;

static void *trace_for_ever(void *argument)
{
    for (uint64_t number = 1;; number++) {
        trace_one(number);
        atomic_store(&has_traced, true);
    }
    return argument;
}

static int program_busy(void)
{
    pthread_t thread;
    begin();
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread, NULL, trace_for_ever, NULL) != 0) {
            return 98;
        }
    }
    while (!atomic_load(&has_traced)) {
        sleep_ms(1);
    }
    return 3;
}

static void *exit_from_here(void *argument)
{
    (void)argument;
    trace_many(1);
    exit(5);
}

static int program_exit_in_a_thread(void)
{
    pthread_t thread;
    begin();
    if (pthread_create(&thread, NULL, exit_from_here, NULL) == 0) {
        pthread_join(thread, NULL);
    }
    return 98;
}

static void *trace_in_thread(void *argument)
{
    trace_many(*(uint64_t *)argument);
    return NULL;
}

static int program_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t firsts[THREADS];
    begin();
    for (int i = 0; i < THREADS; i++) {
        firsts[i] = 1 + (uint64_t)i * MANY;
        if (pthread_create(&threads[i], NULL, trace_in_thread, &firsts[i]) != 0) {
            return 98;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}

static int program_crash(void)
{
    begin();
    trace_many(1);
    signal(SIGABRT, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    abort();
}

static int program_quick_exit(void)
{
    begin();
    trace_many(1);
    _exit(0);
}

/* One event before, two in the child, one more after. Said: the child's id. */
static int program_fork(void)
{
    int state = 0;
    begin();
    trace_one(1);
    const pid_t child = fork();
    if (child == 0) {
        trace_one(2);
        trace_one(3);
        exit(0);
    }
    if (waitpid(child, &state, 0) != child || state != 0) {
        return 98;
    }
    trace_one(4);
    printf("%ld", (long)child);
    return 0;
}

/* Forked while another thread traces: its lock may be held at that moment. */
static int program_fork_busy(void)
{
    pthread_t thread;
    begin();
    if (pthread_create(&thread, NULL, trace_for_ever, NULL) != 0) {
        return 98;
    }
    for (int i = 0; i < FORKS; i++) {
        int state = 0;
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            trace_one(1);
            exit(0);
        }
        if (waitpid(child, &state, 0) != child || state != 0) {
            return 98;
        }
    }
    return 0;
}

static int program_limit(void)
{
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){20000, 20000});
    begin();
    trace_many(1);
    begin(); /* says it */
    return trace_is_on();
}

static int program_closed_standard_input(void)
{
    close(STDIN_FILENO);
    begin();
    const bool is_free = fcntl(STDIN_FILENO, F_GETFD) < 0;
    trace_many(1);
    return !is_free;
}

/* As a daemon does: every descriptor is closed, and the numbers get other files. */
static int program_closes_all(void)
{
    char bytes[16];
    begin();
    for (int i = 3; i < 50; i++) {
        close(i);
    }
    FILE *own = tmpfile();
    trace_many(1);
    begin();
    rewind(own);
    return trace_is_on() || fread(bytes, 1, sizeof bytes, own) != 0;
}

static int program_sets_it(void)
{
    setenv("SYNCEDMEM_TRACE", getenv("SYNCEDMEM_TEST_TRACE"), 1);
    begin();
    setenv("SYNCEDMEM_TRACE", "/nowhere/at/all", 1);
    trace_one(1);
    return 0;
}

static const struct program programs[PROGRAMS] = {
    {"nothing", program_nothing},
    {"no_call", program_no_call},
    {"many", program_many},
    {"is_off", program_is_off},
    {"texts", program_texts},
    {"atexit", program_atexit},
    {"destructor", program_nothing},
    {"busy", program_busy},
    {"exit_in_a_thread", program_exit_in_a_thread},
    {"threads", program_threads},
    {"crash", program_crash},
    {"quick_exit", program_quick_exit},
    {"fork", program_fork},
    {"fork_busy", program_fork_busy},
    {"limit", program_limit},
    {"closed_standard_input", program_closed_standard_input},
    {"closes_all", program_closes_all},
    {"sets_it", program_sets_it},
};

/* ---- Looking ---- */

static void run_to(const char *name, const char *file, int status)
{
    traced_run(name, traced_path(file), status);
    cr_assert_str_eq(traced_said, "");
}

static bool exists(const char *file)
{
    return access(traced_path(file), F_OK) == 0;
}

/* The file has these numbers of buffers, each once and in order. */
static void check_numbers(const char *file, uint64_t first, uint64_t last)
{
    struct json *trace = traced_events(traced_path(file));
    uint64_t wanted = first;
    for (const struct json *event = trace->first->next; event != NULL; event = event->next) {
        cr_assert_eq(json_number(json_member(event, "args"), "buffer"), (double)wanted);
        wanted++;
    }
    cr_assert_eq(wanted, last + 1, "%s: up to %llu", file, (unsigned long long)wanted - 1);
    json_free(trace);
}

/* ---- Its form ---- */

Test(trace_file, without_an_event)
{
    run_to("nothing", "a", 0);
    struct json *trace = traced_events(traced_path("a"));
    cr_assert_null(trace->first->next);
    cr_assert_eq(event_phase(trace->first), 'M');
    cr_assert(contains(traced_self(), json_text(json_member(trace->first, "args"), "name")));
    json_free(trace);
}

Test(trace_file, many_events)
{
    run_to("many", "a", 7);
    check_numbers("a", 1, MANY);
}

Test(trace_file, replaces_what_was_there)
{
    run_to("many", "a", 7);
    run_to("nothing", "a", 0);
    json_free(traced_events(traced_path("a")));
    struct stat facts;
    cr_assert_eq(stat(traced_path("a"), &facts), 0);
    cr_assert_lt(facts.st_size, 1000);
}

Test(trace_file, texts_and_numbers)
{
    run_to("texts", "a", 0);
    struct json *trace = traced_events(traced_path("a"));
    const struct json *event = trace->first->next, *arguments = json_member(event, "args");
    cr_assert_eq(event_phase(event), 'X');
    cr_assert_str_eq(json_member(arguments, "buffer")->text, "18446744073709551615");
    cr_assert_eq(json_number(arguments, "bytes"), 123456789012345);
    cr_assert_eq(json_number(arguments, "regions"), 3);
    cr_assert_eq(json_number(arguments, "stream"), 5);
    cr_assert_str_eq(json_text(arguments, "place"), "a\"\\\n\x01/\x7f\xe4");
    cr_assert_not_null(json_member(arguments, "from"));
    cr_assert_null(json_member(arguments, "call"));
    const struct json *end = event->next->next;
    cr_assert_eq(event_phase(event->next), 'b');
    cr_assert_null(json_member(json_member(event->next, "args"), "stream"));
    cr_assert_eq(event_phase(end), 'e');
    cr_assert_eq(json_member(json_member(end, "args"), "failed")->number, 1);
    cr_assert_gt(strlen(json_text(json_member(end->next, "args"), "call")), 10);
    json_free(trace);
}

/* Fractions of a microsecond, and a duration that lies in the process's time. */
Test(trace_file, times)
{
    run_to("texts", "a", 0);
    struct json *trace = traced_events(traced_path("a"));
    const struct json *event = trace->first->next, *written = json_member(event, "ts");
    const char *point = strchr(written->text, '.');
    cr_assert(point != NULL && strlen(point) == 4, "%s", written->text);
    cr_assert_lt(json_number(event, "dur"), 60e6);
    const double later = json_number(event->next, "ts") - json_number(event, "ts");
    cr_assert(later >= json_number(event, "dur") && later < 60e6);
    json_free(trace);
}

Test(trace_file, threads)
{
    static bool seen[THREADS * MANY + 1];
    double names[THREADS] = {0};
    run_to("threads", "a", 0);
    struct json *trace = traced_events(traced_path("a"));
    for (const struct json *event = trace->first->next; event != NULL; event = event->next) {
        const double number = json_number(json_member(event, "args"), "buffer");
        const size_t index = (size_t)number;
        cr_assert(index >= 1 && index <= THREADS * MANY && !seen[index]);
        seen[index] = true;
        double *name = &names[(index - 1) / MANY];
        *name = *name == 0 ? json_number(event, "tid") : *name;
        cr_assert_eq(json_number(event, "tid"), *name);
    }
    cr_assert_eq(traced_count(trace, "zero"), THREADS * MANY);
    cr_assert_neq(names[0], names[1]);
    json_free(trace);
}

/* ---- Its name ---- */

Test(trace_file, off_without_the_variable)
{
    traced_run("is_off", NULL, 0);
    cr_assert_str_eq(traced_said, "");
}

Test(trace_file, a_program_may_set_it_before_its_first_call)
{
    setenv("SYNCEDMEM_TEST_TRACE", traced_path("a"), 1);
    traced_run("sets_it", NULL, 0);
    check_numbers("a", 1, 1);
}

Test(trace_file, no_file_before_the_first_call)
{
    run_to("no_call", "a", 0);
    cr_assert(!exists("a"));
}

Test(trace_file, process_id_and_percent)
{
    char name[64];
    const pid_t child = traced_run("nothing", traced_path("%%p-%p-%p%%"), 0);
    cr_assert_str_eq(traced_said, "");
    snprintf(name, sizeof name, "%%p-%ld-%ld%%", (long)child, (long)child);
    json_free(traced_events(traced_path(name)));
}

static void refuse(const char *trace, const char *said)
{
    traced_run("is_off", trace, 0);
    cr_assert(contains(traced_said, "SYNCEDMEM_TRACE"), "%s", traced_said);
    cr_assert(contains(traced_said, said), "%s", traced_said);
    cr_assert(is_one_line(strtok(traced_said, "\n")) && strtok(NULL, "\n") == NULL);
}

Test(trace_file, malformed_names_are_said_and_ignored)
{
    refuse(traced_path("a%"), "a%");
    refuse(traced_path("a%d"), "a%d");
    refuse(traced_path("%P"), "%P");
    refuse(traced_path("two\nlines%"), "two?lines%");
    cr_assert(!exists("a") && !exists("a%") && !exists("a%d"));
}

Test(trace_file, files_that_cannot_be_made_are_said_and_ignored)
{
    static char longest[5000];
    refuse("", "No such file");
    refuse(traced_path("no/such/folder"), "no/such/folder");
    refuse(traced_folder, "directory");
    memset(longest, 'x', sizeof longest - 1);
    refuse(longest, "too long");
    longest[PATH_MAX - 1] = '\0';
    longest[0] = '%';
    longest[1] = 'p';
    refuse(longest, "too long");
    cr_assert_eq(mkfifo(traced_path("pipe"), 0600), 0);
    refuse(traced_path("pipe"), "pipe");
    const int reader = open(traced_path("pipe"), O_RDONLY | O_NONBLOCK);
    refuse(traced_path("pipe"), "not a file");
    close(reader);
}

/* Two programs with one name: who has the file keeps it. */
Test(trace_file, of_another_process)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    run_to("many", "a", 7);
    const int taken = open(traced_path("a"), O_RDWR);
    cr_assert_eq(fcntl(taken, F_SETLK, &whole), 0);
    refuse(traced_path("a"), "another process");
    close(taken);
    check_numbers("a", 1, MANY);
}

/* ---- The end ---- */

Test(trace_file, handlers_and_destructors_are_traced)
{
    run_to("atexit", "a", 0);
    check_numbers("a", 1, MANY);
    run_to("destructor", "b", 0);
    check_numbers("b", 1, 1);
}

Test(trace_file, threads_that_go_on)
{
    for (int i = 0; i < 5; i++) {
        run_to("busy", "a", 3);
        struct json *trace = traced_events(traced_path("a"));
        cr_assert_gt(traced_count(trace, "zero"), 0);
        json_free(trace);
    }
}

Test(trace_file, exit_in_a_thread)
{
    run_to("exit_in_a_thread", "a", 5);
    check_numbers("a", 1, MANY);
}

/* An array without its end, as Perfetto takes it, that lacks at most 64 events. */
static void check_cut_off(void)
{
    char *text = traced_text(traced_path("a"));
    cr_assert_not_null(text);
    cr_assert_null(json_read(text));
    const size_t length = strlen(text);
    text = realloc(text, length + 2);
    memcpy(text + length, "]", 2);
    struct json *trace = json_read(text);
    cr_assert_not_null(trace, "%s", text);
    const size_t count = traced_count(trace, "zero");
    cr_assert(count < MANY && count + 64 >= MANY, "%zu", count);
    json_free(trace);
    free(text);
}

Test(trace_file, crash)
{
    run_to("crash", "a", 128 + 6);
    check_cut_off();
}

Test(trace_file, exit_without_handlers)
{
    run_to("quick_exit", "a", 0);
    check_cut_off();
}

/* ---- No room ---- */

Test(trace_file, full_disk)
{
    traced_run("is_off", "/dev/full", 0);
    cr_assert(contains(traced_said, "trace ends here"), "%s", traced_said);
}

Test(trace_file, limit_of_a_file)
{
    traced_run("limit", traced_path("a"), 0);
    cr_assert(contains(traced_said, "trace ends here"), "%s", traced_said);
    cr_assert(is_one_line(strtok(traced_said, "\n")) && strtok(NULL, "\n") == NULL);
    struct json *trace = traced_events(traced_path("a"));
    cr_assert_gt(traced_count(trace, "zero"), 60);
    json_free(trace);
}

Test(trace_file, descriptors_of_the_program)
{
    run_to("closed_standard_input", "a", 0);
    check_numbers("a", 1, MANY);
    traced_run("closes_all", traced_path("a"), 0);
    cr_assert(contains(traced_said, "closed by the program"), "%s", traced_said);
}

/* ---- Forks ---- */

Test(trace_file, a_child_writes_nothing_into_its_parents_file)
{
    traced_run("fork", traced_path("a"), 0);
    struct json *trace = traced_events(traced_path("a"));
    cr_assert_eq(traced_count(trace, "zero"), 2);
    const struct json *last = trace->first->next->next;
    cr_assert_eq(json_number(json_member(last, "args"), "buffer"), 4);
    json_free(trace);
}

Test(trace_file, a_child_has_a_file_of_its_own)
{
    char name[64];
    const pid_t parent = traced_run("fork", traced_path("%p"), 0);
    const long child = strtol(traced_said, NULL, 10);
    snprintf(name, sizeof name, "%ld", child);
    check_numbers(name, 2, 3);
    struct json *trace = traced_events(traced_path(name));
    cr_assert_eq(json_number(trace->first, "pid"), (double)child);
    json_free(trace);
    snprintf(name, sizeof name, "%ld", (long)parent);
    trace = traced_events(traced_path(name));
    cr_assert_eq(traced_count(trace, "zero"), 2);
    json_free(trace);
}

Test(trace_file, forks_while_a_thread_traces)
{
    traced_run("fork_busy", traced_path("%p"), 0);
    cr_assert_str_eq(traced_said, "");
    traced_run("fork_busy", traced_path("a"), 0);
    cr_assert_str_eq(traced_said, "");
    json_free(traced_events(traced_path("a")));
}
