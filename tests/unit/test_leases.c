/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases: what each mode moves, and who excludes whom. Streams and tokens: test_lease_ends.c. */
#include <stdlib.h>

#include "support.h"
#include "table.h"

TestSuite(leases, .init = sim_setup, .timeout = 120);

enum { SIZE = 5000 };

static const char *const mode_name[] = {"", "READ", "WRITE", "READ_WRITE"};

static bool writes(syncedmem_mode_t mode)
{
    return mode != SYNCEDMEM_READ;
}

static syncedmem_place *place_of(bool device)
{
    return device ? sim(0) : syncedmem_host();
}

/* ---- Every mode, place and state ---- */

struct wanted {
    syncedmem_head_t head;
    unsigned transfers;
};

/* `near`: the head that says the lease's place, `far` the other one. */
static struct wanted wanted_of(syncedmem_mode_t mode, bool device, syncedmem_head_t state)
{
    const syncedmem_head_t near = device ? SYNCEDMEM_HEAD_AT_GPU : SYNCEDMEM_HEAD_AT_CPU;
    const syncedmem_head_t far = device ? SYNCEDMEM_HEAD_AT_CPU : SYNCEDMEM_HEAD_AT_GPU;
    struct wanted wanted = {.head = near, .transfers = state == far && mode != SYNCEDMEM_WRITE};
    if (mode == SYNCEDMEM_READ && (state == far || state == SYNCEDMEM_SYNCED)) {
        wanted.head = SYNCEDMEM_SYNCED;
    }
    return wanted;
}

static bool bytes_at(bool device, const void *pointer, unsigned seed)
{
    return device ? device_pattern_is(0, pointer, SIZE, seed) : pattern_is(pointer, SIZE, seed);
}

static void write_at(bool device, void *pointer, unsigned seed)
{
    if (device) {
        device_pattern_write(0, pointer, SIZE, seed);
    } else {
        pattern_write(pointer, SIZE, seed);
    }
}

static void check_transfers(const struct subject *subject, const struct figures *before,
                            struct wanted wanted, bool device, const char *what)
{
    const struct figures now = figures_of(subject->buffer);
    const syncedmem_key_t direction =
        device ? SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE : SYNCEDMEM_STAT_TRANSFERS_TO_HOST;
    cr_assert_eq(now.head, wanted.head, "%s: head %d", what, (int)now.head);
    cr_assert_eq(now.stat[SYNCEDMEM_STAT_TRANSFERS] - before->stat[SYNCEDMEM_STAT_TRANSFERS],
                 wanted.transfers, "%s: transfers", what);
    cr_assert_eq(now.stat[direction] - before->stat[direction], wanted.transfers, "%s", what);
}

static void check_cell(syncedmem_mode_t mode, bool device, syncedmem_head_t state, bool warm)
{
    struct subject subject;
    void *pointer;
    size_t offset = 7;
    syncedmem_token_t token;
    char what[80];
    snprintf(what, sizeof what, "%s at %s in state %d, %s", mode_name[mode],
             device ? "the device" : "the host", (int)state, warm ? "warm" : "cold");
    subject_make(&subject, SIZE, state, warm);
    const struct figures before = figures_of(subject.buffer);
    assert_ok(syncedmem_begin(subject.buffer, place_of(device), mode, 0, SIZE, NULL, &pointer,
                              &offset, &token));
    cr_assert_eq(offset, 0);
    cr_assert_neq(token, 0);
    check_transfers(&subject, &before, wanted_of(mode, device, state), device, what);
    if (mode != SYNCEDMEM_WRITE) {
        cr_assert(bytes_at(device, pointer, subject.seed), "%s: bytes", what);
    } else {
        cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_BYTES_ZEROED),
                     before.stat[SYNCEDMEM_STAT_BYTES_ZEROED], "%s", what);
    }
    if (writes(mode)) {
        write_at(device, pointer, 9);
        subject.seed = 9;
    }
    assert_ok(syncedmem_end(subject.buffer, token));
    cr_assert(subject_bytes_right(&subject), "%s: bytes afterwards", what);
    subject_end(&subject);
}

