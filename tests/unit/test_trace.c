/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library traces, against its own statistics: each event that is counted is traced, and
 * says which public function caused it. test_trace_file.c has the file itself. */
#include "ends_early.h"
#include "traced.h"

TestSuite(trace, .timeout = 240, .fini = traced_clean);

enum { SIZE = 4096, ROUNDS = 300, THREADS = 4 };

/* ---- Programs ---- */

/* The process's figures, a line each, for the test to compare. */
static int print_figures(void)
{
    for (syncedmem_key_t key = 1; syncedmem_stat_name(key) != NULL; key++) {
        printf("%s=%llu\n", syncedmem_stat_name(key), (unsigned long long)stat_of(NULL, key));
    }
    return 0;
}

static syncedmem_buffer *make(size_t size)
{
    syncedmem_buffer *buffer;
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(size, &buffer));
    return buffer;
}

static void fill_pattern(syncedmem_buffer *buffer)
{
    void *pointer;
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, syncedmem_size(buffer), 1);
}

static void lease(syncedmem_buffer *buffer, syncedmem_place *place, syncedmem_mode_t mode,
                  size_t offset, size_t length, syncedmem_stream *stream)
{
    void *pointer;
    syncedmem_token_t token;
    CHILD_OK(syncedmem_begin(buffer, place, mode, offset, length, stream, &pointer, NULL, &token));
    CHILD_OK(syncedmem_end(buffer, token));
}

static int program_plain(void)
{
    void *pointer;
    const void *reading;
    syncedmem_buffer *buffer = make(SIZE), *fresh = make(100);
    fill_pattern(buffer);
    CHILD_OK(syncedmem_gpu_data(buffer, &reading));
    CHILD_OK(syncedmem_gpu_data(buffer, &reading)); /* nothing to do */
    CHILD_OK(syncedmem_mutable_gpu_data(buffer, &pointer));
    CHILD_OK(syncedmem_cpu_data(buffer, &reading));
    CHILD_OK(syncedmem_mutable_gpu_data(fresh, &pointer));
    syncedmem_release(buffer);
    syncedmem_release(fresh);
    return print_figures();
}

/* Written in two parts at each of two places, and brought together. */
static int program_regions(void)
{
    syncedmem_buffer *buffer = make(SIZE);
    fill_pattern(buffer);
    lease(buffer, sim(0), SYNCEDMEM_READ, 0, SIZE, NULL);
    lease(buffer, sim(0), SYNCEDMEM_WRITE, 100, 50, NULL);
    lease(buffer, sim(0), SYNCEDMEM_WRITE, 200, 50, NULL);
    lease(buffer, syncedmem_host(), SYNCEDMEM_READ, 0, SIZE, NULL);
    syncedmem_release(buffer);
    return print_figures();
}

static int program_devices(void)
{
    syncedmem_buffer *buffer = make(SIZE);
    fill_pattern(buffer);
    lease(buffer, sim(0), SYNCEDMEM_READ_WRITE, 0, SIZE, NULL);
    lease(buffer, sim(1), SYNCEDMEM_READ, 0, SIZE, NULL);
    CHILD_OK(syncedmem_drop(buffer, sim(0)));
    syncedmem_release(buffer);
    return print_figures();
}

static atomic_bool is_open;

static void kernel_hold(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
    while (!atomic_load(&is_open)) {
        sleep_ms(1);
    }
}

static void *open_soon(void *argument)
{
    sleep_ms(30);
    atomic_store(&is_open, true);
    return argument;
}

/* A push that is held up; a second stream that comes after it; a call that waits for both. */
static int program_started(void)
{
    pthread_t opener;
    const void *reading;
    void *pointer;
    syncedmem_stream *one, *two;
    syncedmem_buffer *buffer = make(SIZE);
    fill_pattern(buffer);
    CHILD_OK(syncedmem_stream_create(sim(0), &one));
    CHILD_OK(syncedmem_stream_create(sim(0), &two));
    CHILD_OK(syncedmem_sim_launch(one, kernel_hold, NULL, 0, NULL, 0));
    CHILD_OK(syncedmem_async_gpu_push(buffer, one));
    lease(buffer, sim(0), SYNCEDMEM_READ, 0, SIZE, two);
    CHILD_CHECK(pthread_create(&opener, NULL, open_soon, NULL) == 0);
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
    pthread_join(opener, NULL);
    CHILD_OK(syncedmem_gpu_data(buffer, &reading));
    CHILD_OK(syncedmem_wait(buffer));
    syncedmem_stream_release(one);
    syncedmem_stream_release(two);
    syncedmem_release(buffer);
    return print_figures();
}

