/* SPDX-License-Identifier: BSD-2-Clause */
/* The adversarial mode: what the dice may change, and what they may not. */
#include "ends_early.h"
#include "programs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(simulator_schedule, .timeout = 120);

enum { SEEDS = 60, SIZE = 1000 };

static struct engine_device *seeded(uint64_t seed)
{
    struct engine_settings settings = {.memory = MIB, .seed = seed};
    return device_from(&settings);
}

static unsigned char *bytes_of(struct engine_device *device, void *block)
{
    return syncedmem_engine_translate(device, block);
}

/* ---- The order ---- */

Test(simulator_schedule, the_same_seed_gives_the_same_order)
{
    struct program one, other;
    for (uint32_t number = 1; number <= 30; number++) {
        program_run(&one, number, number + 7);
        program_run(&other, number, number + 7);
        cr_assert_eq(memcmp(one.turn, other.turn, sizeof one.turn), 0);
    }
}

Test(simulator_schedule, in_another_process_too)
{
    struct program own, others;
    int ends[2], status;
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        /* What has happened in the process before does not count. */
        program_run(&own, 1, 99);
        program_run(&own, 5, 12345);
        _exit(write(ends[1], own.turn, sizeof own.turn) == (ssize_t)sizeof own.turn ? 0 : 1);
    }
    program_run(&own, 5, 12345);
    cr_assert_eq(read(ends[0], others.turn, sizeof others.turn), (ssize_t)sizeof others.turn);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(memcmp(own.turn, others.turn, sizeof own.turn), 0);
}

Test(simulator_schedule, other_seeds_give_other_orders)
{
    struct program one, other;
    int different = 0;
    program_run(&one, 3, 1);
    for (uint64_t seed = 2; seed <= 31; seed++) {
        program_run(&other, 3, seed);
        different += memcmp(one.turn, other.turn, sizeof one.turn) != 0;
    }
    cr_assert_geq(different, 29);
}

Test(simulator_schedule, streams_and_events_keep_their_order)
{
    struct program program;
    for (uint32_t number = 1; number <= 300; number++) {
        program_run(&program, number, number);
        cr_assert_eq(program_faults(&program), 0, "program and seed %u", number);
    }
}

static void kernel_log(void *arguments, void *const *addresses, size_t count)
{
    char **next = arguments;
    (void)addresses;
    *(*next)++ = (char)count;
}

/* The names of the streams are told by how many addresses the kernel has. */
static void log_on(struct engine_stream *stream, char **next, size_t name)
{
    static const void *const nothing[4];
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_log, next, 0, nothing, name, NULL),
                 ENGINE_OK);
}

Test(simulator_schedule, streams_overtake_one_another)
{
    int first = 0, second = 0, unasked = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct engine_device *left = seeded(seed), *right = seeded(seed);
        struct engine_stream *one = stream_of(left), *other = stream_of(right);
        char log[3] = "", *next = log;
        log_on(one, &next, 1);
        log_on(other, &next, 2);
        cr_assert_eq(syncedmem_engine_stream_synchronize(other), ENGINE_OK);
        first += log[0] == 1;
        second += log[0] == 2;
        unasked += log[1] == 0;
        syncedmem_engine_device_destroy(left);
        syncedmem_engine_device_destroy(right);
        cr_assert_eq(log[0] + log[1], 3, "the device's end runs what is left");
    }
    cr_assert_gt(first, SEEDS / 6);
    cr_assert_gt(second, SEEDS / 6);
    cr_assert_gt(unasked, SEEDS / 10, "work is run though nobody waits for it");
}

Test(simulator_schedule, costs_no_time)
{
    struct engine_settings settings = {.memory = MIB,
                                       .seed = 1,
                                       .latency_ns = 3600000000000u,
                                       .launch_ns = 3600000000000u,
                                       .bandwidth = 1};
    struct engine_device *device = device_from(&settings);
    struct engine_stream *stream = stream_of(device);
    char log[2], *next = log;
    log_on(stream, &next, 1);
    cr_assert_eq(fill_bytes(stream, block_of(device, SIZE), SIZE, 1), ENGINE_OK);
    syncedmem_engine_device_destroy(device);
}

/* ---- Early and late ---- */

Test(simulator_schedule, sources_are_read_at_any_moment)
{
    int early = 0, late = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct engine_device *device = seeded(seed);
        struct engine_stream *stream = stream_of(device);
        unsigned char *block = block_of(device, 1), source = 1;
        struct engine_region region = {.length = 1};
        struct engine_copy copy = {
            .to = block, .from = &source, .to_device = device, .regions = &region, .count = 1};
        struct engine_event *event;
        cr_assert_eq(syncedmem_engine_copy(stream, &copy, &event), ENGINE_OK);
        source = 2;
        cr_assert_eq(outcome(event), ENGINE_OK);
        early += *bytes_of(device, block) == 1;
        late += *bytes_of(device, block) == 2;
        syncedmem_engine_device_destroy(device);
    }
    cr_assert_gt(early, 0);
    cr_assert_gt(late, SEEDS / 2);
    cr_assert_eq(early + late, SEEDS);
}

