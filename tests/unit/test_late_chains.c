/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers that fail after calls have gone on from them: copied on, overwritten in part, dropped.
 * No byte that is reported valid afterwards may be one that never arrived.
 */
#include <stdlib.h>

#include "support.h"

TestSuite(late_chains, .init = sim_setup, .timeout = 120);

enum { SIZE = 4096, HALF = SIZE / 2, BEFORE = 3, JUNK = 77 };

struct chain {
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    struct gate gate;
};

/* So that memory that the next buffer gets is not zero. */
static void spoil_free_memory(unsigned device)
{
    syncedmem_buffer *buffer;
    void *pointer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_set_home(buffer, sim(device)));
    assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
    device_pattern_write(device, pointer, SIZE, JUNK);
    syncedmem_release(buffer);
}

/* The stream is held up, and the first copy or fill that is put on it will fail. */
static void chain_begin(struct chain *chain, bool is_fresh)
{
    spoil_free_memory(0);
    spoil_free_memory(1);
    assert_ok(syncedmem_create(SIZE, &chain->buffer));
    assert_ok(syncedmem_set_home(chain->buffer, sim(0)));
    if (!is_fresh) {
        void *pointer;
        assert_ok(syncedmem_mutable_cpu_data(chain->buffer, &pointer));
        pattern_write(pointer, SIZE, BEFORE);
    }
    assert_ok(syncedmem_stream_create(sim(0), &chain->stream));
    gate_put(&chain->gate, chain->stream);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
}

static void lease(struct chain *chain, unsigned device, syncedmem_mode_t mode, size_t from,
                  size_t to, syncedmem_stream *stream)
{
    void *pointer;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(chain->buffer, sim(device), mode, from, to - from, stream, &pointer,
                              NULL, &token));
    assert_ok(syncedmem_end(chain->buffer, token));
}

/* The failure is told once. */
static void let_it_fail(struct chain *chain, syncedmem_status_t expected)
{
    gate_open(&chain->gate);
    assert_ok(syncedmem_stream_wait(chain->stream));
    assert_status(syncedmem_wait(chain->buffer), expected);
    assert_ok(syncedmem_wait(chain->buffer));
}

static void chain_end(struct chain *chain)
{
    syncedmem_stream_release(chain->stream);
    syncedmem_release(chain->buffer);
}