Test(leases, every_mode_place_and_state)
{
    for (syncedmem_mode_t mode = SYNCEDMEM_READ; mode <= SYNCEDMEM_READ_WRITE; mode++) {
        for (int device = 0; device < 2; device++) {
            for (syncedmem_head_t state = 0; state < STATES; state++) {
                check_cell(mode, device, state, false);
                check_cell(mode, device, state, true);
            }
        }
    }
}

/* Bytes around a partial WRITE into a fresh buffer are zero at every place. */
Test(leases, a_partial_write_leaves_zeros)
{
    for (int device = 0; device < 2; device++) {
        syncedmem_buffer *buffer;
        void *pointer;
        const void *reading;
        syncedmem_token_t token;
        static unsigned char there[SIZE];
        assert_ok(syncedmem_create(SIZE, &buffer));
        assert_ok(syncedmem_begin(buffer, place_of(device), SYNCEDMEM_WRITE, 101, 1000, NULL,
                                  &pointer, NULL, &token));
        device ? device_pattern_write(0, pointer, 1000, 5) : pattern_write(pointer, 1000, 5);
        assert_ok(syncedmem_end(buffer, token));
        assert_ok(syncedmem_gpu_data(buffer, &reading));
        device_read(0, reading, there, SIZE);
        assert_ok(syncedmem_cpu_data(buffer, &reading));
        cr_assert(memcmp(reading, there, SIZE) == 0);
        cr_assert(pattern_is(there, 101, 0) && pattern_is(there + 1101, SIZE - 1101, 0));
        cr_assert(pattern_is(there + 101, 1000, 5));
        syncedmem_release(buffer);
    }
}

/* ---- Reader-writer lock: every pair ---- */

struct range {
    size_t from, length;
};

enum { FROM = 100, TO = 200 };

static const struct range ranges[] = {
    {FROM, 100}, {150, 100}, {50, 100}, {120, 10}, {0, SIZE}, {199, 1}, {99, 2},
    {TO, 100},   {0, FROM},  {300, 9},  {150, 0},  {FROM, 0}, {TO, 0},
};

enum { RANGES = sizeof ranges / sizeof ranges[0] };

static bool overlaps(struct range range)
{
    return range.length > 0 && range.from < TO && range.from + range.length > FROM;
}

struct attempt {
    syncedmem_buffer *buffer;
    syncedmem_mode_t mode;
    bool device;
    struct range range;
    syncedmem_status_t status;
    void *pointer;
    syncedmem_token_t token;
};

static void *attempt_begin(void *argument)
{
    struct attempt *attempt = argument;
    attempt->pointer = attempt;
    attempt->token = 1;
    attempt->status = syncedmem_begin(attempt->buffer, place_of(attempt->device), attempt->mode,
                                      attempt->range.from, attempt->range.length, NULL,
                                      &attempt->pointer, NULL, &attempt->token);
    return NULL;
}

static void run_attempt(struct attempt *attempt, bool other_thread)
{
    pthread_t thread;
    if (!other_thread) {
        attempt_begin(attempt);
        return;
    }
    cr_assert_eq(pthread_create(&thread, NULL, attempt_begin, attempt), 0);
    pthread_join(thread, NULL);
}

static void check_pair(struct attempt *attempt, syncedmem_mode_t held, bool other_thread)
{
    const bool busy = overlaps(attempt->range) && (writes(held) || writes(attempt->mode));
    const struct figures before = figures_of(attempt->buffer);
    run_attempt(attempt, other_thread);
    cr_assert_eq(attempt->status, busy ? SYNCEDMEM_BUSY : SYNCEDMEM_OK,
                 "%s at %d of %zu from %zu under %s: %s", mode_name[attempt->mode], attempt->device,
                 attempt->range.length, attempt->range.from, mode_name[held],
                 syncedmem_status_name(attempt->status));
    if (busy) {
        const struct figures now = figures_of(attempt->buffer);
        cr_assert(figures_equal(&before, &now));
        cr_assert_null(attempt->pointer);
        cr_assert_eq(attempt->token, 0);
        cr_assert_eq(stat_of(attempt->buffer, SYNCEDMEM_STAT_LEASES), 1);
    } else {
        cr_assert_eq(stat_of(attempt->buffer, SYNCEDMEM_STAT_LEASES), 2);
        assert_ok(syncedmem_end(attempt->buffer, attempt->token));
    }
}