Test(simulator_schedule, asking_comes_to_an_end)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct engine_device *device = seeded(seed);
        struct engine_stream *stream = stream_of(device);
        struct engine_event *event;
        char log[30], *next = log;
        int asked = 0;
        for (int i = 0; i < 30; i++)
            log_on(stream, &next, 1);
        cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_OK);
        while (syncedmem_engine_event_query(event) == ENGINE_PENDING)
            cr_assert_lt(++asked, 10000);
        cr_assert_eq(next - log, 30);
        syncedmem_engine_event_release(event);
        syncedmem_engine_device_destroy(device);
    }
}

Test(simulator_schedule, the_event_of_a_released_stream_ends)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct engine_device *device = seeded(seed);
        struct engine_stream *stream = stream_of(device);
        struct engine_event *event;
        char log[3], *next = log;
        for (int i = 0; i < 3; i++)
            log_on(stream, &next, 1);
        cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_OK);
        syncedmem_engine_stream_release(stream);
        cr_assert_eq(outcome(event), ENGINE_OK);
        cr_assert_eq(next - log, 3);
        syncedmem_engine_device_destroy(device);
    }
}

/* ---- Blocking copies ---- */

struct landing {
    int landed;
    int later;
};

/* A blocking copy of `source`, which changes as soon as that returns. */
static void copy_and_look(uint64_t seed, bool pinned, struct landing *landing)
{
    struct engine_device *device = seeded(seed);
    struct engine_stream *stream = stream_of(device);
    unsigned char *block = block_of(device, SIZE), source[SIZE];
    struct engine_region regions[] = {{.length = 10}, {.to = 20, .from = 20, .length = SIZE - 20}};
    struct engine_copy copy = {
        .to = block, .from = source, .to_device = device, .regions = regions, .count = 2};
    struct engine_event *event;
    memset(source, 7, SIZE);
    if (pinned)
        cr_assert_eq(syncedmem_engine_pin(device, source, SIZE), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_copy_wait(stream, &copy), ENGINE_OK);
    memset(source, 8, SIZE);
    bool landed = bytes_of(device, block)[SIZE - 1] == 7;
    landing->landed += landed;
    landing->later += !landed;
    cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_OK);
    cr_assert_eq(outcome(event), ENGINE_OK);
    cr_assert(all_are(bytes_of(device, block), 10, 7));
    cr_assert(all_are(bytes_of(device, block) + 10, 10, 0xCD));
    cr_assert(all_are(bytes_of(device, block) + 20, SIZE - 20, 7));
    syncedmem_engine_device_destroy(device);
}

Test(simulator_schedule, pageable_copies_may_return_early)
{
    struct landing pageable = {0}, pinned = {0}, worker = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        copy_and_look(seed, false, &pageable);
        copy_and_look(seed, true, &pinned);
        copy_and_look(0, false, &worker);
    }
    cr_assert_gt(pageable.later, SEEDS / 6);
    cr_assert_gt(pageable.landed, SEEDS / 6);
    cr_assert_eq(pinned.later, 0);
    cr_assert_eq(worker.later, 0);
}

Test(simulator_schedule, pinned_is_what_is_registered_as_a_whole)
{
    int later = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct engine_device *device = seeded(seed);
        struct engine_stream *stream = stream_of(device);
        unsigned char *block = block_of(device, SIZE), source[SIZE] = {1};
        struct engine_region region = {.length = SIZE};
        struct engine_copy copy = {
            .to = block, .from = source, .to_device = device, .regions = &region, .count = 1};
        cr_assert_eq(syncedmem_engine_pin(device, source + 1, SIZE - 1), ENGINE_OK);
        cr_assert_eq(syncedmem_engine_copy_wait(stream, &copy), ENGINE_OK);
        later += bytes_of(device, block)[0] != 1;
        syncedmem_engine_device_destroy(device);
    }
    cr_assert_gt(later, 0);
}

