/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that is lost, and comes back: with worker threads and with a seed. */
#include "support.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

TestSuite(simulator_loss, .timeout = 120);

enum { SIZE = 1000 };

static const uint64_t modes[] = {0, 1, 2, 3, 4, 5};

enum { MODES = sizeof modes / sizeof modes[0] };

static struct engine_device *device_in(uint64_t seed)
{
    struct engine_settings settings = {.memory = 8 * MIB, .seed = seed};
    return device_from(&settings);
}

static void kernel_count(void *arguments, void *const *addresses, size_t count)
{
    (void)addresses;
    (void)count;
    atomic_fetch_add((atomic_int *)arguments, 1);
}

static enum engine_result launch(struct engine_stream *stream, atomic_int *counter,
                                 struct engine_event **event)
{
    return syncedmem_engine_launch(stream, kernel_count, counter, 0, NULL, 0, event);
}

static enum engine_result fill_async(struct engine_stream *stream, void *block,
                                     struct engine_event **event)
{
    struct engine_region region = {.length = SIZE};
    struct engine_fill fill = {.to = block, .regions = &region, .count = 1, .value = 1};
    return syncedmem_engine_fill(stream, &fill, event);
}

/* ---- What is refused ---- */

static void stream_is_lost(struct engine_stream *stream, struct engine_device *device, void *block)
{
    struct engine_event *event = (void *)&event;
    struct engine_region region = {.length = SIZE};
    struct engine_fill fill = {.to = block, .regions = &region, .count = 1};
    struct engine_copy copy = {
        .to = block, .from = &fill, .to_device = device, .regions = &region, .count = 1};
    cr_assert_eq(launch(stream, NULL, &event), ENGINE_LOST);
    cr_assert_null(event);
    cr_assert_eq(syncedmem_engine_fill(stream, &fill, &event), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_fill_wait(stream, &fill), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_copy(stream, &copy, &event), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_copy_wait(stream, &copy), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_LOST);
    cr_assert_null(event);
    cr_assert_eq(syncedmem_engine_record(stream, NULL), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_stream_synchronize(stream), ENGINE_LOST);
}

static void device_is_lost(struct engine_device *device)
{
    void *block = &block;
    struct engine_stream *stream = (void *)&stream;
    cr_assert(syncedmem_engine_is_lost(device));
    cr_assert_eq(syncedmem_engine_alloc(device, SIZE, &block), ENGINE_LOST);
    cr_assert_null(block);
    cr_assert_eq(syncedmem_engine_stream_create(device, &stream), ENGINE_LOST);
    cr_assert_null(stream);
    cr_assert_eq(syncedmem_engine_stream_default(device, &stream), ENGINE_LOST);
    cr_assert_null(stream);
    cr_assert_eq(syncedmem_engine_pin(device, &block, sizeof block), ENGINE_LOST);
}

