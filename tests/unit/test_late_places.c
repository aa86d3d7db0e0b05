/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that is late while something else happens to its buffer: more of it is lost at once, the place
 * that it comes from goes, zeros are wanted beside it, other work is started behind it.
 */
#include "support.h"

TestSuite(late_places, .init = sim_setup, .timeout = 120);

enum { SIZE = 4096, BEFORE = 3, AFTER = 4, JUNK = 0x77, LATER = 5 };

static syncedmem_buffer *buffer;
static syncedmem_stream *stream;
static struct gate gate;

static void make(unsigned device)
{
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_set_home(buffer, sim(0)));
    assert_ok(syncedmem_stream_create(sim(device), &stream));
}

static void end(void)
{
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}

static void write_host(void)
{
    void *pointer;
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    pattern_write(pointer, SIZE, BEFORE);
}

static void lease(unsigned device, syncedmem_mode_t mode, size_t from, size_t to)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(buffer, sim(device), mode, from, to - from, stream, &pointer, NULL,
                              &token));
    assert_ok(syncedmem_end(buffer, token));
}

static size_t valid_at(syncedmem_place *place, size_t from, size_t to)
{
    size_t bytes;
    assert_ok(syncedmem_valid_bytes(buffer, place, from, to - from, &bytes));
    return bytes;
}

static syncedmem_status_t read_host(size_t from, size_t to)
{
    void *pointer;
    syncedmem_token_t token;
    const syncedmem_status_t status = syncedmem_begin(
        buffer, syncedmem_host(), SYNCEDMEM_READ, from, to - from, NULL, &pointer, NULL, &token);
    for (size_t i = 0; status == SYNCEDMEM_OK && i < to - from; i++)
        cr_assert_eq(((const unsigned char *)pointer)[i], pattern_at(BEFORE, from + i));
    return status == SYNCEDMEM_OK ? syncedmem_end(buffer, token) : status;
}

/* ---- One transfer, two pieces ---- */

/* They came back to where they were from before it was known: one range holds both, and what lies
 * between is there. */
Test(late_places, two_pieces_are_lost)
{
    make(0);
    write_host();
    lease(0, SYNCEDMEM_READ, 200, 300);
    assert_ok(syncedmem_wait(buffer));
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    lease(0, SYNCEDMEM_READ_WRITE, 100, 400);
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 100, 300, stream));
    gate_open(&gate);
    assert_status(syncedmem_wait(buffer), SYNCEDMEM_DATA_LOST);
    cr_assert(contains(syncedmem_last_error(), "bytes 100 to 400 "), "%s", syncedmem_last_error());
    assert_ok(syncedmem_wait(buffer));
    assert_status(read_host(100, 200), SYNCEDMEM_DATA_LOST);
    assert_status(read_host(300, 400), SYNCEDMEM_DATA_LOST);
    assert_ok(read_host(200, 300));
    assert_ok(read_host(0, 100));
    assert_ok(read_host(400, SIZE));
    end();
}

/* ---- Zeros beside bytes that are on their way ---- */

/* The host gets a block that is not zero, and bytes that are fresh all the same. */
static void make_fresh_beside_junk(void)
{
    void *pointer;
    syncedmem_token_t token;
    for (int i = 0; i < 2; i++) {
        make(0);
        assert_ok(syncedmem_fill(buffer, 0, SIZE, JUNK));
        end();
    }
    make(0);
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    lease(0, SYNCEDMEM_READ, 0, SIZE);
    assert_ok(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_WRITE, 1000, SIZE - 1000, NULL,
                              &pointer, NULL, &token));
    memset(pointer, JUNK, SIZE - 1000);
    assert_ok(syncedmem_end(buffer, token));
    gate_open(&gate);
    assert_status(syncedmem_wait(buffer), SYNCEDMEM_DEVICE_ERROR);
}