/* What is on the stream before writes the source; it is read after that. */
Test(simulator_schedule, blocking_copies_come_after_the_stream)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct engine_device *device = seeded(seed);
        struct engine_stream *stream = stream_of(device);
        unsigned char *one = block_of(device, SIZE), *other = block_of(device, SIZE);
        unsigned char host[SIZE] = {0}, back[SIZE] = {0};
        struct engine_region region = {.length = SIZE};
        struct engine_fill fill = {.to = one, .regions = &region, .count = 1, .value = 5};
        struct engine_copy down = {
            .to = host, .from = one, .from_device = device, .regions = &region, .count = 1};
        struct engine_copy up = {
            .to = other, .from = host, .to_device = device, .regions = &region, .count = 1};
        struct engine_copy last = {
            .to = back, .from = other, .from_device = device, .regions = &region, .count = 1};
        cr_assert_eq(syncedmem_engine_fill(stream, &fill, NULL), ENGINE_OK);
        cr_assert_eq(syncedmem_engine_copy(stream, &down, NULL), ENGINE_OK);
        cr_assert_eq(syncedmem_engine_copy_wait(stream, &up), ENGINE_OK);
        cr_assert_eq(syncedmem_engine_copy_wait(stream, &last), ENGINE_OK);
        cr_assert(all_are(back, SIZE, 5));
        syncedmem_engine_device_destroy(device);
    }
}

/* A failure is never hidden by an early return. */
Test(simulator_schedule, failing_copies_do_not_return_early)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct engine_device *device = seeded(seed);
        unsigned char *block = block_of(device, SIZE), source[SIZE] = {0};
        struct engine_region region = {.length = SIZE};
        struct engine_copy copy = {
            .to = block, .from = source, .to_device = device, .regions = &region, .count = 1};
        syncedmem_engine_fail(device, ENGINE_FAIL_COPY_LATE, 1);
        cr_assert_eq(syncedmem_engine_copy_wait(stream_of(device), &copy), ENGINE_FAILED);
        syncedmem_engine_device_destroy(device);
    }
}

/* ---- Freed memory ---- */

struct touch {
    struct engine_device *device;
    struct engine_stream *stream;
    void *block;
    unsigned char host[SIZE];
    struct engine_event *event;
};

static void touch_by_fill(struct touch *touch)
{
    struct engine_region region = {.length = SIZE};
    struct engine_fill fill = {.to = touch->block, .regions = &region, .count = 1, .value = 1};
    cr_assert_eq(syncedmem_engine_fill(touch->stream, &fill, &touch->event), ENGINE_OK);
}

static void touch_by_reading(struct touch *touch)
{
    struct engine_region region = {.length = SIZE};
    struct engine_copy copy = {.to = touch->host,
                               .from = touch->block,
                               .from_device = touch->device,
                               .regions = &region,
                               .count = 1};
    cr_assert_eq(syncedmem_engine_copy(touch->stream, &copy, &touch->event), ENGINE_OK);
}

static void kernel_ones(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    memset(addresses[count - 1], 1, SIZE);
}

static void touch_by_kernel(struct touch *touch)
{
    const void *addresses[] = {NULL, touch->block};
    cr_assert_eq(
        syncedmem_engine_launch(touch->stream, kernel_ones, NULL, 0, addresses, 2, &touch->event),
        ENGINE_OK);
}

typedef void (*touch_fn)(struct touch *touch);

/* Whether the touch came too late: then another block at that address is as it was. */
static bool touch_freed(uint64_t seed, touch_fn touch_by, bool again)
{
    struct touch touch = {.device = seeded(seed)};
    touch.stream = stream_of(touch.device);
    touch.block = block_of(touch.device, SIZE);
    touch_by(&touch);
    cr_assert_eq(syncedmem_engine_free(touch.device, touch.block), ENGINE_OK);
    if (again)
        cr_assert_eq(block_of(touch.device, SIZE), touch.block);
    enum engine_result result = outcome(touch.event);
    uint64_t faults = syncedmem_engine_faults(touch.device);
    cr_assert(result == ENGINE_OK || result == ENGINE_BAD_ADDRESS);
    cr_assert_eq(faults, result == ENGINE_BAD_ADDRESS);
    if (again)
        cr_assert(all_are(bytes_of(touch.device, touch.block), SIZE, 0xCD));
    if (faults != 0)
        cr_assert(all_are(touch.host, SIZE, 0));
    syncedmem_engine_device_destroy(touch.device);
    return faults != 0;
}

Test(simulator_schedule, touching_freed_memory_is_found)
{
    static const touch_fn touches[] = {touch_by_fill, touch_by_reading, touch_by_kernel};
    for (size_t i = 0; i < 3; i++) {
        int found = 0, found_again = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            found += touch_freed(seed, touches[i], false);
            found_again += touch_freed(seed, touches[i], true);
        }
        cr_assert_gt(found, SEEDS / 2);
        cr_assert_gt(found_again, SEEDS / 2);
        cr_assert_lt(found, SEEDS, "some are early");
    }
}

