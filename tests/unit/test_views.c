/* SPDX-License-Identifier: BSD-2-Clause */
/* Views: handles on a part, with no bytes and no state of their own. */
#include <stdlib.h>

#include "support.h"

TestSuite(views, .init = sim_setup, .timeout = 120);

enum { SIZE = 4001 };

/* ---- Every pair of handles ---- */

enum { PARENT, VIEW, SIBLING, OVERLAPPING, NESTED, HANDLES };

static const struct {
    size_t offset, length;
} parts[HANDLES] = {{0, SIZE}, {101, 999}, {1100, 777}, {603, 1001}, {333, 501}};

struct family {
    syncedmem_buffer *handles[HANDLES];
    unsigned char bytes[SIZE];
};

static void family_make(struct family *family)
{
    *family = (struct family){{NULL}, {0}};
    assert_ok(syncedmem_create(SIZE, &family->handles[PARENT]));
    for (int i = VIEW; i < NESTED; i++) {
        assert_ok(syncedmem_view(family->handles[PARENT], parts[i].offset, parts[i].length,
                                 &family->handles[i]));
    }
    assert_ok(syncedmem_view(family->handles[VIEW], parts[NESTED].offset - parts[VIEW].offset,
                             parts[NESTED].length, &family->handles[NESTED]));
}

static void family_end(struct family *family)
{
    for (int i = 0; i < HANDLES; i++) {
        syncedmem_release(family->handles[i]);
    }
}

/* The side of a plain call. */
static void write_through(struct family *family, int which, bool device, unsigned seed)
{
    void *pointer;
    unsigned char *bytes = family->bytes + parts[which].offset;
    pattern_write(bytes, parts[which].length, seed);
    if (device) {
        assert_ok(syncedmem_mutable_gpu_data(family->handles[which], &pointer));
        device_write(0, pointer, bytes, parts[which].length);
    } else {
        assert_ok(syncedmem_mutable_cpu_data(family->handles[which], &pointer));
        memcpy(pointer, bytes, parts[which].length);
    }
}

static bool right_through(struct family *family, int which, bool device)
{
    static unsigned char copy[SIZE];
    const void *pointer;
    const size_t length = parts[which].length;
    if (device) {
        assert_ok(syncedmem_gpu_data(family->handles[which], &pointer));
        device_read(0, pointer, copy, length);
        pointer = copy;
    } else {
        assert_ok(syncedmem_cpu_data(family->handles[which], &pointer));
    }
    return memcmp(pointer, family->bytes + parts[which].offset, length) == 0;
}

static void make_state(struct family *family, int state)
{
    if (state > 0) {
        write_through(family, PARENT, state == 2, 9);
    }
    if (state == 3) {
        cr_assert(right_through(family, PARENT, true));
    }
}

/* Twice, so that the second round meets what may be hot from the first. */
static void check_pair(int writer, bool at_device, int reader, int state)
{
    struct family family;
    family_make(&family);
    make_state(&family, state);
    for (unsigned seed = 1; seed < 3; seed++) {
        write_through(&family, writer, at_device, seed);
        cr_assert(right_through(&family, reader, !at_device),
                  "state %d: written through %d at %d, read through %d", state, writer, at_device,
                  reader);
        cr_assert(right_through(&family, reader, at_device));
    }
    for (int i = 0; i < HANDLES; i++) {
        cr_assert(right_through(&family, i, true) && right_through(&family, i, false));
    }
    family_end(&family);
}

Test(views, every_pair)
{
    for (int writer = 0; writer < HANDLES; writer++) {
        for (int reader = 0; reader < HANDLES; reader++) {
            for (int state = 0; state < 4; state++) {
                check_pair(writer, false, reader, state);
                check_pair(writer, true, reader, state);
            }
        }
    }
}

