/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers of other kinds, and at bad moments: the table of the simulator with a function of the
 * test's own in it.
 */
#include "base/epoch.h"
#include "base/error.h"
#include "places/place.h"
#include "processes.h"

TestSuite(drivers, .init = sim_setup, .timeout = 120);

enum { SIZE = 4096, BEFORE = 3, AFTER = 4, LATER = 5 };

static struct backend table;         /* what the hooked device is asked by */
static const struct backend *driver; /* the simulator's own */

static void hook(unsigned device)
{
    driver = sim(device)->backend;
    table = *driver;
    sim(device)->backend = &table;
}

/* Functions of the simulator's own know a device by its table. */
static void unhook(unsigned device)
{
    sim(device)->backend = driver;
}

static syncedmem_buffer *make_at_host(void)
{
    syncedmem_buffer *buffer;
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_set_home(buffer, sim(0)));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, BEFORE);
    return buffer;
}

static syncedmem_buffer *make_at_device(void)
{
    void *pointer;
    syncedmem_buffer *buffer = make_at_host();
    assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
    device_pattern_write(0, pointer, SIZE, AFTER);
    return buffer;
}

static void release_at_the_end(syncedmem_buffer *buffer, syncedmem_stream *stream)
{
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
}

/* ---- Two kinds of drivers ---- */

/* No stream can wait for an event of another kind: the call waits itself. */
Test(drivers, of_two_kinds)
{
    struct gate gate;
    syncedmem_stream *stream;
    syncedmem_token_t token;
    void *pointer;
    syncedmem_buffer *buffer = make_at_device();
    hook(1);
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, stream));
    gate_open_later(&gate, LATER);
    assert_ok(
        syncedmem_begin(buffer, sim(1), SYNCEDMEM_READ, 0, SIZE, NULL, &pointer, NULL, &token));
    cr_assert(gate_is_open(&gate));
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_STREAM_WAITS), 0);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_WAITS), 1);
    unhook(1);
    cr_assert(device_pattern_is(1, pointer, SIZE, AFTER));
    assert_ok(syncedmem_end(buffer, token));
    gate_join(&gate);
    release_at_the_end(buffer, stream);
}

/* ---- A device goes and comes back in the middle of a call ---- */

static bool loses;

static syncedmem_status_t lose_first(struct backend_device *device,
                                     struct backend_stream **out_stream)
{
    if (loses) {
        loses = false;
        unhook(0);
        (void)syncedmem_sim_lose(sim(0));
        (void)syncedmem_sim_restore(sim(0));
    }
    return driver->stream_default(device, out_stream);
}

/* Its streams are new ones, its memory is not known: no address of before may reach the driver's user. */
static void lose_in_a_call(syncedmem_buffer *buffer, bool to_device)
{
    const void *pointer = &loses;
    hook(0);
    table.stream_default = lose_first;
    loses = true;
    assert_status(to_device ? syncedmem_gpu_data(buffer, &pointer)
                            : syncedmem_cpu_data(buffer, &pointer),
                  SYNCEDMEM_DEVICE_LOST);
    cr_assert(!loses);
    unhook(0);
    cr_assert_null(pointer);
    cr_assert(contains(syncedmem_last_error(), "lost"), "%s", syncedmem_last_error());
}

Test(drivers, device_is_lost_by_the_time_of_an_upload)
{
    const void *pointer;
    void *writing;
    syncedmem_buffer *buffer = make_at_device();
    assert_ok(syncedmem_mutable_cpu_data(buffer, &writing));
    lose_in_a_call(buffer, true);
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, AFTER));
    (void)syncedmem_gpu_data(buffer, &pointer); /* may tell the loss once more */
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, AFTER));
    syncedmem_release(buffer);
}

Test(drivers, device_is_lost_by_the_time_of_a_download)
{
    const void *pointer;
    syncedmem_buffer *buffer = make_at_device();
    lose_in_a_call(buffer, false);
    for (int i = 0; i < 3; i++) {
        assert_status(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_DATA_LOST);
    }
    syncedmem_release(buffer);
}

/* ---- A default stream that cannot be had ---- */

static int refusals;

static syncedmem_status_t refuse_stream(struct backend_device *device,
                                        struct backend_stream **out_stream)
{
    if (refusals > 0) {
        refusals--;
        return syncedmem_error(SYNCEDMEM_OUT_OF_HOST_MEMORY, "no memory for a stream");
    }
    return driver->stream_default(device, out_stream);
}