Test(late_places, zeros_beside_a_failing_pull)
{
    void *pointer;
    syncedmem_token_t token;
    make_fresh_beside_junk();
    assert_ok(
        syncedmem_begin(buffer, sim(0), SYNCEDMEM_WRITE, 100, 200, stream, &pointer, NULL, &token));
    cr_assert(stream_pattern_write(stream, pointer, 200, BEFORE));
    assert_ok(syncedmem_end(buffer, token));
    assert_ok(syncedmem_wait(buffer));
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_prefetch(buffer, syncedmem_host(), 100, 200, stream));
    gate_open_later(&gate, LATER);
    const syncedmem_status_t status = syncedmem_prefetch(buffer, syncedmem_host(), 0, 1000, stream);
    gate_join(&gate);
    if (status == SYNCEDMEM_OK)
        assert_status(syncedmem_wait(buffer), SYNCEDMEM_DEVICE_ERROR);
    else
        cr_assert_eq(status, SYNCEDMEM_DEVICE_ERROR);
    const unsigned char *bytes;
    assert_ok(syncedmem_cpu_data(buffer, (const void **)&bytes));
    for (size_t i = 0; i < SIZE; i++) {
        const unsigned char wanted =
            i >= 1000 ? JUNK : (i >= 100 && i < 300 ? pattern_at(BEFORE, i - 100) : 0);
        cr_assert_eq(bytes[i], wanted, "byte %zu", i);
    }
    end();
}

/* ---- The place that gives is lost ---- */

/* What was changed at the place that receives cannot be had: it never arrived, and it is nowhere. */
Test(late_places, giving_device_is_lost)
{
    make(1);
    syncedmem_stream *gives;
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_stream_create(sim(0), &gives));
    assert_ok(
        syncedmem_begin(buffer, sim(0), SYNCEDMEM_WRITE, 0, SIZE, gives, &pointer, NULL, &token));
    cr_assert(stream_pattern_write(gives, pointer, SIZE, BEFORE));
    assert_ok(syncedmem_end(buffer, token));
    assert_ok(syncedmem_wait(buffer));
    gate_put(&gate, stream);
    assert_ok(syncedmem_prefetch(buffer, sim(1), 0, SIZE, stream));
    assert_ok(syncedmem_sim_lose(sim(0)));
    lease(1, SYNCEDMEM_READ_WRITE, 100, 300);
    gate_open(&gate);
    const syncedmem_status_t status = syncedmem_wait(buffer);
    cr_assert(status == SYNCEDMEM_DATA_LOST || status == SYNCEDMEM_DEVICE_LOST, "%s",
              syncedmem_status_name(status));
    cr_assert_eq(valid_at(sim(1), 0, SIZE), 0);
    assert_status(read_host(0, SIZE), SYNCEDMEM_DATA_LOST);
    assert_status(read_host(150, 160), SYNCEDMEM_DATA_LOST);
    assert_ok(syncedmem_fill(buffer, 0, SIZE, AFTER)); /* new bytes are as good as any */
    assert_ok(syncedmem_cpu_data(buffer, (const void **)&pointer));
    cr_assert_eq(*(const unsigned char *)pointer, AFTER);
    assert_ok(syncedmem_sim_restore(sim(0)));
    syncedmem_stream_release(gives);
    end();
}

/* The other device goes on with what it was sent by the host. */
Test(late_places, another_device_is_lost)
{
    make(1);
    write_host();
    assert_ok(syncedmem_prefetch(buffer, sim(0), 0, SIZE, NULL));
    assert_ok(syncedmem_wait(buffer));
    gate_put(&gate, stream);
    assert_ok(syncedmem_prefetch(buffer, sim(1), 0, SIZE, stream));
    assert_ok(syncedmem_sim_lose(sim(0)));
    cr_assert_eq(valid_at(sim(1), 0, SIZE), SIZE);
    cr_assert_eq(valid_at(sim(0), 0, SIZE), 0);
    gate_open(&gate);
    assert_ok(syncedmem_wait(buffer));
    assert_ok(syncedmem_drop(buffer, syncedmem_host()));
    assert_ok(read_host(0, SIZE));
    assert_ok(syncedmem_sim_restore(sim(0)));
    end();
}

/* ---- Nothing is lost with a buffer of size 0 ---- */