/* All accessors of all handles hot, then a write through one: none of the others is stale. */
Test(views, hot_calls_stay_right)
{
    struct family family;
    family_make(&family);
    for (unsigned round = 0; round < 40; round++) {
        const int writer = (int)(round % HANDLES);
        for (int i = 0; i < HANDLES; i++) {
            cr_assert(right_through(&family, i, true) && right_through(&family, i, false));
            cr_assert(right_through(&family, i, true) && right_through(&family, i, false));
        }
        write_through(&family, writer, round / HANDLES % 2, round + 1);
        write_through(&family, (writer + 1) % HANDLES, round % 2, round + 2);
    }
    family_end(&family);
}

/* Only what is stale of a view moves. */
Test(views, move_their_range_only)
{
    struct family family;
    family_make(&family);
    write_through(&family, PARENT, false, 1);
    cr_assert(right_through(&family, VIEW, true));
    cr_assert_eq(stat_of(family.handles[PARENT], SYNCEDMEM_STAT_BYTES_TO_DEVICE),
                 parts[VIEW].length);
    cr_assert(right_through(&family, NESTED, true));
    cr_assert_eq(stat_of(family.handles[NESTED], SYNCEDMEM_STAT_TRANSFERS), 1);
    cr_assert(right_through(&family, PARENT, true));
    cr_assert_eq(stat_of(family.handles[PARENT], SYNCEDMEM_STAT_BYTES_TO_DEVICE), SIZE);
    family_end(&family);
}

/* ---- Head ---- */

Test(views, head_is_of_the_range)
{
    struct family family;
    family_make(&family);
    write_through(&family, VIEW, false, 1);
    cr_assert_eq(syncedmem_head(family.handles[VIEW]), SYNCEDMEM_HEAD_AT_CPU);
    cr_assert_eq(syncedmem_head(family.handles[SIBLING]), SYNCEDMEM_UNINITIALIZED);
    cr_assert_eq(syncedmem_head(family.handles[PARENT]), SYNCEDMEM_HEAD_AT_CPU);
    write_through(&family, SIBLING, true, 2);
    cr_assert_eq(syncedmem_head(family.handles[SIBLING]), SYNCEDMEM_HEAD_AT_GPU);
    cr_assert_eq(syncedmem_head(family.handles[NESTED]), SYNCEDMEM_HEAD_AT_CPU);
    cr_assert_eq(syncedmem_head(family.handles[OVERLAPPING]), SYNCEDMEM_HEAD_SPLIT);
    cr_assert_eq(syncedmem_head(family.handles[PARENT]), SYNCEDMEM_HEAD_SPLIT);
    cr_assert(right_through(&family, VIEW, true));
    cr_assert_eq(syncedmem_head(family.handles[VIEW]), SYNCEDMEM_SYNCED);
    cr_assert_eq(syncedmem_head(family.handles[OVERLAPPING]), SYNCEDMEM_HEAD_AT_GPU);
    cr_assert(right_through(&family, PARENT, false));
    cr_assert_eq(syncedmem_head(family.handles[OVERLAPPING]), SYNCEDMEM_SYNCED);
    cr_assert_eq(syncedmem_head(family.handles[PARENT]), SYNCEDMEM_HEAD_AT_CPU);
    family_end(&family);
}

/* A push of a view asks for the view's own head. */
Test(views, push)
{
    struct family family;
    family_make(&family);
    assert_status(syncedmem_async_gpu_push(family.handles[VIEW], NULL), SYNCEDMEM_WRONG_STATE);
    write_through(&family, SIBLING, true, 2);
    write_through(&family, VIEW, false, 1);
    assert_status(syncedmem_async_gpu_push(family.handles[PARENT], NULL), SYNCEDMEM_WRONG_STATE);
    assert_status(syncedmem_async_gpu_push(family.handles[SIBLING], NULL), SYNCEDMEM_WRONG_STATE);
    assert_ok(syncedmem_async_gpu_push(family.handles[VIEW], NULL));
    cr_assert_eq(syncedmem_head(family.handles[VIEW]), SYNCEDMEM_SYNCED);
    for (int i = 0; i < HANDLES; i++) {
        cr_assert(right_through(&family, i, true) && right_through(&family, i, false));
    }
    family_end(&family);
}

