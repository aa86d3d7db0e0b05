/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks that call the library back, with nothing held and no trace left; and work on the default
 * stream of one device, which transfers to another come after. */
#include "support.h"

enum { SIZE = 64, SECONDS = 30 };

/* ---- The log ---- */

struct listener {
    void (*act)(void *context);
    void *context;
    int depth;
    int lines;
};

static void listen(void *user, syncedmem_log_level_t level, const char *line)
{
    struct listener *listener = user;
    (void)level;
    (void)line;
    if (listener->depth++ == 0) {
        listener->lines++;
        listener->act(listener->context);
    }
    listener->depth--;
}

static void ask_for_reason(void *context)
{
    (void)context;
    (void)syncedmem_backend_reason("none");
    (void)syncedmem_device_count();
}

/* The line is of a backend that is being opened: whoever holds a lock there would wait for itself. */
static void child_asks_while_a_backend_opens(void)
{
    struct listener listener = {.act = ask_for_reason};
    syncedmem_place *place;
    alarm(SECONDS);
    CHILD_OK(syncedmem_set_log(listen, &listener, SYNCEDMEM_LOG_DEBUG));
    CHILD_STATUS(syncedmem_device_find("none:0", &place), SYNCEDMEM_NO_DEVICE);
    CHILD_CHECK(listener.lines > 0);
    CHILD_CHECK(contains(syncedmem_last_error(), "none"));
}

static void ask_for_head(void *context)
{
    (void)syncedmem_head(context);
    (void)syncedmem_wait(context);
}

/* The line is of a registration that was refused, under the lock of a buffer. */
static void child_asks_while_a_buffer_works(void)
{
    syncedmem_buffer *buffer;
    syncedmem_place *place;
    const void *pointer;
    alarm(SECONDS);
    CHILD_OK(syncedmem_sim_configure("fail_pin=1"));
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_set_home(buffer, place));
    CHILD_OK(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    struct listener listener = {.act = ask_for_head, .context = buffer};
    CHILD_OK(syncedmem_set_log(listen, &listener, SYNCEDMEM_LOG_DEBUG));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_CHECK(listener.lines > 0);
    syncedmem_release(buffer);
}

static void fail_otherwise(void *context)
{
    syncedmem_place *place;
    (void)context;
    (void)syncedmem_device_find("otherwise", &place);
}

/* The message is of the call that failed, not of what the callback did after it. */
static void child_keeps_the_message(void)
{
    struct listener listener = {.act = fail_otherwise};
    syncedmem_buffer *buffer;
    alarm(SECONDS);
    CHILD_OK(syncedmem_set_log(listen, &listener, SYNCEDMEM_LOG_DEBUG));
    CHILD_STATUS(syncedmem_create(SIZE_MAX, &buffer), SYNCEDMEM_OUT_OF_RANGE);
    CHILD_CHECK(listener.lines == 1);
    CHILD_CHECK(!contains(syncedmem_last_error(), "otherwise"));
}

/* Nor does a release function leave one behind. */
static void child_keeps_it_at_the_end_of_an_adoption(void)
{
    char block[SIZE] = {0};
    syncedmem_buffer *buffer;
    CHILD_STATUS(syncedmem_create(SIZE_MAX, &buffer), SYNCEDMEM_OUT_OF_RANGE);
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_adopt(buffer, syncedmem_host(), block, SIZE, 0, NULL, fail_otherwise, NULL));
    syncedmem_release(buffer);
    CHILD_CHECK(!contains(syncedmem_last_error(), "otherwise"));
}

Test(reentrant, while_a_backend_opens, .timeout = 240)
{
    cr_assert_eq(run_in_child(child_asks_while_a_backend_opens), 0);
}

Test(reentrant, while_a_buffer_works, .timeout = 240)
{
    cr_assert_eq(run_in_child(child_asks_while_a_buffer_works), 0);
}

Test(reentrant, the_message_stays, .timeout = 240)
{
    cr_assert_eq(run_in_child(child_keeps_the_message), 0);
    cr_assert_eq(run_in_child(child_keeps_it_at_the_end_of_an_adoption), 0);
}

/* ---- From device to device ---- */

static void write_late(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)count;
    usleep(50000);
    memset(addresses[0], 7, SIZE);
}

/* The kernel is on the default stream of the first device, by a plain pointer. */
static void child_moves_on(void)
{
    syncedmem_buffer *buffer;
    syncedmem_stream *stream;
    void *pointer;
    const void *host;
    sim_setup();
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_mutable_gpu_data(buffer, &pointer));
    const void *const addresses[] = {pointer};
    CHILD_OK(syncedmem_stream_default(sim(0), &stream));
    CHILD_OK(syncedmem_sim_launch(stream, write_late, NULL, 0, addresses, 1));
    CHILD_OK(syncedmem_prefetch(buffer, sim(1), 0, SIZE, NULL));
    CHILD_OK(syncedmem_drop(buffer, sim(0)));
    CHILD_OK(syncedmem_cpu_data(buffer, &host));
    CHILD_CHECK(((const unsigned char *)host)[SIZE - 1] == 7);
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
}

Test(reentrant, a_transfer_comes_after_the_source_s_default_stream, .timeout = 240)
{
    cr_assert_eq(run_in_child(child_moves_on), 0);
}