static void check_loss(uint64_t seed)
{
    struct engine_device *device = device_in(seed), *other = device_in(seed);
    struct engine_stream *stream = stream_of(device), *sender = stream_of(other), *common, *renewed;
    struct engine_event *event;
    void *block = block_of(device, SIZE), *mine = block_of(other, SIZE), *start;
    size_t size;
    char host[SIZE];
    cr_assert_eq(syncedmem_engine_pin(device, host, SIZE), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_stream_default(device, &common), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_restore(device), ENGINE_REFUSED);
    cr_assert_eq(syncedmem_engine_record(sender, &event), ENGINE_OK);
    for (int i = 0; i < 2; i++) {
        syncedmem_engine_lose(device);
        cr_assert_eq(syncedmem_engine_losses(device), 1);
        device_is_lost(device);
        stream_is_lost(stream, device, block);
        stream_is_lost(common, device, block);
        cr_assert_eq(syncedmem_engine_stream_wait_event(stream, event), ENGINE_LOST);
        cr_assert(!syncedmem_engine_locate(device, block, &start, &size));
    }
    /* Another device's streams work on, but not with its memory. */
    cr_assert_eq(fill_bytes(sender, mine, SIZE, 1), ENGINE_OK);
    cr_assert_eq(copy_bytes(sender, (struct side){device, block}, (struct side){other, mine}, SIZE),
                 ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_losses(other), 0);

    cr_assert_eq(syncedmem_engine_restore(device), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_restore(device), ENGINE_REFUSED);
    cr_assert(!syncedmem_engine_is_lost(device));
    cr_assert_eq(syncedmem_engine_losses(device), 1);
    cr_assert_eq(syncedmem_engine_memory_free(device), syncedmem_engine_memory_total(device));
    cr_assert_eq(syncedmem_engine_pinned_bytes(device), 0);
    cr_assert(!syncedmem_engine_owns(device, block));
    cr_assert(!syncedmem_engine_locate(device, block, &start, &size));
    cr_assert_eq(syncedmem_engine_free(device, block), ENGINE_BAD_ADDRESS);
    void *fresh = block_of(device, SIZE);
    stream_is_lost(stream, device, fresh);
    stream_is_lost(common, device, fresh);
    cr_assert_eq(syncedmem_engine_stream_default(device, &renewed), ENGINE_OK);
    cr_assert_neq(renewed, common);
    cr_assert_eq(fill_bytes(renewed, fresh, SIZE, 1), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_pin(device, host, SIZE), ENGINE_OK);
    syncedmem_engine_stream_release(stream);
    syncedmem_engine_event_release(event);
    syncedmem_engine_device_destroy(device);
    syncedmem_engine_device_destroy(other);
}

Test(simulator_loss, refuses_all_until_it_is_back)
{
    for (int i = 0; i < MODES; i++)
        check_loss(modes[i]);
}

Test(simulator_loss, may_happen_often)
{
    for (int i = 0; i < MODES; i++) {
        struct engine_device *device = device_in(modes[i]);
        for (uint64_t loss = 1; loss <= 20; loss++) {
            struct engine_stream *stream;
            cr_assert_eq(syncedmem_engine_stream_default(device, &stream), ENGINE_OK);
            cr_assert_eq(fill_async(stream, block_of(device, SIZE), NULL), ENGINE_OK);
            syncedmem_engine_lose(device);
            cr_assert_eq(syncedmem_engine_losses(device), loss);
            cr_assert_eq(syncedmem_engine_restore(device), ENGINE_OK);
        }
        syncedmem_engine_device_destroy(device);
    }
}

static int count_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    cr_assert_not_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* Streams that no one can use any more, and that their holders still have, hold no threads. */
Test(simulator_loss, takes_the_threads_along)
{
    struct engine_device *device = device_in(modes[0]);
    struct engine_stream *streams[3];
    for (int i = 0; i < 3; i++) {
        streams[i] = stream_of(device);
        cr_assert_eq(fill_async(streams[i], block_of(device, SIZE), NULL), ENGINE_OK);
    }
    const int with_them = count_threads();
    while (count_threads() > with_them - 3) { /* a worker takes its time to leave */
        syncedmem_engine_lose(device);
        cr_assert_eq(syncedmem_engine_restore(device), ENGINE_OK);
    }
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(fill_async(streams[i], NULL, NULL), ENGINE_LOST);
        syncedmem_engine_stream_release(streams[i]);
    }
    syncedmem_engine_device_destroy(device);
}

/* ---- What is queued, and what runs ---- */

static void *wait_for(void *event)
{
    return (void *)(uintptr_t)syncedmem_engine_event_wait(event);
}