static void check_under(syncedmem_mode_t held, bool held_at_device, bool other_thread)
{
    struct subject subject;
    void *pointer;
    syncedmem_token_t token;
    subject_make(&subject, SIZE, SYNCEDMEM_SYNCED, true);
    assert_ok(syncedmem_begin(subject.buffer, place_of(held_at_device), held, FROM, TO - FROM, NULL,
                              &pointer, NULL, &token));
    for (size_t i = 0; i < RANGES; i++) {
        for (syncedmem_mode_t mode = SYNCEDMEM_READ; mode <= SYNCEDMEM_READ_WRITE; mode++) {
            for (int device = 0; device < 2; device++) {
                struct attempt attempt = {
                    .buffer = subject.buffer, .mode = mode, .device = device, .range = ranges[i]};
                check_pair(&attempt, held, other_thread);
            }
        }
    }
    assert_ok(syncedmem_end(subject.buffer, token));
    cr_assert_eq(stat_of(subject.buffer, SYNCEDMEM_STAT_LEASES), 0);
    subject_end(&subject);
}

Test(leases, every_pair)
{
    for (syncedmem_mode_t held = SYNCEDMEM_READ; held <= SYNCEDMEM_READ_WRITE; held++) {
        for (int device = 0; device < 2; device++) {
            check_under(held, device, false);
            check_under(held, device, true);
        }
    }
}

/* An empty range has no bytes that could be in use. */
Test(leases, empty_ranges_exclude_no_one)
{
    syncedmem_buffer *buffer;
    void *pointer;
    const void *reading;
    syncedmem_token_t token;
    assert_ok(syncedmem_create(SIZE, &buffer));
    for (size_t from = 0; from <= SIZE; from += SIZE / 2) {
        assert_ok(syncedmem_begin(buffer, sim(0), SYNCEDMEM_WRITE, from, 0, NULL, &pointer, NULL,
                                  &token));
        cr_assert_null(pointer);
        cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS), 0);
        assert_ok(syncedmem_cpu_data(buffer, &reading));
        assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
        assert_ok(syncedmem_fill(buffer, 0, SIZE, 3));
        assert_ok(syncedmem_end(buffer, token));
        assert_status(syncedmem_end(buffer, token), SYNCEDMEM_INVALID_LEASE);
    }
    syncedmem_release(buffer);
}

/* ---- Other calls under a lease ---- */

enum { OTHER_READS, OTHER_WRITES };

static unsigned char block[SIZE], more[SIZE];
static syncedmem_buffer *other_buffer;
static void *device_block;

static syncedmem_status_t do_adopt(syncedmem_buffer *buffer)
{
    return syncedmem_adopt(buffer, syncedmem_host(), block, SIZE, 0, NULL, NULL, NULL);
}

static syncedmem_status_t do_set_cpu(syncedmem_buffer *buffer)
{
    return syncedmem_set_cpu_data(buffer, more, SIZE);
}

static syncedmem_status_t do_set_gpu(syncedmem_buffer *buffer)
{
    return syncedmem_set_gpu_data(buffer, device_block, SIZE);
}

static syncedmem_status_t do_cpu(syncedmem_buffer *buffer)
{
    const void *pointer;
    return syncedmem_cpu_data(buffer, &pointer);
}

static syncedmem_status_t do_mutable_cpu(syncedmem_buffer *buffer)
{
    void *pointer;
    return syncedmem_mutable_cpu_data(buffer, &pointer);
}

static syncedmem_status_t do_gpu(syncedmem_buffer *buffer)
{
    const void *pointer;
    return syncedmem_gpu_data(buffer, &pointer);
}