/* It cannot be told by an event when kernels are done with the block, so that is waited for. */
Test(drivers, release_without_a_default_stream)
{
    struct gate gate;
    syncedmem_stream *stream;
    const uint64_t free_before = device_memory_free(0);
    syncedmem_buffer *buffer = make_at_device();
    assert_ok(syncedmem_stream_default(sim(0), &stream));
    gate_put(&gate, stream);
    hook(0);
    table.stream_default = refuse_stream;
    refusals = 1;
    gate_open_later(&gate, LATER);
    assert_status(syncedmem_begin(NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL),
                  SYNCEDMEM_INVALID_ARGUMENT);
    char said[200];
    snprintf(said, sizeof said, "%s", syncedmem_last_error());
    syncedmem_release(buffer);
    cr_assert(gate_is_open(&gate));
    cr_assert_eq(refusals, 0);
    cr_assert_str_eq(syncedmem_last_error(), said);
    cr_assert_eq(device_memory_free(0), free_before);
    gate_join(&gate);
    syncedmem_stream_release(stream);
}

/* ---- A block that was in use when its device was lost ---- */

static int frees;

static void count_free(struct backend_device *device, void *memory)
{
    frees++;
    driver->free(device, memory);
}

/* The device that came back knows nothing of it, and may have given the address to someone else. */
Test(drivers, blocks_of_before_a_loss_are_not_freed)
{
    struct gate gate;
    syncedmem_stream *stream;
    const void *reading;
    syncedmem_buffer *buffer = make_at_device(), *another = make_at_host();
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, stream));
    syncedmem_release(buffer);
    gate_open_later(&gate, LATER);
    assert_ok(syncedmem_sim_lose(sim(0)));
    gate_join(&gate);
    assert_ok(syncedmem_sim_restore(sim(0)));
    hook(0);
    table.free = count_free;
    assert_ok(syncedmem_gpu_data(another, &reading)); /* looks for blocks that are free by now */
    unhook(0);
    cr_assert_eq(frees, 0);
    cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES), SIZE);
    release_at_the_end(another, stream);
}

/* ---- The process begins to end while a call waits ---- */

static bool ends;
static int calls_after_end;

static bool end_then_say_not_yet(struct backend_event *event, syncedmem_status_t *out_status)
{
    if (ends) {
        ends = false;
        atomic_fetch_add(&syncedmem_era, 1);
        syncedmem_epoch_advance();
        return false;
    }
    if (sim(1)->era != era_now()) {
        calls_after_end++;
    }
    return driver->event_done(event, out_status);
}

static syncedmem_status_t count_wait(struct backend_event *event)
{
    calls_after_end += sim(1)->era != era_now();
    return driver->event_wait(event);
}

static void count_release(struct backend_event *event)
{
    calls_after_end += sim(1)->era != era_now();
    driver->event_release(event);
}

/* The gate never opens: whoever asks the driver hangs, or is counted. */
static syncedmem_buffer *make_for_the_end(syncedmem_stream **out_stream)
{
    static struct gate gate;
    syncedmem_buffer *buffer;
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=4m"));
    (void)sim(1);
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_fill(buffer, 0, SIZE, 1));
    CHILD_OK(syncedmem_stream_create(sim(0), out_stream));
    gate_put(&gate, *out_stream);
    hook(0);
    table.event_done = end_then_say_not_yet;
    table.event_wait = count_wait;
    table.event_release = count_release;
    return buffer;
}

static void child_waits_at_the_end(void)
{
    syncedmem_stream *stream;
    const void *pointer;
    syncedmem_buffer *buffer = make_for_the_end(&stream);
    CHILD_OK(syncedmem_prefetch(buffer, sim(0), 0, SIZE, stream));
    ends = true;
    (void)syncedmem_wait(buffer);
    CHILD_CHECK(!ends);
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(*(const unsigned char *)pointer == 1);
    syncedmem_release(buffer);
    CHILD_CHECK(calls_after_end == 0);
}

Test(drivers_end, no_call_follows, .timeout = 60)
{
    cr_assert_eq(run_in_child(child_waits_at_the_end), 0);
}

/* What was under way from the device has not arrived, and never will. */
static void child_pulls_at_the_end(void)
{
    syncedmem_stream *stream;
    syncedmem_token_t token;
    void *writing;
    const void *pointer;
    size_t there;
    syncedmem_buffer *buffer = make_for_the_end(&stream);
    CHILD_OK(
        syncedmem_begin(buffer, sim(0), SYNCEDMEM_WRITE, 0, SIZE, stream, &writing, NULL, &token));
    CHILD_OK(syncedmem_end(buffer, token));
    CHILD_OK(syncedmem_prefetch(buffer, syncedmem_host(), 0, SIZE, stream));
    ends = true;
    for (int i = 0; i < 2; i++) {
        CHILD_STATUS(syncedmem_cpu_data(buffer, &pointer), SYNCEDMEM_FORKED);
    }
    CHILD_OK(syncedmem_valid_bytes(buffer, syncedmem_host(), 0, SIZE, &there));
    CHILD_CHECK(there == 0);
    syncedmem_release(buffer);
    CHILD_CHECK(calls_after_end == 0);
}