Test(late_places, empty_buffer_at_a_lost_device)
{
    const void *pointer;
    assert_ok(syncedmem_create(0, &buffer));
    assert_ok(syncedmem_set_home(buffer, sim(0)));
    void *writing;
    assert_ok(syncedmem_mutable_gpu_data(buffer, &writing));
    assert_ok(syncedmem_sim_lose(sim(0)));
    assert_ok(syncedmem_cpu_data(buffer, &pointer));
    cr_assert_not_null(pointer);
    assert_status(syncedmem_gpu_data(buffer, &pointer), SYNCEDMEM_DEVICE_LOST);
    assert_ok(syncedmem_sim_restore(sim(0)));
    (void)syncedmem_gpu_data(buffer, &pointer);
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    assert_ok(syncedmem_mutable_cpu_data(buffer, &writing));
    syncedmem_release(buffer);
}

/* ---- wait() is about what was started before it ---- */

static void *waits(void *argument)
{
    *(syncedmem_status_t *)argument = syncedmem_wait(buffer);
    return NULL;
}

Test(late_places, wait_is_not_kept_by_later_work)
{
    struct gate later;
    syncedmem_stream *other;
    pthread_t waiter;
    syncedmem_status_t status = SYNCEDMEM_DEVICE_ERROR;
    make(0);
    write_host();
    assert_ok(syncedmem_stream_create(sim(1), &other));
    gate_put(&gate, stream);
    gate_put(&later, other);
    assert_ok(syncedmem_prefetch(buffer, sim(0), 0, 100, stream));
    cr_assert_eq(pthread_create(&waiter, NULL, waits, &status), 0);
    while (stat_of(buffer, SYNCEDMEM_STAT_WAITS) == 0)
        sleep_ms(1);
    assert_ok(syncedmem_prefetch(buffer, sim(1), 1000, 100, other));
    gate_open(&gate);
    pthread_join(waiter, NULL);
    assert_ok(status);
    cr_assert(!gate_is_open(&later));
    gate_open(&later);
    assert_ok(syncedmem_wait(buffer));
    syncedmem_stream_release(other);
    end();
}

/* Whoever waits for a transfer is told that it went with its device: the host's bytes, whose pointer is
 * around, are not the newest. */
Test(late_places, wait_tells_of_transfers_that_went)
{
    for (int is_pull = 0; is_pull < 2; is_pull++) {
        syncedmem_buffer *own;
        syncedmem_stream *own_stream;
        syncedmem_token_t token;
        void *pointer;
        const void *reading;
        struct gate held;
        assert_ok(syncedmem_create(SIZE, &own));
        assert_ok(syncedmem_mutable_cpu_data(own, &pointer));
        pattern_write(pointer, SIZE, 1);
        assert_ok(syncedmem_stream_create(sim(0), &own_stream));
        gate_put(&held, own_stream);
        if (is_pull) {
            assert_ok(syncedmem_begin(own, sim(0), SYNCEDMEM_WRITE, 0, SIZE, own_stream, &pointer,
                                      NULL, &token));
            assert_ok(syncedmem_end(own, token));
        }
        assert_ok(
            syncedmem_prefetch(own, is_pull ? syncedmem_host() : sim(0), 0, SIZE, own_stream));
        gate_open_later(&held, 20);
        assert_ok(syncedmem_sim_lose(sim(0)));
        assert_status(syncedmem_wait(own), SYNCEDMEM_DEVICE_LOST);
        cr_assert_not_null(strstr(syncedmem_last_error(), "sim:0"));
        assert_ok(syncedmem_wait(own));
        if (is_pull) {
            assert_status(syncedmem_cpu_data(own, &reading), SYNCEDMEM_DATA_LOST);
        } else {
            assert_ok(syncedmem_cpu_data(own, &reading));
            cr_assert(pattern_is(reading, SIZE, 1));
        }
        gate_join(&held);
        assert_ok(syncedmem_sim_restore(sim(0)));
        syncedmem_release(own);
        syncedmem_stream_release(own_stream);
    }
}
