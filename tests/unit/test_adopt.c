/* SPDX-License-Identifier: BSD-2-Clause */
/* adopt: the caller's memory, its release function, and memory that may not be written. */
#include <stdlib.h>

#include "support.h"
#include "table.h"

TestSuite(adopt, .init = sim_setup, .timeout = 120);

enum { SIZE = 8192 };

/* ---- Who was called, how often and where ---- */

struct called {
    int times;
    pthread_t thread;
};

static void on_release(void *user)
{
    struct called *called = user;
    called->times++;
    called->thread = pthread_self();
}

static void check_called(struct called *called, int times)
{
    cr_assert_eq(called->times, times, "called %d times, not %d", called->times, times);
    cr_assert(times == 0 || pthread_equal(called->thread, pthread_self()));
}

/* Host memory and device memory to adopt: patterns 2 and 3. */
struct giver {
    syncedmem_buffer *buffer;
    unsigned char *host;
    void *device;
    struct called called;
};

static void giver_make(struct giver *giver)
{
    *giver = (struct giver){.host = malloc(SIZE)};
    cr_assert_not_null(giver->host);
    pattern_write(giver->host, SIZE, 2);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &giver->device));
    device_pattern_write(0, giver->device, SIZE, 3);
    assert_ok(syncedmem_create(SIZE, &giver->buffer));
}

static syncedmem_status_t give(struct giver *giver, bool device, syncedmem_adopt_flags_t flags)
{
    return syncedmem_adopt(giver->buffer, device ? sim(0) : syncedmem_host(),
                           device ? giver->device : giver->host, SIZE, flags, NULL, on_release,
                           &giver->called);
}

static bool bytes_right(const struct giver *giver, unsigned seed)
{
    struct subject subject = {.buffer = giver->buffer, .size = SIZE, .seed = seed};
    return subject_bytes_right(&subject);
}

static void giver_end(struct giver *giver)
{
    syncedmem_release(giver->buffer);
    free(giver->host);
    assert_ok(syncedmem_sim_free(sim(0), giver->device));
}

/* ---- Adopting ---- */

Test(adopt, makes_the_bytes_the_newest)
{
    for (int device = 0; device < 2; device++) {
        for (unsigned flags = 0; flags < 2; flags++) {
            struct giver giver;
            const void *reading;
            giver_make(&giver);
            assert_ok(syncedmem_fill(giver.buffer, 0, SIZE, 1));
            assert_ok(syncedmem_prefetch(giver.buffer, sim(0), 0, SIZE, NULL));
            assert_ok(give(&giver, device, flags));
            cr_assert_eq(syncedmem_head(giver.buffer),
                         device ? SYNCEDMEM_HEAD_AT_GPU : SYNCEDMEM_HEAD_AT_CPU);
            assert_ok(device ? syncedmem_gpu_data(giver.buffer, &reading)
                             : syncedmem_cpu_data(giver.buffer, &reading));
            cr_assert_eq(reading, device ? giver.device : (void *)giver.host);
            cr_assert(bytes_right(&giver, device ? 3 : 2));
            check_called(&giver.called, 0);
            giver_end(&giver);
        }
    }
}

/* ---- Each ending, exactly once ---- */

enum ending { BY_SET, BY_ADOPT, BY_DROP, BY_RELEASE, BY_MOVE, BY_VIEW, ENDINGS };

static void end_by_move(struct giver *giver, bool device)
{
    void *pointer;
    assert_ok(device ? syncedmem_mutable_gpu_data(giver->buffer, &pointer)
                     : syncedmem_mutable_cpu_data(giver->buffer, &pointer));
    cr_assert_neq(pointer, device ? giver->device : (void *)giver->host);
}

static void end_use(struct giver *giver, bool device, enum ending ending)
{
    static unsigned char other[SIZE];
    syncedmem_buffer *view;
    switch (ending) {
    case BY_SET:
        assert_ok(device ? syncedmem_set_gpu_data(giver->buffer, giver->device, SIZE)
                         : syncedmem_set_cpu_data(giver->buffer, other, SIZE));
        break;
    case BY_ADOPT:
        assert_ok(syncedmem_adopt(giver->buffer, device ? sim(0) : syncedmem_host(),
                                  device ? giver->device : other, SIZE, 0, NULL, NULL, NULL));
        break;
    case BY_DROP:
        assert_ok(syncedmem_drop(giver->buffer, device ? sim(0) : syncedmem_host()));
        break;
    case BY_MOVE:
        end_by_move(giver, device);
        break;
    case BY_VIEW:
        assert_ok(syncedmem_view(giver->buffer, 5, 6, &view));
        syncedmem_release(giver->buffer);
        giver->buffer = NULL;
        check_called(&giver->called, 0);
        syncedmem_release(view);
        break;
    default:
        syncedmem_release(giver->buffer);
        giver->buffer = NULL;
    }
}

