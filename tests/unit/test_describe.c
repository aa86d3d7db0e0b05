/* SPDX-License-Identifier: BSD-2-Clause */
/* describe: a text for a person, cut off where it does not fit, and looking changes nothing. */
#include <stdlib.h>

#include "support.h"

TestSuite(describe, .init = sim_setup, .timeout = 60);

enum { SIZE = 5000 };

static char text[65536];

static size_t described(const syncedmem_buffer *buffer)
{
    size_t needed = 0;
    memset(text, 'x', sizeof text);
    assert_ok(syncedmem_describe(buffer, text, sizeof text, &needed));
    cr_assert_eq(strlen(text) + 1, needed);
    return needed;
}

static bool says(const char *part)
{
    return strstr(text, part) != NULL;
}

/* A buffer with something of everything: split, leased, adopted, pinned. */
static syncedmem_buffer *busy_buffer(syncedmem_token_t tokens[2])
{
    syncedmem_buffer *buffer;
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    assert_ok(syncedmem_fill(buffer, 1234, 66, 1));
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    assert_ok(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_WRITE, 4000, 500, NULL, &pointer,
                              NULL, &tokens[0]));
    assert_ok(syncedmem_end(buffer, tokens[0]));
    assert_ok(syncedmem_begin(buffer, sim(0), SYNCEDMEM_WRITE, 3000, 77, NULL, &pointer, NULL,
                              &tokens[0]));
    assert_ok(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_READ, 1240, 7, NULL, &pointer,
                              NULL, &tokens[1]));
    return buffer;
}

static void end_busy(syncedmem_buffer *buffer, const syncedmem_token_t tokens[2])
{
    assert_ok(syncedmem_end(buffer, tokens[0]));
    assert_ok(syncedmem_end(buffer, tokens[1]));
    syncedmem_release(buffer);
}

/* ---- As snprintf ---- */

static void check_capacity(const syncedmem_buffer *buffer, const char *whole, size_t needed,
                           size_t capacity)
{
    size_t wanted = 1;
    char *room = malloc(capacity + 8);
    cr_assert_not_null(room);
    memset(room, 'x', capacity + 8);
    assert_ok(syncedmem_describe(buffer, room, capacity, &wanted));
    cr_assert_eq(wanted, needed);
    const size_t kept = capacity == 0 ? 0 : capacity < needed ? capacity - 1 : needed - 1;
    cr_assert(memcmp(room, whole, kept) == 0, "capacity %zu", capacity);
    cr_assert(capacity == 0 || room[kept] == '\0', "capacity %zu", capacity);
    for (size_t i = capacity; i < capacity + 8; i++) {
        cr_assert_eq(room[i], 'x', "capacity %zu: byte %zu", capacity, i);
    }
    free(room);
}

Test(describe, every_capacity)
{
    syncedmem_token_t tokens[2];
    syncedmem_buffer *buffer = busy_buffer(tokens);
    const size_t needed = described(buffer);
    char *whole = strdup(text);
    for (size_t capacity = 0; capacity <= needed + 1; capacity++) {
        check_capacity(buffer, whole, needed, capacity);
    }
    size_t wanted = 0;
    assert_ok(syncedmem_describe(buffer, NULL, 0, &wanted));
    cr_assert_eq(wanted, needed);
    free(whole);
    end_busy(buffer, tokens);
}

Test(describe, arguments)
{
    syncedmem_buffer *buffer;
    size_t needed = 9;
    assert_ok(syncedmem_create(SIZE, &buffer));
    text[0] = 'x';
    assert_status(syncedmem_describe(NULL, text, 10, &needed), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_eq(needed, 0);
    cr_assert_eq(text[0], '\0');
    needed = 9;
    assert_status(syncedmem_describe(buffer, NULL, 10, &needed), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_eq(needed, 0);
    assert_status(syncedmem_describe(buffer, text, 10, NULL), SYNCEDMEM_INVALID_ARGUMENT);
    syncedmem_release(buffer);
}

/* ---- What it says ---- */

Test(describe, places_ranges_and_leases)
{
    syncedmem_token_t tokens[2];
    char number[32];
    syncedmem_buffer *buffer = busy_buffer(tokens);
    described(buffer);
    cr_assert(says("5000") && says("HEAD_SPLIT"), "%s", text);
    cr_assert(says("host") && says("sim:0") && says("pinned"), "%s", text);
    cr_assert(says("4000") && says("4500") && says("3000") && says("3077"), "%s", text);
    cr_assert(says("1240") && says("1247") && says("reading") && says("writing"), "%s", text);
    for (int i = 0; i < 2; i++) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)tokens[i]);
        cr_assert(says(number), "%s", text);
    }
    end_busy(buffer, tokens);
}

