/* SPDX-License-Identifier: BSD-2-Clause */
/* One buffer at as many places as there can be, and one more. */
#include "support.h"

enum { PLACES = 64, SIZE = 100 };

static syncedmem_place *device_at(unsigned index)
{
    syncedmem_place *place = NULL;
    CHILD_OK(syncedmem_device_at(index, &place));
    return place;
}

static void read_at(syncedmem_buffer *buffer, syncedmem_place *place)
{
    void *pointer;
    syncedmem_token_t token;
    CHILD_OK(syncedmem_begin(buffer, place, SYNCEDMEM_READ, 0, SIZE, NULL, &pointer, NULL, &token));
    CHILD_OK(syncedmem_end(buffer, token));
}

/* The host and 62 devices hold the same bytes; the 63rd device has no room in the records. */
static void child_fills_all_places(void)
{
    syncedmem_buffer *buffer;
    void *pointer;
    const void *bytes;
    syncedmem_token_t token;
    CHILD_OK(syncedmem_sim_configure("devices=64,memory=64k"));
    CHILD_CHECK(syncedmem_device_count() == PLACES);
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
    memset(pointer, 7, SIZE);
    for (unsigned i = 0; i + 2 < PLACES; i++)
        read_at(buffer, device_at(i));
    CHILD_STATUS(syncedmem_begin(buffer, device_at(PLACES - 2), SYNCEDMEM_READ, 0, SIZE, NULL,
                                 &pointer, NULL, &token),
                 SYNCEDMEM_UNSUPPORTED);
    CHILD_CHECK(pointer == NULL && token == 0);
    CHILD_OK(syncedmem_cpu_data(buffer, &bytes));
    CHILD_CHECK(((const unsigned char *)bytes)[SIZE - 1] == 7);
    syncedmem_release(buffer);
}

Test(many_places, as_many_as_there_can_be_and_one_more, .timeout = 60)
{
    cr_assert_eq(run_in_child(child_fills_all_places), 0);
}

/* Without a device there is nowhere to save to: refused while bytes could be lost, else fine. */
static void child_drops_the_host_without_a_device(void)
{
    const size_t sizes[] = {SIZE, 0};
    for (size_t i = 0; i < 2; i++) {
        syncedmem_buffer *buffer;
        void *pointer;
        CHILD_OK(syncedmem_create(sizes[i], &buffer));
        CHILD_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
        CHILD_STATUS(syncedmem_drop(buffer, syncedmem_host()),
                     sizes[i] > 0 ? SYNCEDMEM_NO_DEVICE : SYNCEDMEM_OK);
        CHILD_CHECK(syncedmem_head(buffer) == SYNCEDMEM_HEAD_AT_CPU);
        CHILD_OK(syncedmem_mutable_cpu_data(buffer, &pointer));
        syncedmem_release(buffer);
    }
}

Test(many_places, none_but_the_host, .timeout = 60)
{
    cr_assert_eq(run_in_child(child_drops_the_host_without_a_device), 0);
}

/* ---- Where a copy is done, when the target has no memory yet ---- */

static void check_copy_is_done_at(unsigned home, syncedmem_place *wanted)
{
    syncedmem_buffer *from, *to;
    void *pointer;
    size_t bytes;
    assert_ok(syncedmem_create(SIZE, &from));
    assert_ok(syncedmem_set_home(from, sim(0)));
    assert_ok(syncedmem_mutable_gpu_data(from, &pointer));
    device_pattern_write(0, pointer, SIZE, 3);
    assert_ok(syncedmem_create(SIZE, &to));
    assert_ok(syncedmem_set_home(to, sim(home)));
    assert_ok(syncedmem_copy(to, 0, from, 0, SIZE));
    assert_ok(syncedmem_valid_bytes(to, wanted, 0, SIZE, &bytes));
    cr_assert_eq(bytes, SIZE);
    syncedmem_release(from);
    syncedmem_release(to);
}

Test(many_places, a_copy_takes_no_buffer_away_from_its_home, .init = sim_setup, .timeout = 60)
{
    check_copy_is_done_at(0, sim(0));
    check_copy_is_done_at(1, syncedmem_host());
}

/* ---- Home and stream can be asked for ---- */

Test(many_places, the_home_of_a_buffer, .init = sim_setup, .timeout = 60)
{
    syncedmem_buffer *buffer, *view;
    const void *pointer;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_view(buffer, 1, 2, &view));
    cr_assert_null(syncedmem_home(buffer));
    assert_ok(syncedmem_gpu_data(view, &pointer));
    cr_assert_eq(syncedmem_home(buffer), sim(0));
    cr_assert_eq(syncedmem_home(view), sim(0));
    cr_assert_null(syncedmem_home(NULL));
    syncedmem_release(view);
    syncedmem_release(buffer);
}

Test(many_places, the_place_of_a_stream, .init = sim_setup, .timeout = 60)
{
    syncedmem_stream *stream;
    assert_ok(syncedmem_stream_create(sim(1), &stream));
    cr_assert_eq(syncedmem_stream_place(stream), sim(1));
    cr_assert_null(syncedmem_stream_place(NULL));
    syncedmem_stream_release(stream);
}

Test(many_places, a_stream_lives_until_its_last_reference, .init = sim_setup, .timeout = 60)
{
    syncedmem_stream *stream;
    cr_assert_null(syncedmem_stream_retain(NULL));
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    cr_assert_eq(syncedmem_stream_retain(stream), stream);
    syncedmem_stream_release(stream);
    assert_ok(syncedmem_stream_wait(stream));
    cr_assert_eq(syncedmem_stream_place(stream), sim(0));
    syncedmem_stream_release(stream);
}