Test(simulator_schedule, live_memory_is_no_fault)
{
    struct engine_device *device = seeded(1);
    struct engine_stream *stream = stream_of(device);
    for (int i = 0; i < 50; i++) {
        void *block = block_of(device, SIZE);
        cr_assert_eq(fill_bytes(stream, block, SIZE, 1), ENGINE_OK);
        cr_assert_eq(syncedmem_engine_free(device, block), ENGINE_OK);
    }
    cr_assert_eq(syncedmem_engine_faults(device), 0);
    syncedmem_engine_device_destroy(device);
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 100 };

static atomic_int inside;
static atomic_int faults;

static void kernel_alone(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)count;
    if (atomic_fetch_add(&inside, 1) != 0)
        atomic_fetch_add(&faults, 1);
    ++*(unsigned char *)addresses[0];
    atomic_fetch_sub(&inside, 1);
}

/* Three on one stream, waited for by an event; one more on another, after it. */
static void one_round(struct engine_device *device, struct engine_stream *shared)
{
    struct engine_stream *stream;
    struct engine_event *event = NULL;
    void *block = NULL;
    unsigned char back[10];
    bool ok = syncedmem_engine_stream_create(device, &stream) == ENGINE_OK;
    ok = ok && syncedmem_engine_alloc(device, 10, &block) == ENGINE_OK;
    const void *const address = block;
    ok = ok && fill_bytes(stream, block, 10, 1) == ENGINE_OK;
    for (int i = 0; i < 3; i++)
        ok = ok &&
             syncedmem_engine_launch(stream, kernel_alone, NULL, 0, &address, 1, NULL) == ENGINE_OK;
    ok = ok && syncedmem_engine_record(stream, &event) == ENGINE_OK;
    ok = ok && syncedmem_engine_stream_wait_event(shared, event) == ENGINE_OK;
    ok = ok &&
         syncedmem_engine_launch(shared, kernel_alone, NULL, 0, &address, 1, NULL) == ENGINE_OK;
    syncedmem_engine_event_release(event);
    syncedmem_engine_stream_release(stream);
    ok = ok && copy_bytes(shared, (struct side){NULL, back}, (struct side){device, block}, 10) ==
                   ENGINE_OK;
    ok = ok && back[0] == 5 && back[9] == 1;
    ok = syncedmem_engine_free(device, block) == ENGINE_OK && ok;
    if (!ok)
        atomic_fetch_add(&faults, 1);
}

struct hand {
    struct engine_device *device;
    struct engine_stream *shared;
};

static void *hammer(void *argument)
{
    const struct hand *hand = argument;
    for (int i = 0; i < ROUNDS; i++)
        one_round(hand->device, hand->shared);
    return NULL;
}

Test(simulator_schedule, threads_wait_together)
{
    struct hand hand = {.device = seeded(3)};
    pthread_t threads[THREADS];
    hand.shared = stream_of(hand.device);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, hammer, &hand), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(faults, 0);
    cr_assert_eq(syncedmem_engine_faults(hand.device), 0);
    cr_assert_eq(syncedmem_engine_memory_free(hand.device), MIB);
    syncedmem_engine_device_destroy(hand.device);
}

/* ---- The end of the process ---- */

Test(simulator_leave, nothing_begins_with_a_seed)
{
    struct engine_device *device = seeded(1);
    struct engine_stream *stream = stream_of(device);
    struct engine_event *event;
    char log[2] = "", *next = log;
    syncedmem_engine_leave();
    log_on(stream, &next, 1);
    cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_OK);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_PENDING);
    syncedmem_engine_event_release(event);
    syncedmem_engine_device_destroy(device);
    cr_assert_eq(next, log);
}

Test(simulator_leave, workers_begin_nothing)
{
    struct engine_device *device = device_with(MIB);
    struct engine_stream *stream = stream_of(device);
    char log[2] = "", *next = log;
    sem_t gate;
    hold_up(stream, &gate);
    log_on(stream, &next, 1);
    syncedmem_engine_leave();
    sem_post(&gate);
    syncedmem_engine_device_destroy(device);
    cr_assert_eq(next, log);
}

static void kernel_exit(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
    exit(7);
}

/* A kernel ends the process while another thread waits for what comes behind it. */
static void exit_in_kernel(uint64_t seed)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct engine_device *device = seeded(seed);
        struct engine_stream *stream = stream_of(device);
        atexit(syncedmem_engine_leave);
        alarm(30);
        syncedmem_engine_launch(stream, kernel_exit, NULL, 0, NULL, 0, NULL);
        syncedmem_engine_launch(stream, kernel_exit, NULL, 0, NULL, 0, NULL);
        syncedmem_engine_stream_synchronize(stream);
        _exit(1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %d", status);
}

Test(simulator_leave, a_kernel_may_end_the_process)
{
    exit_in_kernel(0);
    exit_in_kernel(1);
}