/* Given up while the transfer is held up. */
static int program_released(void)
{
    pthread_t opener;
    syncedmem_stream *stream;
    syncedmem_buffer *buffer = make(SIZE);
    fill_pattern(buffer);
    CHILD_OK(syncedmem_stream_create(sim(0), &stream));
    CHILD_OK(syncedmem_sim_launch(stream, kernel_hold, NULL, 0, NULL, 0));
    CHILD_OK(syncedmem_async_gpu_push(buffer, stream));
    CHILD_CHECK(pthread_create(&opener, NULL, open_soon, NULL) == 0);
    syncedmem_release(buffer);
    pthread_join(opener, NULL);
    CHILD_OK(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
    syncedmem_buffer *next = make(SIZE);
    lease(next, sim(0), SYNCEDMEM_READ, 0, SIZE, NULL); /* looks after what is retired */
    CHILD_OK(syncedmem_wait(next));
    syncedmem_release(next);
    return print_figures();
}

/* A child gives up what its parent is moving. Said: the child's id. */
static int program_forked(void)
{
    int state = 0;
    void *pointer;
    syncedmem_stream *stream;
    syncedmem_buffer *another, *buffer = make(SIZE);
    fill_pattern(buffer);
    CHILD_OK(syncedmem_stream_create(sim(0), &stream));
    CHILD_OK(syncedmem_sim_launch(stream, kernel_hold, NULL, 0, NULL, 0));
    CHILD_OK(syncedmem_async_gpu_push(buffer, stream));
    const pid_t child = fork();
    if (child == 0) {
        CHILD_OK(syncedmem_create(SIZE, &another));
        CHILD_OK(syncedmem_mutable_cpu_data(another, &pointer));
        syncedmem_release(another);
        syncedmem_release(buffer);
        exit(0);
    }
    CHILD_CHECK(waitpid(child, &state, 0) == child && state == 0);
    atomic_store(&is_open, true);
    CHILD_OK(syncedmem_wait(buffer));
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
    printf("%ld", (long)child);
    return 0;
}

static int program_failure(void)
{
    syncedmem_buffer *buffer = make(SIZE);
    fill_pattern(buffer);
    CHILD_OK(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    CHILD_OK(syncedmem_prefetch(buffer, sim(0), 0, SIZE, NULL));
    CHILD_STATUS(syncedmem_wait(buffer), SYNCEDMEM_DEVICE_ERROR);
    lease(buffer, sim(0), SYNCEDMEM_READ, 0, SIZE, NULL);
    CHILD_OK(syncedmem_wait(buffer));
    syncedmem_release(buffer);
    return print_figures();
}

static syncedmem_buffer *other;

static void on_release(void *user)
{
    const void *reading;
    CHILD_OK(syncedmem_gpu_data(user, &reading));
}

/* A function of the user's that calls the library, from a call that then goes on. */
static int program_callback(void)
{
    static char memory[SIZE];
    syncedmem_buffer *buffer = make(SIZE);
    other = make(SIZE);
    fill_pattern(other);
    CHILD_OK(syncedmem_adopt(buffer, syncedmem_host(), memory, SIZE, SYNCEDMEM_ADOPT_READ_ONLY,
                             NULL, on_release, other));
    lease(buffer, sim(0), SYNCEDMEM_READ_WRITE, 0, SIZE, NULL);
    CHILD_OK(syncedmem_drop(buffer, sim(0)));
    syncedmem_release(buffer);
    syncedmem_release(other);
    return print_figures();
}

static unsigned dice(uint64_t *random, unsigned limit)
{
    *random = *random * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(*random >> 40) % limit;
}

/* One of what there is to do with a range. */
static void act(syncedmem_buffer *buffer, syncedmem_stream *stream, uint64_t *random)
{
    const size_t offset = dice(random, SIZE / 2), length = 1 + dice(random, SIZE / 2);
    syncedmem_place *places[] = {syncedmem_host(), sim(0), sim(1)};
    syncedmem_place *place = places[dice(random, 3)];
    syncedmem_stream *with = place == sim(0) && dice(random, 2) ? stream : NULL;
    const syncedmem_mode_t modes[] = {SYNCEDMEM_READ, SYNCEDMEM_WRITE, SYNCEDMEM_READ_WRITE};
    switch (dice(random, 8)) {
    case 0:
        CHILD_OK(syncedmem_prefetch(buffer, place, offset, length, with));
        break;
    case 1:
        CHILD_OK(syncedmem_fill(buffer, offset, length, 3));
        break;
    case 2:
        CHILD_OK(syncedmem_copy(buffer, 0, buffer, offset, length));
        break;
    case 3:
        CHILD_OK(syncedmem_drop(buffer, place));
        break;
    default:
        lease(buffer, place, modes[dice(random, 3)], offset, length, with);
    }
}

static void act_often(uint64_t random)
{
    syncedmem_stream *stream;
    CHILD_OK(syncedmem_stream_create(sim(0), &stream));
    for (int i = 0; i < ROUNDS; i++) {
        syncedmem_buffer *buffer = make(SIZE);
        for (int j = 0; j < 10; j++) {
            act(buffer, stream, &random);
        }
        CHILD_OK(syncedmem_wait(buffer));
        syncedmem_release(buffer);
    }
    syncedmem_stream_release(stream);
}

static int program_anything(void)
{
    act_often(1);
    return print_figures();
}

static void *act_in_thread(void *argument)
{
    act_often(*(uint64_t *)argument);
    return NULL;
}

static int program_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    (void)sim(0), (void)sim(1); /* kept by support.c, which has no lock */
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        CHILD_CHECK(pthread_create(&threads[i], NULL, act_in_thread, &seeds[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return print_figures();
}

static const struct program programs[PROGRAMS] = {
    {"plain", program_plain},       {"regions", program_regions},   {"devices", program_devices},
    {"started", program_started},   {"released", program_released}, {"failure", program_failure},
    {"callback", program_callback}, {"anything", program_anything}, {"threads", program_threads},
    {"forked", program_forked},
};

/* ---- Against the statistics ---- */

static double figure(const char *name)
{
    char line[64];
    snprintf(line, sizeof line, "%s=", name);
    const char *found = strstr(traced_said, line);
    while (found != NULL && found != traced_said && found[-1] != '\n') {
        found = strstr(found + 1, line);
    }
    cr_assert_not_null(found, "%s in %s", name, traced_said);
    return strtod(found + strlen(line), NULL);
}

static const struct json *arguments_of(const struct json *event)
{
    return json_member(event, "args");
}

static bool is_host(const struct json *event, const char *argument)
{
    return strcmp(json_text(arguments_of(event), argument), "host") == 0;
}

struct sums {
    double count, bytes;
};

static void add(struct sums *sums, const struct json *event)
{
    sums->count++;
    sums->bytes += json_number(arguments_of(event), "bytes");
}

enum sum {
    SUM_TRANSFERS,
    SUM_TO_DEVICE,
    SUM_TO_HOST,
    SUM_ZEROED,
    SUM_WAITS,
    SUM_ORDERS,
    SUM_HOST_BLOCKS,
    SUM_DEVICE_BLOCKS,
    SUM_FREED,
    SUMS
};

static void add_up(struct sums *sums, const struct json *event)
{
    if (event_is(event, "transfer")) {
        add(&sums[SUM_TRANSFERS], event);
        if (is_host(event, "place")) {
            add(&sums[SUM_TO_HOST], event);
        } else if (is_host(event, "from")) {
            add(&sums[SUM_TO_DEVICE], event);
        }
    } else if (event_is(event, "zero")) {
        add(&sums[SUM_ZEROED], event);
    } else if (event_is(event, "wait")) {
        add(&sums[SUM_WAITS], event);
    } else if (event_is(event, "order")) {
        add(&sums[SUM_ORDERS], event);
    } else if (event_is(event, "allocation")) {
        add(&sums[is_host(event, "place") ? SUM_HOST_BLOCKS : SUM_DEVICE_BLOCKS], event);
    } else if (event_is(event, "free")) {
        add(&sums[SUM_FREED], event);
    }
}

/* Which call, of which buffer, where. */
static void check_arguments(const struct json *event)
{
    const struct json *arguments = arguments_of(event);
    const char *place = json_text(arguments, "place"), *from = json_text(arguments, "from");
    cr_assert(strncmp(json_text(arguments, "call"), "syncedmem_", 10) == 0, "%s in \"%s\"",
              json_text(event, "name"), json_text(arguments, "call"));
    cr_assert(json_number(arguments, "buffer") >= 1);
    cr_assert(json_number(arguments, "bytes") >= 1);
    cr_assert(json_number(arguments, "regions") >= 1);
    cr_assert(is_host(event, "place") || strncmp(place, "sim:", 4) == 0, "%s", place);
    cr_assert_eq(event_is(event, "transfer"), from[0] != '\0');
    cr_assert_str_neq(place, from);
}

static void check_figures(const struct sums *sums)
{
    cr_assert_eq(sums[SUM_TRANSFERS].count, figure("transfers"));
    cr_assert_eq(sums[SUM_TO_DEVICE].count, figure("transfers_to_device"));
    cr_assert_eq(sums[SUM_TO_DEVICE].bytes, figure("bytes_to_device"));
    cr_assert_eq(sums[SUM_TO_HOST].count, figure("transfers_to_host"));
    cr_assert_eq(sums[SUM_TO_HOST].bytes, figure("bytes_to_host"));
    cr_assert_eq(sums[SUM_ZEROED].bytes, figure("bytes_zeroed"));
    cr_assert_eq(sums[SUM_WAITS].count, figure("waits"));
    cr_assert_eq(sums[SUM_ORDERS].count, figure("stream_waits"));
    cr_assert_eq(sums[SUM_HOST_BLOCKS].count, figure("host_allocations"));
    cr_assert_eq(sums[SUM_DEVICE_BLOCKS].count, figure("device_allocations"));
    cr_assert_eq(sums[SUM_HOST_BLOCKS].bytes + sums[SUM_DEVICE_BLOCKS].bytes -
                     sums[SUM_FREED].bytes,
                 figure("host_bytes") + figure("device_bytes"));
}

/* Runs a program, compares its trace with its figures, and returns the trace. */
static struct json *run(const char *name)
{
    struct sums sums[SUMS] = {0};
    traced_run(name, traced_path(name), 0);
    struct json *trace = traced_events(traced_path(name));
    for (const struct json *event = trace->first->next; event != NULL; event = event->next) {
        if (event_counts(event)) {
            check_arguments(event);
            add_up(sums, event);
        }
    }
    check_figures(sums);
    return trace;
}

/* The next event that counts is this one. */
static void expect(const struct json **at, const char *name, const char *call, const char *from,
                   const char *place, double bytes)
{
    do {
        *at = (*at)->next;
        cr_assert_not_null(*at, "no %s by %s", name, call);
    } while (!event_counts(*at));
    const struct json *arguments = arguments_of(*at);
    cr_assert(event_is(*at, name), "%s instead of %s", json_text(*at, "name"), name);
    cr_assert_str_eq(json_text(arguments, "call"), call);
    cr_assert_str_eq(json_text(arguments, "from"), from);
    cr_assert_str_eq(json_text(arguments, "place"), place);
    cr_assert_eq(json_number(arguments, "bytes"), bytes);
}

static double argument(const struct json *event, const char *name)
{
    return json_number(arguments_of(event), name);
}

/* ---- Tests ---- */

Test(trace, plain_calls)
{
    struct json *trace = run("plain");
    const struct json *at = trace->first;
    expect(&at, "allocation", "syncedmem_mutable_cpu_data", "", "host", SIZE);
    const double buffer = argument(at, "buffer");
    expect(&at, "allocation", "syncedmem_gpu_data", "", "sim:0", SIZE);
    expect(&at, "transfer", "syncedmem_gpu_data", "host", "sim:0", SIZE);
    cr_assert_eq(event_phase(at), 'X');
    cr_assert_eq(argument(at, "buffer"), buffer);
    expect(&at, "transfer", "syncedmem_cpu_data", "sim:0", "host", SIZE);
    expect(&at, "allocation", "syncedmem_mutable_gpu_data", "", "sim:0", 100);
    cr_assert_neq(argument(at, "buffer"), buffer);
    expect(&at, "zero", "syncedmem_mutable_gpu_data", "", "sim:0", 100);
    cr_assert_eq(traced_count(trace, "free"), 3);
    json_free(trace);
}

Test(trace, parts_of_a_transfer)
{
    struct json *trace = run("regions");
    const struct json *last = NULL;
    for (const struct json *at = trace->first; at != NULL; at = at->next) {
        last = event_counts(at) && event_is(at, "transfer") ? at : last;
    }
    cr_assert_not_null(last);
    cr_assert_str_eq(json_text(arguments_of(last), "call"), "syncedmem_begin");
    cr_assert_eq(argument(last, "bytes"), 100);
    cr_assert_eq(argument(last, "regions"), 2);
    json_free(trace);
}

Test(trace, several_devices)
{
    json_free(run("devices"));
}

static const struct json *find(const struct json *trace, const char *name, const char *call)
{
    const struct json *at = trace->first;
    while (at != NULL && !(event_counts(at) && event_is(at, name) &&
                           strcmp(json_text(arguments_of(at), "call"), call) == 0)) {
        at = at->next;
    }
    cr_assert_not_null(at, "no %s by %s", name, call);
    return at;
}

Test(trace, started_and_waited_for)
{
    struct json *trace = run("started");
    const struct json *push = find(trace, "transfer", "syncedmem_async_gpu_push");
    const struct json *order = find(trace, "order", "syncedmem_begin");
    const struct json *wait = find(trace, "wait", "syncedmem_mutable_cpu_data");
    cr_assert_eq(event_phase(push), 'b');
    cr_assert(argument(push, "stream") >= 1 && argument(order, "stream") >= 1);
    cr_assert_neq(argument(push, "stream"), argument(order, "stream"));
    cr_assert_gt(json_number(event_end(push), "ts"), json_number(push, "ts") + 10e3);
    cr_assert_eq(json_member(arguments_of(event_end(push)), "failed")->number, 0);
    cr_assert_gt(json_number(wait, "dur"), 10e3);
    json_free(trace);
}

Test(trace, released_before_its_end)
{
    json_free(run("released"));
}

/* Whether it ended well only the parent can say. */
Test(trace, a_child_ends_no_transfer_of_its_parent)
{
    char name[64];
    (void)traced_run("forked", traced_path("%p"), 0);
    snprintf(name, sizeof name, "%ld", strtol(traced_said, NULL, 10));
    struct json *trace = traced_events(traced_path(name));
    cr_assert_gt(traced_count(trace, "allocation"), 0);
    for (const struct json *event = trace->first; event != NULL; event = event->next) {
        cr_assert_neq(event_phase(event), 'e');
    }
    json_free(trace);
}

Test(trace, a_failure_later)
{
    struct json *trace = run("failure");
    const struct json *started = find(trace, "transfer", "syncedmem_prefetch");
    cr_assert_eq(event_phase(started), 'b');
    cr_assert_eq(json_member(arguments_of(event_end(started)), "failed")->number, 1);
    json_free(trace);
}

/* What a function of the user's does is its own call's; after it the outer call goes on. */
Test(trace, calls_in_calls)
{
    struct json *trace = run("callback");
    const struct json *inner = find(trace, "transfer", "syncedmem_gpu_data");
    const struct json *outer = find(trace, "transfer", "syncedmem_drop");
    cr_assert_neq(argument(inner, "buffer"), argument(outer, "buffer"));
    json_free(trace);
}

Test(trace, anything)
{
    json_free(run("anything"));
}

Test(trace, threads)
{
    json_free(run("threads"));
}

Test(trace, the_figures_are_the_same_without)
{
    static char with[sizeof traced_said];
    json_free(run("plain"));
    strcpy(with, traced_said);
    traced_run("plain", NULL, 0);
    cr_assert_str_eq(traced_said, with);
}