Test(adopt, every_ending_calls_once)
{
    for (int ending = 0; ending < ENDINGS; ending++) {
        for (int device = 0; device < 2; device++) {
            struct giver giver;
            giver_make(&giver);
            assert_ok(give(&giver, device, ending == BY_MOVE ? SYNCEDMEM_ADOPT_READ_ONLY : 0));
            check_called(&giver.called, 0);
            end_use(&giver, device, (enum ending)ending);
            check_called(&giver.called, 1);
            /* No longer used: the caller's again. */
            cr_assert(pattern_is(giver.host, SIZE, 2));
            cr_assert(device_pattern_is(0, giver.device, SIZE, 3));
            memset(giver.host, 0xEE, SIZE);
            giver_end(&giver);
            check_called(&giver.called, 1);
        }
    }
}

/* The same block again and again: each adoption ends once. */
Test(adopt, replaced_100000_times)
{
    struct giver giver;
    giver_make(&giver);
    for (int i = 0; i < 100000; i++) {
        assert_ok(give(&giver, i % 2, i % 3 == 0 ? SYNCEDMEM_ADOPT_READ_ONLY : 0));
    }
    check_called(&giver.called, 99998);
    cr_assert_eq(stat_of(giver.buffer, SYNCEDMEM_STAT_HOST_BYTES), 0);
    cr_assert_eq(stat_of(giver.buffer, SYNCEDMEM_STAT_DEVICE_BYTES), 0);
    syncedmem_release(giver.buffer);
    check_called(&giver.called, 100000);
    giver.buffer = NULL;
    giver_end(&giver);
}

/* ---- The function may call the library ---- */

struct nested {
    syncedmem_buffer *buffer; /* retained for the call */
    syncedmem_buffer *other;
    int calls, faults;
    unsigned char block[SIZE];
};

static void call_library(struct nested *nested)
{
    syncedmem_buffer *fresh, *view;
    const void *reading;
    void *writing;
    syncedmem_token_t token;
    int faults = 0;
    if (nested->buffer != NULL) {
        faults += syncedmem_gpu_data(nested->buffer, &reading) != SYNCEDMEM_OK;
        faults += syncedmem_cpu_data(nested->buffer, &reading) != SYNCEDMEM_OK;
        faults += syncedmem_copy(nested->other, 0, nested->buffer, 0, SIZE) != SYNCEDMEM_OK;
        faults += syncedmem_begin(nested->buffer, syncedmem_host(), SYNCEDMEM_WRITE, 0, 9, NULL,
                                  &writing, NULL, &token) != SYNCEDMEM_OK;
        faults += syncedmem_end(nested->buffer, token) != SYNCEDMEM_OK;
    }
    faults += syncedmem_create(SIZE, &fresh) != SYNCEDMEM_OK;
    faults += syncedmem_view(fresh, 1, 2, &view) != SYNCEDMEM_OK;
    faults += syncedmem_mutable_gpu_data(view, &writing) != SYNCEDMEM_OK;
    syncedmem_release(fresh);
    syncedmem_release(view);
    nested->faults += faults;
}

static void on_release_nested(void *user)
{
    struct nested *nested = user;
    nested->calls++;
    call_library(nested);
    if (nested->buffer != NULL && nested->calls < 3) {
        /* Adopting in the function, for this very buffer. */
        nested->faults += syncedmem_adopt(nested->buffer, syncedmem_host(), nested->block, SIZE, 0,
                                          NULL, on_release_nested, nested) != SYNCEDMEM_OK;
    }
}

Test(adopt, the_function_may_call_the_library)
{
    static struct nested nested;
    struct giver giver;
    giver_make(&giver);
    nested = (struct nested){.buffer = giver.buffer};
    assert_ok(syncedmem_create(SIZE, &nested.other));
    assert_ok(syncedmem_adopt(giver.buffer, syncedmem_host(), giver.host, SIZE, 0, NULL,
                              on_release_nested, &nested));
    assert_ok(syncedmem_drop(giver.buffer, syncedmem_host()));
    cr_assert_eq(nested.calls, 1);
    assert_ok(syncedmem_set_cpu_data(giver.buffer, giver.host, SIZE));
    cr_assert_eq(nested.calls, 2);
    assert_ok(syncedmem_adopt(nested.other, syncedmem_host(), giver.host, SIZE, 1, NULL,
                              on_release_nested, &nested));
    /* A move within a copy of two buffers, with both locked. */
    assert_ok(syncedmem_copy(nested.other, 0, giver.buffer, 0, 100));
    cr_assert_eq(nested.calls, 3);
    nested.buffer = NULL;
    syncedmem_release(giver.buffer);
    syncedmem_release(nested.other);
    cr_assert_eq(nested.calls, 4);
    cr_assert_eq(nested.faults, 0);
    giver.buffer = NULL;
    giver_end(&giver);
}

