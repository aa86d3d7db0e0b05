/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues, their order, and events. */
#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct engine_device *device;
static struct engine_stream *stream;

static void set_up(void)
{
    device = device_with(16 * MIB);
    stream = stream_of(device);
}

static void tear_down(void)
{
    syncedmem_engine_device_destroy(device);
}

struct step {
    int *log; /* log[0] is how many have come */
    int name;
};

static void kernel_log(void *arguments, void *const *addresses, size_t count)
{
    const struct step *step = arguments;
    (void)addresses;
    (void)count;
    step->log[++step->log[0]] = step->name;
}

static void log_on(struct engine_stream *where, int *log, int name)
{
    struct step step = {.log = log, .name = name};
    cr_assert_eq(syncedmem_engine_launch(where, kernel_log, &step, sizeof step, NULL, 0, NULL),
                 ENGINE_OK);
}

Test(simulator_stream, work_is_done_in_order, .init = set_up, .fini = tear_down)
{
    int log[101] = {0};
    for (int i = 1; i <= 100; i++)
        log_on(stream, log, i);
    cr_assert_eq(syncedmem_engine_stream_synchronize(stream), ENGINE_OK);
    cr_assert_eq(log[0], 100);
    for (int i = 1; i <= 100; i++)
        cr_assert_eq(log[i], i);
}

Test(simulator_stream, copies_fills_and_kernels_are_one_queue, .init = set_up, .fini = tear_down)
{
    unsigned char *block = block_of(device, MIB);
    unsigned char *host = malloc(MIB);
    struct engine_region region = {.length = MIB};
    struct engine_fill fill = {.to = block, .regions = &region, .count = 1};
    struct engine_copy copy = {
        .to = host, .from = block, .from_device = device, .regions = &region, .count = 1};
    for (int i = 0; i < 20; i++) {
        fill.value = (uint8_t)i;
        cr_assert_eq(syncedmem_engine_fill(stream, &fill, NULL), ENGINE_OK);
        cr_assert_eq(syncedmem_engine_copy(stream, &copy, NULL), ENGINE_OK);
        fill.value = 0xFF;
        cr_assert_eq(syncedmem_engine_fill(stream, &fill, NULL), ENGINE_OK);
    }
    syncedmem_engine_stream_synchronize(stream);
    cr_assert(all_are(host, MIB, 19));
    free(host);
}

Test(simulator_stream, the_default_one_is_made_once, .init = set_up, .fini = tear_down)
{
    struct engine_stream *first;
    struct engine_stream *second;
    cr_assert_eq(syncedmem_engine_stream_default(device, &first), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_stream_default(device, &second), ENGINE_OK);
    cr_assert_eq(first, second);
    cr_assert_neq(first, stream);
}

Test(simulator_stream, others_go_on_while_one_stands_still, .init = set_up, .fini = tear_down)
{
    struct engine_stream *busy = stream_of(device);
    int log[2] = {0};
    sem_t gate;
    hold_up(busy, &gate);
    log_on(stream, log, 5);
    syncedmem_engine_stream_synchronize(stream);
    cr_assert_eq(log[1], 5);
    sem_post(&gate);
    syncedmem_engine_stream_synchronize(busy);
}

Test(simulator_stream, release_does_not_drop_work, .init = set_up, .fini = tear_down)
{
    int log[11] = {0};
    struct engine_event *event;
    sem_t gate;
    hold_up(stream, &gate);
    for (int i = 1; i <= 10; i++)
        log_on(stream, log, i);
    cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_OK);
    syncedmem_engine_stream_release(stream);
    cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_PENDING);
    sem_post(&gate);
    cr_assert_eq(outcome(event), ENGINE_OK);
    cr_assert_eq(log[0], 10);
    cr_assert_eq(log[10], 10);
}

static int threads_now(void)
{
    char line[256];
    int threads = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "Threads:", 8) == 0)
            threads = atoi(line + 8);
    fclose(status);
    return threads;
}

Test(simulator_stream, released_ones_leave_no_threads, .init = set_up, .fini = tear_down)
{
    int before = threads_now();
    for (int i = 0; i < 100; i++)
        syncedmem_engine_stream_release(stream_of(device));
    /* The workers end by themselves; that takes them a moment. */
    for (int i = 0; i < 5000 && threads_now() > before; i++)
        usleep(1000);
    cr_assert_eq(threads_now(), before);
}

static void kernel_mask(void *arguments, void *const *addresses, size_t count)
{
    (void)addresses;
    (void)count;
    pthread_sigmask(SIG_SETMASK, NULL, arguments);
}

static void kernel_name(void *arguments, void *const *addresses, size_t count)
{
    (void)addresses;
    (void)count;
    pthread_getname_np(pthread_self(), arguments, 16);
}