/* ---- Pointers ---- */

Test(views, pointers_lie_in_the_parents)
{
    struct family family;
    const void *whole[2], *part[2];
    family_make(&family);
    assert_ok(syncedmem_cpu_data(family.handles[PARENT], &whole[0]));
    assert_ok(syncedmem_gpu_data(family.handles[PARENT], &whole[1]));
    for (int i = 0; i < HANDLES; i++) {
        assert_ok(syncedmem_cpu_data(family.handles[i], &part[0]));
        assert_ok(syncedmem_gpu_data(family.handles[i], &part[1]));
        for (int side = 0; side < 2; side++) {
            cr_assert_eq((const char *)part[side], (const char *)whole[side] + parts[i].offset);
        }
        cr_assert_eq(syncedmem_size(family.handles[i]), parts[i].length);
    }
    family_end(&family);
}

/* ---- Life ---- */

Test(views, outlive_their_parents)
{
    const uint64_t host = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    const uint64_t free_before = device_memory_free(0);
    for (int last = 0; last < HANDLES; last++) {
        struct family family;
        family_make(&family);
        write_through(&family, PARENT, false, 3);
        cr_assert(right_through(&family, PARENT, true));
        for (int i = 0; i < HANDLES; i++) {
            if (i != last) {
                syncedmem_release(family.handles[i]);
                cr_assert(right_through(&family, last, i % 2));
            }
        }
        write_through(&family, last, true, 4);
        cr_assert(right_through(&family, last, false));
        cr_assert_gt(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host);
        syncedmem_release(family.handles[last]);
        cr_assert_eq(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES), host);
        cr_assert_eq(device_memory_free(0), free_before);
    }
}

Test(views, are_counted_as_any_handle)
{
    struct family family;
    family_make(&family);
    syncedmem_buffer *view = family.handles[VIEW];
    cr_assert_eq(syncedmem_retain(view), view);
    syncedmem_release(view);
    write_through(&family, VIEW, false, 1);
    cr_assert(right_through(&family, VIEW, true));
    family_end(&family);
}

/* ---- What a view cannot do, and arguments ---- */

Test(views, unsupported_calls)
{
    static unsigned char block[SIZE];
    struct family family;
    void *device;
    int calls = 0;
    family_make(&family);
    write_through(&family, PARENT, false, 1);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &device));
    for (int i = VIEW; i < HANDLES; i++) {
        syncedmem_buffer *view = family.handles[i];
        const struct figures before = figures_of(view);
        assert_status(syncedmem_set_cpu_data(view, block, SIZE), SYNCEDMEM_UNSUPPORTED);
        assert_status(syncedmem_set_gpu_data(view, device, SIZE), SYNCEDMEM_UNSUPPORTED);
        assert_status(syncedmem_adopt(view, syncedmem_host(), block, SIZE, 0, NULL, NULL, &calls),
                      SYNCEDMEM_UNSUPPORTED);
        assert_status(syncedmem_drop(view, syncedmem_host()), SYNCEDMEM_UNSUPPORTED);
        const struct figures after = figures_of(view);
        cr_assert(figures_equal(&before, &after));
    }
    /* A view of the whole is a view. */
    syncedmem_buffer *whole;
    assert_ok(syncedmem_view(family.handles[PARENT], 0, SIZE, &whole));
    assert_status(syncedmem_set_cpu_data(whole, block, SIZE), SYNCEDMEM_UNSUPPORTED);
    syncedmem_release(whole);
    assert_ok(syncedmem_sim_free(sim(0), device));
    family_end(&family);
}