Test(simulator_loss, what_is_queued_never_runs_and_what_runs_finishes)
{
    struct engine_device *device = device_in(0);
    struct engine_stream *stream = stream_of(device);
    struct engine_event *kernel, *fill, *end;
    atomic_int counter = 0;
    pthread_t waiter;
    void *result;
    sem_t started, gate;
    hold_up(stream, &started);
    hold_up(stream, &gate);
    cr_assert_eq(launch(stream, &counter, &kernel), ENGINE_OK);
    cr_assert_eq(fill_async(stream, block_of(device, SIZE), &fill), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_record(stream, &end), ENGINE_OK);
    cr_assert_eq(pthread_create(&waiter, NULL, wait_for, fill), 0);
    /* The first kernel runs or not; the second does not yet. */
    syncedmem_engine_lose(device);
    cr_assert_eq(syncedmem_engine_event_query(kernel), ENGINE_LOST);
    pthread_join(waiter, &result);
    cr_assert_eq((uintptr_t)result, ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_event_query(end), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_restore(device), ENGINE_OK);
    sem_post(&started);
    sem_post(&gate);
    cr_assert_eq(syncedmem_engine_stream_synchronize(stream), ENGINE_LOST);
    cr_assert_eq(counter, 0);
    syncedmem_engine_event_release(kernel);
    syncedmem_engine_event_release(fill);
    syncedmem_engine_event_release(end);
    syncedmem_engine_device_destroy(device);
}

/* A kernel that says it has begun, and then waits. */
struct pair {
    sem_t begun, gate;
};

static void kernel_write_late(void *arguments, void *const *addresses, size_t count)
{
    struct pair *pair = arguments;
    sem_post(&pair->begun);
    sem_wait(&pair->gate);
    for (size_t i = 0; i < count; i++)
        memset(addresses[i], 9, SIZE);
}

Test(simulator_loss, a_kernel_that_runs_writes_to_no_new_block)
{
    struct engine_device *device = device_in(0);
    struct engine_stream *stream = stream_of(device);
    struct engine_event *event;
    struct pair pair;
    const void *block = block_of(device, SIZE);
    sem_init(&pair.begun, 0, 0);
    sem_init(&pair.gate, 0, 0);
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_write_late, &pair, 0, &block, 1, &event),
                 ENGINE_OK);
    sem_wait(&pair.begun);
    syncedmem_engine_lose(device);
    cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_PENDING, "it runs");
    cr_assert_eq(syncedmem_engine_restore(device), ENGINE_OK);
    unsigned char *fresh = block_of(device, 8 * MIB);
    sem_post(&pair.gate);
    cr_assert_eq(outcome(event), ENGINE_OK);
    cr_assert(all_are(syncedmem_engine_translate(device, fresh), SIZE, 0xCD));
    cr_assert_eq(syncedmem_engine_stream_synchronize(stream), ENGINE_LOST);
    syncedmem_engine_device_destroy(device);
}

/* It waits for another device's event, which does not come. */
Test(simulator_loss, ends_a_stream_that_waits_for_an_event)
{
    struct engine_device *device = device_in(0), *other = device_in(0);
    struct engine_stream *stream = stream_of(device), *busy = stream_of(other);
    struct engine_event *event, *behind;
    sem_t gate;
    hold_up(busy, &gate);
    cr_assert_eq(syncedmem_engine_record(busy, &event), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_stream_wait_event(stream, event), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_record(stream, &behind), ENGINE_OK);
    usleep(2000); /* so that the worker waits, mostly */
    syncedmem_engine_lose(device);
    cr_assert_eq(outcome(behind), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_stream_synchronize(stream), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_PENDING);
    sem_post(&gate);
    cr_assert_eq(outcome(event), ENGINE_OK);
    syncedmem_engine_device_destroy(device);
    syncedmem_engine_device_destroy(other);
}