static syncedmem_status_t do_mutable_gpu(syncedmem_buffer *buffer)
{
    void *pointer;
    return syncedmem_mutable_gpu_data(buffer, &pointer);
}

static syncedmem_status_t do_prefetch(syncedmem_buffer *buffer)
{
    return syncedmem_prefetch(buffer, sim(0), 0, syncedmem_size(buffer), NULL);
}

static syncedmem_status_t do_mark(syncedmem_buffer *buffer)
{
    return syncedmem_mark_modified(buffer, syncedmem_host(), 0, syncedmem_size(buffer));
}

static syncedmem_status_t do_copy_from(syncedmem_buffer *buffer)
{
    return syncedmem_copy(other_buffer, 0, buffer, 0, syncedmem_size(buffer));
}

static syncedmem_status_t do_copy_to(syncedmem_buffer *buffer)
{
    return syncedmem_copy(buffer, 0, other_buffer, 0, syncedmem_size(buffer));
}

static syncedmem_status_t do_fill(syncedmem_buffer *buffer)
{
    return syncedmem_fill(buffer, 0, syncedmem_size(buffer), 4);
}

static syncedmem_status_t do_push(syncedmem_buffer *buffer)
{
    return syncedmem_async_gpu_push(buffer, NULL);
}

static const struct {
    const char *name;
    syncedmem_status_t (*call)(syncedmem_buffer *buffer);
    int kind;
    bool whole_only;
} others[] = {
    {"cpu_data", do_cpu, OTHER_READS, false},
    {"mutable_cpu_data", do_mutable_cpu, OTHER_WRITES, false},
    {"gpu_data", do_gpu, OTHER_READS, false},
    {"mutable_gpu_data", do_mutable_gpu, OTHER_WRITES, false},
    {"set_cpu_data", do_set_cpu, OTHER_WRITES, true},
    {"set_gpu_data", do_set_gpu, OTHER_WRITES, true},
    {"adopt", do_adopt, OTHER_WRITES, true},
    {"async_gpu_push", do_push, OTHER_READS, false},
    {"prefetch", do_prefetch, OTHER_READS, false},
    {"mark_modified", do_mark, OTHER_WRITES, false},
    {"copy from", do_copy_from, OTHER_READS, false},
    {"copy to", do_copy_to, OTHER_WRITES, false},
    {"fill", do_fill, OTHER_WRITES, false},
};

static void check_other(size_t which, syncedmem_mode_t held, bool disjoint)
{
    struct subject subject;
    syncedmem_buffer *view;
    void *pointer;
    syncedmem_token_t token;
    const bool busy = !disjoint && (writes(held) || others[which].kind == OTHER_WRITES);
    subject_make(&subject, SIZE, SYNCEDMEM_HEAD_AT_CPU, true);
    assert_ok(syncedmem_view(subject.buffer, disjoint ? TO : TO - 1, 900, &view));
    assert_ok(syncedmem_begin(subject.buffer, syncedmem_host(), held, FROM, TO - FROM, NULL,
                              &pointer, NULL, &token));
    const struct figures before = figures_of(subject.buffer);
    assert_status(others[which].call(others[which].whole_only ? subject.buffer : view),
                  busy ? SYNCEDMEM_BUSY : SYNCEDMEM_OK);
    const struct figures now = figures_of(subject.buffer);
    cr_assert(!busy || figures_equal(&before, &now), "%s", others[which].name);
    assert_ok(syncedmem_end(view, token));
    if (busy) {
        assert_ok(others[which].call(others[which].whole_only ? subject.buffer : view));
    }
    syncedmem_release(view);
    subject_end(&subject);
}

Test(leases, other_calls_under_a_lease)
{
    assert_ok(syncedmem_create(SIZE, &other_buffer));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &device_block));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        for (syncedmem_mode_t held = SYNCEDMEM_READ; held <= SYNCEDMEM_READ_WRITE; held++) {
            check_other(i, held, false);
            if (!others[i].whole_only && others[i].call != do_push) {
                check_other(i, held, true);
            }
        }
    }
    syncedmem_release(other_buffer);
    assert_ok(syncedmem_sim_free(sim(0), device_block));
}