Test(drivers_end, nothing_arrives_any_more, .timeout = 60)
{
    cr_assert_eq(run_in_child(child_pulls_at_the_end), 0);
}

/* ---- A process is forked while a driver answers ---- */

static atomic_bool holds, is_held;

static bool hold_then_ask(struct backend_event *event, syncedmem_status_t *out_status)
{
    if (atomic_exchange(&holds, false)) {
        atomic_store(&is_held, true);
        while (atomic_load(&is_held)) {
            sleep_ms(1);
        }
    }
    return driver->event_done(event, out_status);
}

/* A device of another driver, which the child is the first to open: memory, and events that end when
 * they are waited for. */
static struct {
    char memory[SIZE];
    bool has_ended;
    bool was_freed_in_use;
    int frees, events;
} own;

static uint64_t own_losses(const struct backend_device *device)
{
    (void)device;
    return 0;
}

static syncedmem_status_t own_alloc(struct backend_device *device, size_t size, void **out_memory)
{
    (void)device;
    *out_memory = own.memory;
    return size <= sizeof own.memory ? SYNCEDMEM_OK : SYNCEDMEM_OUT_OF_DEVICE_MEMORY;
}

static void own_free(struct backend_device *device, void *memory)
{
    (void)device;
    (void)memory;
    own.frees++;
    own.was_freed_in_use |= !own.has_ended;
}

static syncedmem_status_t own_stream(struct backend_device *device,
                                     struct backend_stream **out_stream)
{
    (void)device;
    *out_stream = (struct backend_stream *)(void *)&own;
    return SYNCEDMEM_OK;
}

static syncedmem_status_t own_record(struct backend_stream *stream,
                                     struct backend_event **out_event)
{
    (void)stream;
    own.events++;
    *out_event = (struct backend_event *)(void *)&own;
    return SYNCEDMEM_OK;
}

static bool own_done(struct backend_event *event, syncedmem_status_t *out_status)
{
    (void)event;
    if (own.has_ended && out_status != NULL) {
        *out_status = SYNCEDMEM_OK;
    }
    return own.has_ended;
}

static syncedmem_status_t own_wait(struct backend_event *event)
{
    (void)event;
    own.has_ended = true;
    return SYNCEDMEM_OK;
}

static void own_release(struct backend_event *event)
{
    (void)event;
    own.events--;
}

static const struct backend own_table = {.name = "own",
                                         .losses = own_losses,
                                         .alloc = own_alloc,
                                         .free = own_free,
                                         .stream_default = own_stream,
                                         .record = own_record,
                                         .event_done = own_done,
                                         .event_wait = own_wait,
                                         .event_release = own_release};

static syncedmem_buffer *synced;

static void child_frees(void)
{
    static syncedmem_place place = {.backend = &own_table, .name = "own:0", .number = 1000};
    syncedmem_buffer *buffer;
    syncedmem_token_t token;
    const void *reading;
    void *pointer;
    place.era = era_now();
    CHILD_OK(syncedmem_cpu_data(synced, &reading));
    CHILD_CHECK(pattern_is(reading, SIZE, AFTER));
    syncedmem_release(synced);
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(
        syncedmem_begin(buffer, &place, SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer, NULL, &token));
    CHILD_CHECK(pointer == own.memory);
    CHILD_OK(syncedmem_end(buffer, token));
    syncedmem_release(buffer);
    CHILD_CHECK(own.frees == 1 && !own.was_freed_in_use && own.events == 0);
}

static void *allocates(void *argument)
{
    const void *pointer;
    *(syncedmem_status_t *)argument = syncedmem_gpu_data(make_at_host(), &pointer);
    return NULL;
}

/* What the thread holds meanwhile is the child's no more: it frees its own blocks, and waits for no one. */
Test(drivers, fork_while_one_is_asked)
{
    struct gate gate;
    syncedmem_stream *stream;
    pthread_t thread;
    const void *reading;
    syncedmem_status_t status = SYNCEDMEM_DEVICE_ERROR;
    syncedmem_buffer *retired = make_at_device();
    synced = make_at_device();
    assert_ok(syncedmem_cpu_data(synced, &reading));
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    hook(0);
    table.event_done = hold_then_ask;
    assert_ok(syncedmem_prefetch(retired, syncedmem_host(), 0, SIZE, stream));
    syncedmem_release(retired);
    atomic_store(&holds, true);
    cr_assert_eq(pthread_create(&thread, NULL, allocates, &status), 0);
    while (!atomic_load(&is_held)) {
        sleep_ms(1);
    }
    assert_forked(child_frees);
    atomic_store(&is_held, false);
    pthread_join(thread, NULL);
    assert_ok(status);
    gate_open(&gate);
    assert_ok(syncedmem_stream_wait(stream));
    release_at_the_end(synced, stream);
}