Test(views, arguments)
{
    struct family family;
    syncedmem_buffer *out = (syncedmem_buffer *)(void *)&family;
    family_make(&family);
    syncedmem_buffer *view = family.handles[VIEW];
    static const size_t wrong[][2] = {{0, 1000},     {999, 1},      {1000, 0},
                                      {SIZE_MAX, 1}, {1, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        out = view;
        assert_status(syncedmem_view(view, wrong[i][0], wrong[i][1], &out), SYNCEDMEM_OUT_OF_RANGE);
        cr_assert_null(out);
    }
    out = view;
    assert_status(syncedmem_view(NULL, 0, 0, &out), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_null(out);
    assert_status(syncedmem_view(view, 0, 0, NULL), SYNCEDMEM_INVALID_ARGUMENT);
    family_end(&family);
}

/* ---- Home and policy are the whole's ---- */

Test(views, share_home_and_policy)
{
    struct family family;
    const void *pointer;
    family_make(&family);
    assert_ok(syncedmem_set_home(family.handles[VIEW], sim(1)));
    assert_ok(syncedmem_set_host_policy(family.handles[NESTED], SYNCEDMEM_PINNED));
    assert_ok(syncedmem_cpu_data(family.handles[SIBLING], &pointer));
    assert_status(syncedmem_set_host_policy(family.handles[PARENT], SYNCEDMEM_PAGEABLE),
                  SYNCEDMEM_WRONG_STATE);
    assert_ok(syncedmem_gpu_data(family.handles[SIBLING], &pointer));
    cr_assert(device_knows(1, pointer));
    assert_status(syncedmem_set_home(family.handles[PARENT], sim(0)), SYNCEDMEM_WRONG_STATE);
    family_end(&family);
}

/* ---- Empty views ---- */

static void check_empty(syncedmem_buffer *parent, size_t offset, const void *host_of_empty)
{
    syncedmem_buffer *view;
    const void *reading;
    void *writing = &view;
    assert_ok(syncedmem_view(parent, offset, 0, &view));
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(syncedmem_head(view), SYNCEDMEM_UNINITIALIZED);
        assert_ok(syncedmem_cpu_data(view, &reading));
        cr_assert_eq(reading, host_of_empty);
        assert_ok(syncedmem_mutable_cpu_data(view, &writing));
        cr_assert_eq(writing, host_of_empty);
        assert_ok(syncedmem_gpu_data(view, &reading));
        cr_assert_null(reading);
        writing = &view;
        assert_ok(syncedmem_mutable_gpu_data(view, &writing));
        cr_assert_null(writing);
    }
    assert_status(syncedmem_async_gpu_push(view, NULL), SYNCEDMEM_WRONG_STATE);
    assert_ok(syncedmem_fill(view, 0, 0, 1));
    assert_ok(syncedmem_copy(view, 0, parent, 0, 0));
    assert_ok(syncedmem_prefetch(view, sim(0), 0, 0, NULL));
    assert_ok(syncedmem_mark_modified(view, sim(0), 0, 0));
    cr_assert_eq(syncedmem_size(view), 0);
    syncedmem_release(view);
}

Test(views, of_length_0)
{
    struct family family;
    syncedmem_buffer *empty;
    const void *host_of_empty;
    assert_ok(syncedmem_create(0, &empty));
    assert_ok(syncedmem_cpu_data(empty, &host_of_empty));
    syncedmem_release(empty);
    family_make(&family);
    for (int state = 0; state < 4; state++) {
        make_state(&family, state);
        const struct figures before = figures_of(family.handles[PARENT]);
        check_empty(family.handles[PARENT], 0, host_of_empty);
        check_empty(family.handles[PARENT], 500, host_of_empty);
        check_empty(family.handles[PARENT], SIZE, host_of_empty);
        const struct figures after = figures_of(family.handles[PARENT]);
        cr_assert(figures_equal(&before, &after), "state %d", state);
    }
    family_end(&family);
}