/* The copy is queued on a stream of the one, when the other is lost. */
Test(simulator_loss, reaches_copies_of_other_devices)
{
    for (int restored = 0; restored < 2; restored++) {
        struct engine_device *device = device_in(0), *other = device_in(0);
        struct engine_stream *sender = stream_of(other);
        struct engine_region region = {.length = SIZE};
        struct engine_copy copy = {.to = block_of(device, SIZE),
                                   .from = block_of(other, SIZE),
                                   .to_device = device,
                                   .from_device = other,
                                   .regions = &region,
                                   .count = 1};
        struct engine_event *event;
        sem_t gate;
        hold_up(sender, &gate);
        cr_assert_eq(syncedmem_engine_copy(sender, &copy, &event), ENGINE_OK);
        syncedmem_engine_lose(device);
        if (restored)
            cr_assert_eq(syncedmem_engine_restore(device), ENGINE_OK);
        sem_post(&gate);
        cr_assert_eq(outcome(event), ENGINE_LOST);
        cr_assert_eq(syncedmem_engine_stream_synchronize(sender), ENGINE_OK);
        syncedmem_engine_device_destroy(device);
        syncedmem_engine_device_destroy(other);
    }
}

Test(simulator_loss, with_a_seed_nothing_queued_runs_either)
{
    int lost = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct engine_device *device = device_in(seed);
        struct engine_stream *stream = stream_of(device), *released = stream_of(device);
        struct engine_event *event, *last;
        atomic_int counter = 0;
        for (int i = 0; i < 3; i++)
            cr_assert_eq(launch(stream, &counter, NULL), ENGINE_OK);
        cr_assert_eq(launch(stream, &counter, &event), ENGINE_OK);
        cr_assert_eq(launch(released, &counter, &last), ENGINE_OK);
        syncedmem_engine_stream_release(released);
        int before = counter;
        syncedmem_engine_lose(device);
        lost += syncedmem_engine_event_query(event) == ENGINE_LOST;
        cr_assert_neq(outcome(event), ENGINE_PENDING);
        cr_assert_neq(outcome(last), ENGINE_PENDING);
        cr_assert_eq(syncedmem_engine_stream_synchronize(stream), ENGINE_LOST);
        cr_assert_eq(counter, before);
        syncedmem_engine_device_destroy(device);
    }
    cr_assert_gt(lost, 20);
}

/* ---- On demand ---- */

static enum engine_result operate(struct engine_device *device, struct engine_stream *stream,
                                  void *block, int which)
{
    static char host[SIZE];
    static atomic_int counter;
    void *fresh;
    switch (which % 4) {
    case 0:
        return syncedmem_engine_alloc(device, 1, &fresh);
    case 1:
        return fill_bytes(stream, block, SIZE, 1);
    case 2:
        return copy_bytes(stream, (struct side){device, block}, (struct side){NULL, host}, SIZE);
    default:
        return launch(stream, &counter, NULL);
    }
}

/* Each kind of operation is the n-th in turn. */
static void check_nth(uint64_t seed, int nth, bool by_settings)
{
    struct engine_settings settings = {.memory = MIB, .seed = seed};
    if (by_settings)
        settings.fail[ENGINE_FAIL_DEVICE] = (uint64_t)nth + 1; /* the block is the first */
    struct engine_device *device = device_from(&settings);
    struct engine_stream *stream = stream_of(device);
    void *block = block_of(device, SIZE);
    if (!by_settings)
        syncedmem_engine_fail(device, ENGINE_FAIL_DEVICE, (uint64_t)nth);
    for (int i = 1; i < nth; i++)
        cr_assert_eq(operate(device, stream, block, i), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_losses(device), 0);
    cr_assert_eq(operate(device, stream, block, nth), ENGINE_LOST);
    cr_assert_eq(syncedmem_engine_losses(device), 1);
    device_is_lost(device);
    cr_assert_eq(syncedmem_engine_restore(device), ENGINE_OK);
    block = block_of(device, SIZE);
    stream = stream_of(device);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(operate(device, stream, block, i), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_losses(device), 1);
    syncedmem_engine_device_destroy(device);
}