Test(describe, states)
{
    static const char *const heads[] = {"UNINITIALIZED", "HEAD_AT_CPU", "SYNCED", "HEAD_AT_GPU"};
    static unsigned char block[SIZE];
    syncedmem_buffer *buffer;
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_create(SIZE, &buffer));
    for (int state = 0; state < 4; state++) {
        if (state == 1) {
            assert_ok(syncedmem_adopt(buffer, syncedmem_host(), block, SIZE,
                                      SYNCEDMEM_ADOPT_READ_ONLY, NULL, NULL, NULL));
        } else if (state == 2) {
            assert_ok(syncedmem_gpu_data(buffer, &reading));
        } else if (state == 3) {
            assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
        }
        described(buffer);
        cr_assert(says(heads[state]), "%s", text);
        cr_assert_eq(says("adopted"), state > 0, "%s", text);
    }
    assert_ok(syncedmem_drop(buffer, syncedmem_host()));
    described(buffer);
    cr_assert(!says("adopted"), "%s", text);
    syncedmem_release(buffer);
}

Test(describe, views_and_size_0)
{
    syncedmem_buffer *buffer, *view, *empty;
    const void *reading;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_view(buffer, 321, 654, &view));
    described(view);
    cr_assert(says("321") && says("654") && says("5000"), "%s", text);
    assert_ok(syncedmem_create(0, &empty));
    described(empty);
    cr_assert(says("UNINITIALIZED"), "%s", text);
    assert_ok(syncedmem_gpu_data(empty, &reading));
    described(empty);
    cr_assert(says("HEAD_AT_GPU"), "%s", text);
    syncedmem_release(buffer);
    syncedmem_release(view);
    syncedmem_release(empty);
}

/* More segments than a person reads: the text says so, and stays short. */
Test(describe, many_segments)
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    for (size_t at = 0; at < 200; at++) {
        assert_ok(syncedmem_fill(buffer, at * 10, 5, 1));
    }
    cr_assert_lt(described(buffer), 4000);
    cr_assert(says("400"), "%s", text);
    syncedmem_release(buffer);
}

/* ---- Looking changes nothing ---- */

Test(describe, changes_nothing)
{
    syncedmem_token_t tokens[2];
    syncedmem_buffer *buffer = busy_buffer(tokens);
    const struct figures before = figures_of(buffer);
    const size_t needed = described(buffer);
    char *whole = strdup(text);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(described(buffer), needed);
        cr_assert_str_eq(text, whole);
    }
    const struct figures after = figures_of(buffer);
    cr_assert(figures_equal(&before, &after));
    free(whole);
    end_busy(buffer, tokens);
}

Test(describe, touches_nothing)
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    described(buffer);
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_UNINITIALIZED);
    cr_assert(home_is_open(buffer));
    assert_ok(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    described(buffer);
    cr_assert(says("none yet") || says("sim:0"), "%s", text);
    syncedmem_release(buffer);
}

/* A failure that no call has returned yet is still there afterwards. */
Test(describe, leaves_failures_to_calls)
{
    syncedmem_buffer *buffer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_fill(buffer, 0, SIZE, 1));
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_COPY_LATE, 1));
    assert_ok(syncedmem_prefetch(buffer, sim(0), 0, SIZE, NULL));
    described(buffer);
    cr_assert(says("unfinished"), "%s", text);
    assert_status(syncedmem_wait(buffer), SYNCEDMEM_DEVICE_ERROR);
    syncedmem_release(buffer);
}