/* Both of a buffer's adoptions end with the last release. */
Test(adopt, both_places_end_together)
{
    struct giver giver;
    giver_make(&giver);
    assert_ok(give(&giver, false, 0));
    assert_ok(give(&giver, true, 0));
    syncedmem_release(giver.buffer);
    check_called(&giver.called, 2);
    giver.buffer = NULL;
    giver_end(&giver);
}

/* ---- Refused ---- */

Test(adopt, refused_adoptions_never_call)
{
    struct giver giver;
    syncedmem_stream *elsewhere;
    struct called *called;
    void *pointer, *own;
    syncedmem_token_t token;
    giver_make(&giver);
    called = &giver.called;
    syncedmem_place *const host = syncedmem_host();
    assert_ok(syncedmem_stream_create(sim(1), &elsewhere));
    assert_ok(syncedmem_mutable_cpu_data(giver.buffer, &own));
    const struct figures before = figures_of(giver.buffer);
    const struct {
        syncedmem_place *place;
        void *pointer;
        size_t length;
        syncedmem_adopt_flags_t flags;
        syncedmem_stream *stream;
        syncedmem_status_t wanted;
    } cases[] = {
        {host, giver.host, SIZE - 1, 0, NULL, SYNCEDMEM_OUT_OF_RANGE},
        {host, NULL, SIZE, 0, NULL, SYNCEDMEM_INVALID_ARGUMENT},
        {host, giver.host, SIZE, 2, NULL, SYNCEDMEM_INVALID_ARGUMENT},
        {host, giver.host, SIZE, 0x80000001U, NULL, SYNCEDMEM_INVALID_ARGUMENT},
        {host, giver.host, SIZE, 0, elsewhere, SYNCEDMEM_INVALID_ARGUMENT},
        {host, giver.host, SIZE_MAX, 0, NULL, SYNCEDMEM_OUT_OF_RANGE},
        {host, (char *)own + 1, SIZE, 0, NULL, SYNCEDMEM_INVALID_ARGUMENT},
        {host, giver.device, SIZE, 0, NULL, SYNCEDMEM_WRONG_MEMORY},
        {sim(0), giver.host, SIZE, 0, NULL, SYNCEDMEM_WRONG_MEMORY},
        {sim(1), giver.device, SIZE, 0, NULL, SYNCEDMEM_WRONG_MEMORY},
        {sim(0), giver.device, SIZE, 0, elsewhere, SYNCEDMEM_INVALID_ARGUMENT},
        {NULL, giver.host, SIZE, 0, NULL, SYNCEDMEM_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const syncedmem_status_t status =
            syncedmem_adopt(giver.buffer, cases[i].place, cases[i].pointer, cases[i].length,
                            cases[i].flags, cases[i].stream, on_release, called);
        cr_assert_eq(status, cases[i].wanted, "%zu: %s", i, syncedmem_status_name(status));
    }
    assert_ok(
        syncedmem_begin(giver.buffer, host, SYNCEDMEM_READ, 0, 1, NULL, &pointer, NULL, &token));
    assert_status(give(&giver, true, 0), SYNCEDMEM_BUSY);
    assert_ok(syncedmem_end(giver.buffer, token));
    assert_status(syncedmem_adopt(NULL, host, giver.host, SIZE, 0, NULL, on_release, called),
                  SYNCEDMEM_INVALID_ARGUMENT);
    const struct figures after = figures_of(giver.buffer);
    cr_assert(figures_equal(&before, &after));
    syncedmem_stream_release(elsewhere);
    giver_end(&giver);
    check_called(called, 0);
}

/* ---- Size 0 ---- */

Test(adopt, size_0)
{
    struct called called = {.times = 0};
    syncedmem_buffer *buffer;
    unsigned char byte;
    const void *reading;
    assert_ok(syncedmem_create(0, &buffer));
    assert_ok(syncedmem_adopt(buffer, syncedmem_host(), NULL, 0, 0, NULL, on_release, &called));
    assert_ok(syncedmem_adopt(buffer, syncedmem_host(), &byte, 0, 1, NULL, on_release, &called));
    check_called(&called, 1);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_CPU);
    assert_ok(syncedmem_cpu_data(buffer, &reading));
    cr_assert_neq(reading, &byte);
    syncedmem_release(buffer);
    check_called(&called, 2);
}

/* A stream has nothing to write there, so nothing is waited for. */
Test(adopt, size_0_after_a_stream)
{
    struct gate gate;
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    const void *reading;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_create(0, &buffer));
    gate_put(&gate, stream);
    assert_ok(syncedmem_adopt(buffer, sim(0), NULL, 0, 0, stream, NULL, NULL));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_HEAD_AT_GPU);
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    cr_assert_null(reading);
    assert_ok(syncedmem_drop(buffer, sim(0)));
    cr_assert(!gate_is_open(&gate));
    gate_open(&gate);
    assert_ok(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}