static void holds_what_was_before(struct chain *chain)
{
    const void *pointer;
    assert_ok(syncedmem_cpu_data(chain->buffer, &pointer));
    cr_assert(pattern_is(pointer, SIZE, BEFORE), "host");
    assert_ok(syncedmem_gpu_data(chain->buffer, &pointer));
    cr_assert(device_pattern_is(0, pointer, SIZE, BEFORE), "device");
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* What came back from a failed upload is worth nothing; and the bytes are where they came from. */
Test(late_chains, copied_back_and_dropped)
{
    struct chain chain;
    chain_begin(&chain, false);
    lease(&chain, 0, SYNCEDMEM_READ_WRITE, 0, SIZE, chain.stream);
    assert_ok(syncedmem_prefetch(chain.buffer, syncedmem_host(), 0, SIZE, chain.stream));
    gate_open_later(&chain.gate, 30);
    const syncedmem_status_t status = syncedmem_drop(chain.buffer, sim(0));
    cr_assert(status == SYNCEDMEM_DEVICE_ERROR || status == SYNCEDMEM_DATA_LOST, "%s",
              syncedmem_status_name(status));
    gate_join(&chain.gate);
    const void *pointer;
    const syncedmem_status_t after = syncedmem_cpu_data(chain.buffer, &pointer);
    if (after == SYNCEDMEM_OK) {
        cr_assert(pattern_is(pointer, SIZE, BEFORE));
    } else {
        assert_status(after, SYNCEDMEM_DATA_LOST);
    }
    chain_end(&chain);
}

Test(late_chains, copied_on_for_writing)
{
    struct chain chain;
    syncedmem_stream *other;
    chain_begin(&chain, false);
    assert_ok(syncedmem_stream_create(sim(1), &other));
    lease(&chain, 0, SYNCEDMEM_READ_WRITE, 0, SIZE, chain.stream);
    lease(&chain, 1, SYNCEDMEM_READ_WRITE, 0, SIZE, other);
    let_it_fail(&chain, SYNCEDMEM_DEVICE_ERROR);
    size_t there;
    assert_ok(syncedmem_valid_bytes(chain.buffer, sim(1), 0, SIZE, &there));
    cr_assert_eq(there, 0);
    holds_what_was_before(&chain);
    syncedmem_stream_release(other);
    chain_end(&chain);
}

/* drop() of the source gives nothing up that has not arrived. */
Test(late_chains, source_is_dropped)
{
    struct chain chain;
    chain_begin(&chain, false);
    assert_ok(syncedmem_prefetch(chain.buffer, sim(0), 0, SIZE, chain.stream));
    gate_open_later(&chain.gate, 30);
    assert_status(syncedmem_drop(chain.buffer, syncedmem_host()), SYNCEDMEM_DEVICE_ERROR);
    gate_join(&chain.gate);
    holds_what_was_before(&chain);
    chain_end(&chain);
}

/* A fill failed, and what had been copied on was overwritten at its source only: the host's block counts as
 * fresh again, and is not what it was. */
Test(late_chains, fresh_bytes_that_were_copied_on)
{
    struct chain chain;
    const unsigned char *pointer;
    chain_begin(&chain, true);
    void *half;
    syncedmem_token_t token;
    assert_ok(syncedmem_begin(chain.buffer, syncedmem_host(), SYNCEDMEM_WRITE, HALF, HALF, NULL,
                              &half, NULL, &token)); /* makes a block of zeros */
    pattern_write(half, HALF, BEFORE);
    assert_ok(syncedmem_end(chain.buffer, token));
    lease(&chain, 0, SYNCEDMEM_READ, 0, HALF, chain.stream);
    assert_ok(syncedmem_prefetch(chain.buffer, syncedmem_host(), 0, HALF, chain.stream));
    lease(&chain, 0, SYNCEDMEM_READ_WRITE, 0, HALF, chain.stream);
    let_it_fail(&chain, SYNCEDMEM_DEVICE_ERROR);
    assert_ok(syncedmem_cpu_data(chain.buffer, (const void **)&pointer));
    cr_assert(is_zero(pointer, HALF));
    cr_assert(pattern_is(pointer + HALF, HALF, BEFORE));
    chain_end(&chain);
}

/* What the kernels of a lease read was never there; that the bytes have been written since makes no
 * difference to them. */
Test(late_chains, read_and_overwritten)
{
    for (int is_fresh = 0; is_fresh < 2; is_fresh++) {
        struct chain chain;
        chain_begin(&chain, is_fresh != 0);
        lease(&chain, 0, SYNCEDMEM_READ, 0, SIZE, chain.stream);
        lease(&chain, 0, SYNCEDMEM_WRITE, 0, SIZE, chain.stream);
        let_it_fail(&chain, SYNCEDMEM_DEVICE_ERROR);
        cr_assert_eq(syncedmem_head(chain.buffer), SYNCEDMEM_HEAD_AT_GPU);
        chain_end(&chain);
    }
}

/* A copy of what never arrived fails as well, when its bytes have been brought anew. */
Test(late_chains, two_failures_one_after_the_other)
{
    for (int is_fresh = 0; is_fresh < 2; is_fresh++) {
        struct chain chain;
        struct gate second_gate;
        syncedmem_stream *second;
        const unsigned char *pointer;
        chain_begin(&chain, is_fresh != 0);
        assert_ok(syncedmem_stream_create(sim(1), &second));
        lease(&chain, 0, SYNCEDMEM_READ, 0, SIZE, chain.stream);
        if (!is_fresh) { /* so that the copy comes from the other device */
            lease(&chain, 0, SYNCEDMEM_READ_WRITE, 0, SIZE, chain.stream);
        }
        gate_put(&second_gate, second);
        assert_ok(syncedmem_sim_fail(sim(1), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
        assert_ok(syncedmem_prefetch(chain.buffer, sim(1), 0, SIZE, second));
        gate_open(&chain.gate);
        assert_ok(syncedmem_stream_wait(chain.stream));
        size_t there;
        assert_status(syncedmem_prefetch(chain.buffer, sim(1), 0, SIZE, second),
                      SYNCEDMEM_DEVICE_ERROR);
        assert_ok(syncedmem_valid_bytes(chain.buffer, sim(1), 0, SIZE, &there));
        cr_assert_eq(there, 0);
        assert_ok(syncedmem_prefetch(chain.buffer, sim(1), 0, SIZE, second));
        gate_open(&second_gate);
        assert_status(syncedmem_wait(chain.buffer), SYNCEDMEM_DEVICE_ERROR);
        assert_ok(syncedmem_valid_bytes(chain.buffer, sim(1), 0, SIZE, &there));
        cr_assert_eq(there, SIZE);
        assert_ok(syncedmem_cpu_data(chain.buffer, (const void **)&pointer));
        cr_assert(is_fresh ? is_zero(pointer, SIZE) : pattern_is(pointer, SIZE, BEFORE));
        syncedmem_stream_release(second);
        chain_end(&chain);
    }
}

/* Nothing is saved to where the holder of a lease still writes. */
Test(late_chains, dropped_under_a_lease)
{
    struct chain chain;
    void *pointer;
    syncedmem_token_t token;
    chain_begin(&chain, false);
    assert_ok(syncedmem_begin(chain.buffer, sim(0), SYNCEDMEM_READ_WRITE, 0, SIZE, chain.stream,
                              &pointer, NULL, &token));
    let_it_fail(&chain, SYNCEDMEM_DEVICE_ERROR);
    assert_status(syncedmem_drop(chain.buffer, syncedmem_host()), SYNCEDMEM_BUSY);
    device_pattern_write(0, pointer, SIZE, JUNK);
    assert_ok(syncedmem_end(chain.buffer, token));
    assert_ok(syncedmem_drop(chain.buffer, syncedmem_host()));
    holds_what_was_before(&chain);
    chain_end(&chain);
}

/* Memory of a transfer that fails is replaced at both ends: the kernel that saw its bytes has to be told of
 * all the same. */
static void check_adopted_over(syncedmem_mode_t mode, bool at_both, bool device_first)
{
    static unsigned char host[SIZE];
    struct chain chain;
    void *device = NULL;
    chain_begin(&chain, false);
    lease(&chain, 0, mode, 0, SIZE, chain.stream);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &device));
    for (int i = 0; i < 2; i++) {
        const bool on_device = (i == 0) == device_first;
        if (on_device && at_both) {
            assert_ok(syncedmem_adopt(chain.buffer, sim(0), device, SIZE, 0, NULL, NULL, NULL));
        } else if (!on_device) {
            pattern_write(host, SIZE, BEFORE);
            assert_ok(
                syncedmem_adopt(chain.buffer, syncedmem_host(), host, SIZE, 0, NULL, NULL, NULL));
        }
    }
    let_it_fail(&chain, SYNCEDMEM_DEVICE_ERROR);
    chain_end(&chain);
    assert_ok(syncedmem_sim_free(sim(0), device));
}

Test(late_chains, replaced_by_adoption)
{
    const syncedmem_mode_t modes[] = {SYNCEDMEM_READ, SYNCEDMEM_READ_WRITE};
    for (int i = 0; i < 2; i++) {
        check_adopted_over(modes[i], false, false);
        check_adopted_over(modes[i], true, false);
        check_adopted_over(modes[i], true, true);
    }
}

/* An upload in two parts, the first of which is written in its middle: three parts are left to fail. */
Test(late_chains, of_several_parts)
{
    struct chain chain;
    void *pointer;
    syncedmem_token_t token;
    size_t there;
    chain_begin(&chain, false);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 2));
    syncedmem_stream *before;
    assert_ok(syncedmem_stream_create(sim(0), &before));
    lease(&chain, 0, SYNCEDMEM_READ, 1000, 2000, before);
    assert_ok(syncedmem_wait(chain.buffer));
    assert_ok(syncedmem_prefetch(chain.buffer, sim(0), 0, SIZE, chain.stream));
    assert_ok(syncedmem_begin(chain.buffer, sim(0), SYNCEDMEM_WRITE, 400, 100, chain.stream,
                              &pointer, NULL, &token));
    cr_assert(stream_pattern_write(chain.stream, pointer, 100, JUNK));
    assert_ok(syncedmem_end(chain.buffer, token));
    let_it_fail(&chain, SYNCEDMEM_DEVICE_ERROR);
    const struct {
        size_t from, to, valid;
    } parts[] = {{0, 400, 0}, {400, 500, 100}, {500, 1000, 0}, {1000, 2000, 1000}, {2000, SIZE, 0}};
    for (int i = 0; i < 5; i++) {
        assert_ok(syncedmem_valid_bytes(chain.buffer, sim(0), parts[i].from,
                                        parts[i].to - parts[i].from, &there));
        cr_assert_eq(there, parts[i].valid, "part %d", i);
    }
    syncedmem_stream_release(before);
    chain_end(&chain);
}