Test(simulator_stream, workers_take_no_signals_and_have_a_name, .init = set_up, .fini = tear_down)
{
    sigset_t mask;
    sigset_t own;
    char name[16] = "";
    sigemptyset(&mask);
    syncedmem_engine_launch(stream, kernel_mask, &mask, 0, NULL, 0, NULL);
    syncedmem_engine_launch(stream, kernel_name, name, 0, NULL, 0, NULL);
    syncedmem_engine_stream_synchronize(stream);
    cr_assert_eq(sigismember(&mask, SIGINT), 1);
    cr_assert_eq(sigismember(&mask, SIGALRM), 1);
    cr_assert_str_eq(name, "syncedmem-sim");
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    cr_assert_eq(sigismember(&own, SIGINT), 0);
}

/* ---- Events ---- */

Test(simulator_event, is_pending_until_the_work_has_ended, .init = set_up, .fini = tear_down)
{
    struct engine_event *event;
    sem_t gate;
    hold_up(stream, &gate);
    cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_OK);
    usleep(5000);
    cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_PENDING);
    sem_post(&gate);
    cr_assert_eq(syncedmem_engine_event_wait(event), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_OK);
    cr_assert_eq(outcome(event), ENGINE_OK);
}

Test(simulator_event, of_an_idle_stream_has_ended, .init = set_up, .fini = tear_down)
{
    struct engine_event *event;
    cr_assert_eq(syncedmem_engine_record(stream, &event), ENGINE_OK);
    cr_assert_eq(outcome(event), ENGINE_OK);
}

Test(simulator_event, holds_another_stream_back, .init = set_up, .fini = tear_down)
{
    struct engine_stream *second = stream_of(device);
    struct engine_event *event;
    int log[4] = {0};
    sem_t gate;
    hold_up(stream, &gate);
    log_on(stream, log, 1);
    syncedmem_engine_record(stream, &event);
    cr_assert_eq(syncedmem_engine_stream_wait_event(second, event), ENGINE_OK);
    syncedmem_engine_event_release(event);
    log_on(second, log, 2);
    usleep(5000);
    sem_post(&gate);
    syncedmem_engine_stream_synchronize(second);
    cr_assert_eq(log[0], 2);
    cr_assert_eq(log[1], 1);
    cr_assert_eq(log[2], 2);
}

Test(simulator_event, holds_back_what_comes_later_only, .init = set_up, .fini = tear_down)
{
    struct engine_stream *second = stream_of(device);
    struct engine_event *pending;
    struct engine_event *before;
    struct engine_event *after;
    sem_t gate;
    hold_up(stream, &gate);
    syncedmem_engine_record(stream, &pending);
    cr_assert_eq(fill_bytes(second, block_of(device, 10), 10, 1), ENGINE_OK);
    syncedmem_engine_record(second, &before);
    syncedmem_engine_stream_wait_event(second, pending);
    syncedmem_engine_record(second, &after);
    cr_assert_eq(outcome(before), ENGINE_OK);
    cr_assert_eq(syncedmem_engine_event_query(after), ENGINE_PENDING);
    sem_post(&gate);
    cr_assert_eq(outcome(after), ENGINE_OK);
    cr_assert_eq(outcome(pending), ENGINE_OK);
}

Test(simulator_event, crosses_devices_and_outlives_them)
{
    struct engine_device *left = device_with(MIB);
    struct engine_device *right = device_with(MIB);
    struct engine_stream *sender = stream_of(left);
    struct engine_stream *receiver = stream_of(right);
    struct engine_event *sent;
    struct engine_event *received;
    sem_t gate;
    hold_up(sender, &gate);
    syncedmem_engine_record(sender, &sent);
    syncedmem_engine_stream_wait_event(receiver, sent);
    syncedmem_engine_record(receiver, &received);
    cr_assert_eq(syncedmem_engine_event_query(received), ENGINE_PENDING);
    sem_post(&gate);
    syncedmem_engine_device_destroy(left);
    syncedmem_engine_device_destroy(right);
    cr_assert_eq(outcome(sent), ENGINE_OK);
    cr_assert_eq(outcome(received), ENGINE_OK);
}

static void *wait_for(void *event)
{
    return (void *)(uintptr_t)syncedmem_engine_event_wait(event);
}

Test(simulator_event, wakes_all_who_wait, .init = set_up, .fini = tear_down)
{
    pthread_t threads[4];
    struct engine_event *event;
    sem_t gate;
    hold_up(stream, &gate);
    syncedmem_engine_record(stream, &event);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, wait_for, event);
    usleep(5000);
    sem_post(&gate);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        cr_assert_eq((uintptr_t)result, ENGINE_OK);
    }
    syncedmem_engine_event_release(event);
}

Test(simulator_event, counts_its_references, .init = set_up, .fini = tear_down)
{
    struct engine_event *event;
    syncedmem_engine_record(stream, &event);
    syncedmem_engine_event_retain(event);
    syncedmem_engine_event_release(event);
    cr_assert_eq(syncedmem_engine_event_query(event), ENGINE_OK);
    syncedmem_engine_event_release(event);
}