Test(simulator_loss, comes_with_the_nth_operation)
{
    for (int nth = 1; nth <= 8; nth++) {
        check_nth(0, nth, false);
        check_nth(0, nth, true);
        check_nth(1, nth, false);
    }
}

/* ---- Under load ---- */

enum { THREADS = 4, LOSSES = 40 };

struct load {
    struct engine_device *devices[2];
    atomic_bool over;
    atomic_int wrong;
    atomic_int worked;
    atomic_int lost;
};

/*
 * A round on two devices with host memory of its own, which is freed as soon as the round has
 * failed: nothing may use it any more.
 */
static enum engine_result load_round(struct load *load, int turn, unsigned char *host)
{
    struct engine_device *device = load->devices[turn % 2], *other = load->devices[1 - turn % 2];
    struct engine_stream *stream;
    struct engine_event *event = NULL;
    void *here = NULL, *there = NULL;
    enum engine_result result = syncedmem_engine_stream_create(device, &stream);
    if (result != ENGINE_OK)
        return result;
    struct engine_region region = {.length = 64 * KIB};
    struct engine_copy down = {.to = host, .regions = &region, .count = 1, .from_device = other};
    result = syncedmem_engine_alloc(device, 64 * KIB, &here);
    if (result == ENGINE_OK)
        result = syncedmem_engine_alloc(other, 64 * KIB, &there);
    if (result == ENGINE_OK)
        result = fill_bytes(stream, here, 64 * KIB, (uint8_t)turn);
    if (result == ENGINE_OK)
        result =
            copy_bytes(stream, (struct side){other, there}, (struct side){device, here}, 64 * KIB);
    down.from = there;
    if (result == ENGINE_OK)
        result = syncedmem_engine_copy(stream, &down, &event);
    syncedmem_engine_stream_release(stream);
    if (event != NULL)
        result = outcome(event);
    /* Else they may be another's by now. */
    if (result == ENGINE_OK) {
        syncedmem_engine_free(device, here);
        syncedmem_engine_free(other, there);
    }
    return result;
}

static void *load_worker(void *argument)
{
    struct load *load = argument;
    for (int turn = 0; !atomic_load(&load->over); turn++) {
        unsigned char *host = malloc(64 * KIB);
        enum engine_result result = load_round(load, turn, host);
        if (result == ENGINE_OK && !all_are(host, 64 * KIB, (unsigned char)turn))
            atomic_fetch_add(&load->wrong, 1);
        if (result != ENGINE_OK && result != ENGINE_LOST && result != ENGINE_BAD_ADDRESS)
            atomic_fetch_add(&load->wrong, 1);
        atomic_fetch_add(result == ENGINE_OK ? &load->worked : &load->lost, 1);
        free(host);
        /* What a round that failed had on the other device is gone until that one is lost, too: with
         * too many of them it would be full. */
        if (result != ENGINE_OK)
            usleep(2000);
    }
    return NULL;
}

static void lose_in_turn(struct load *load)
{
    for (int i = 0; i < LOSSES; i++) {
        int before = atomic_load(&load->worked);
        while (atomic_load(&load->worked) < before + 4)
            usleep(100);
        before = atomic_load(&load->lost);
        syncedmem_engine_lose(load->devices[i % 2]);
        while (atomic_load(&load->lost) < before + 4)
            usleep(100);
        cr_assert_eq(syncedmem_engine_restore(load->devices[i % 2]), ENGINE_OK);
    }
}

static void check_load(uint64_t seed)
{
    struct load load = {.devices = {device_in(seed), device_in(seed)}};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, load_worker, &load), 0);
    lose_in_turn(&load);
    atomic_store(&load.over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(load.wrong, 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(syncedmem_engine_losses(load.devices[i]), LOSSES / 2);
        syncedmem_engine_device_destroy(load.devices[i]);
    }
}

Test(simulator_loss, under_load)
{
    check_load(0);
}

Test(simulator_loss, under_load_with_a_seed)
{
    check_load(17);
}
