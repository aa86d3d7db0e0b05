/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrong arguments, names of statuses, the last error, errno. */
#include <errno.h>
#include <stdlib.h>

#include "support.h"

TestSuite(errors, .init = sim_setup, .timeout = 60);

enum { SENTINEL = 4711, SIZE = 100 };

/* ---- One thing of each kind ---- */

static syncedmem_buffer *buffer;
static syncedmem_stream *stream;
static void *block;

static void make_things(void)
{
    sim_setup();
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
}

static void end_things(void)
{
    syncedmem_release(buffer);
    syncedmem_stream_release(stream);
    assert_ok(syncedmem_sim_free(sim(0), block));
}

/* An argument that is wrong: the status, one line, errno as before. */
#define refused(call)                                                                              \
    do {                                                                                           \
        errno = SENTINEL;                                                                          \
        assert_status(call, SYNCEDMEM_INVALID_ARGUMENT);                                           \
        cr_assert_eq(errno, SENTINEL, "%s: errno", #call);                                         \
        cr_assert(is_one_line(syncedmem_last_error()), "%s: last error", #call);                   \
    } while (0)

/* The same, and the out parameter is cleared. */
#define refused_out(out, call)                                                                     \
    do {                                                                                           \
        (out) = (void *)&things_are_here;                                                          \
        refused(call);                                                                             \
        cr_assert_null(out, "%s: out parameter", #call);                                           \
    } while (0)

static char things_are_here;

/* ---- NULL ---- */

Test(errors, null_places, .init = make_things, .fini = end_things)
{
    syncedmem_place *place;
    void *out;
    uint64_t number = 7;
    refused(syncedmem_device_at(0, NULL));
    refused(syncedmem_device_find("host", NULL));
    refused_out(out, syncedmem_device_find(NULL, (syncedmem_place **)&out));
    refused(syncedmem_device_find(NULL, NULL));
    refused_out(out, syncedmem_device_text(NULL, SYNCEDMEM_PLACE_NAME, (const char **)&out));
    refused(syncedmem_device_text(sim(0), SYNCEDMEM_PLACE_NAME, NULL));
    refused(syncedmem_device_number(NULL, SYNCEDMEM_PLACE_ALIGNMENT, &number));
    cr_assert_eq(number, 0);
    refused(syncedmem_device_number(sim(0), SYNCEDMEM_PLACE_ALIGNMENT, NULL));
    refused(syncedmem_device_current(NULL));
    cr_assert_not_null(syncedmem_backend_reason(NULL));
    cr_assert_not_null(syncedmem_backend_reason("nonsense"));
    cr_assert(is_one_line(syncedmem_backend_reason("nonsense")));
    assert_ok(syncedmem_device_current(&place));
    cr_assert_eq(place, sim(0));
}

Test(errors, null_streams, .init = make_things, .fini = end_things)
{
    void *out;
    refused(syncedmem_stream_create(sim(0), NULL));
    refused_out(out, syncedmem_stream_create(NULL, (syncedmem_stream **)&out));
    refused(syncedmem_stream_default(sim(0), NULL));
    refused_out(out, syncedmem_stream_default(NULL, (syncedmem_stream **)&out));
    refused(syncedmem_stream_wait(NULL));
    syncedmem_stream_release(NULL);
}

Test(errors, null_buffers, .init = make_things, .fini = end_things)
{
    refused(syncedmem_create(10, NULL));
    refused(syncedmem_create(0, NULL));
    cr_assert_null(syncedmem_retain(NULL));
    syncedmem_release(NULL);
    cr_assert_eq(syncedmem_size(NULL), 0);
    cr_assert_eq(syncedmem_head(NULL), SYNCEDMEM_INVALID_ARGUMENT);
    refused(syncedmem_wait(NULL));
    refused(syncedmem_set_home(NULL, sim(0)));
    refused(syncedmem_set_home(buffer, NULL));
    refused(syncedmem_set_home(buffer, syncedmem_host()));
    refused(syncedmem_set_host_policy(NULL, SYNCEDMEM_PINNED));
}

Test(errors, null_plain_calls, .init = make_things, .fini = end_things)
{
    void *out;
    char bytes[SIZE];
    refused_out(out, syncedmem_cpu_data(NULL, (const void **)&out));
    refused_out(out, syncedmem_mutable_cpu_data(NULL, &out));
    refused_out(out, syncedmem_gpu_data(NULL, (const void **)&out));
    refused_out(out, syncedmem_mutable_gpu_data(NULL, &out));
    refused(syncedmem_cpu_data(buffer, NULL));
    refused(syncedmem_mutable_cpu_data(buffer, NULL));
    refused(syncedmem_gpu_data(buffer, NULL));
    refused(syncedmem_mutable_gpu_data(buffer, NULL));
    refused(syncedmem_cpu_data(NULL, NULL));
    refused(syncedmem_mutable_gpu_data(NULL, NULL));
    refused(syncedmem_set_cpu_data(NULL, bytes, SIZE));
    refused(syncedmem_set_cpu_data(buffer, NULL, SIZE));
    refused(syncedmem_set_gpu_data(NULL, block, SIZE));
    refused(syncedmem_set_gpu_data(buffer, NULL, SIZE));
    refused(syncedmem_async_gpu_push(NULL, stream));
    refused(syncedmem_async_gpu_push(NULL, NULL));
    cr_assert_eq(syncedmem_head(buffer), SYNCEDMEM_UNINITIALIZED);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_HOST_ALLOCATIONS), 0);
    cr_assert_eq(stat_of(buffer, SYNCEDMEM_STAT_DEVICE_ALLOCATIONS), 0);
    cr_assert(home_is_open(buffer));
}

/* A NULL out parameter is refused where the call would have nothing to do, too. */
Test(errors, null_out_parameters_of_hot_calls, .init = make_things, .fini = end_things)
{
    void *pointer;
    const void *reading;
    assert_ok(syncedmem_mutable_cpu_data(buffer, &pointer));
    refused(syncedmem_mutable_cpu_data(buffer, NULL));
    refused(syncedmem_cpu_data(buffer, NULL));
    assert_ok(syncedmem_gpu_data(buffer, &reading));
    refused(syncedmem_gpu_data(buffer, NULL));
    assert_ok(syncedmem_mutable_gpu_data(buffer, &pointer));
    refused(syncedmem_mutable_gpu_data(buffer, NULL));
}

Test(errors, null_statistics, .init = make_things, .fini = end_things)
{
    uint64_t figure = 7;
    refused(syncedmem_stat(buffer, SYNCEDMEM_STAT_TRANSFERS, NULL));
    refused(syncedmem_stat(NULL, SYNCEDMEM_STAT_TRANSFERS, NULL));
    assert_ok(syncedmem_stat(NULL, SYNCEDMEM_STAT_TRANSFERS, &figure));
}

static void kernel(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

Test(errors, null_simulator, .init = make_things, .fini = end_things)
{
    const void *const addresses[] = {block};
    void *out;
    refused(syncedmem_sim_configure(NULL));
    refused(syncedmem_sim_launch(NULL, kernel, NULL, 0, addresses, 1));
    refused(syncedmem_sim_launch(stream, NULL, NULL, 0, addresses, 1));
    refused(syncedmem_sim_launch(stream, kernel, NULL, 4, addresses, 1));
    refused(syncedmem_sim_launch(stream, kernel, NULL, 0, NULL, 1));
    refused_out(out, syncedmem_sim_alloc(NULL, SIZE, &out));
    refused(syncedmem_sim_alloc(sim(0), SIZE, NULL));
    refused(syncedmem_sim_free(NULL, block));
    assert_ok(syncedmem_sim_free(sim(0), NULL));
    refused(syncedmem_sim_fail(NULL, SYNCEDMEM_SIM_FAIL_COPY, 1));
}

/* ---- Unknown keys, policies, kinds; the host where a device is wanted ---- */

Test(errors, unknown_keys, .init = make_things, .fini = end_things)
{
    static const syncedmem_key_t keys[] = {0, -1, 4, 99, 100, 105, 1000, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        void *out;
        uint64_t number = 7;
        refused_out(out, syncedmem_device_text(sim(0), keys[i], (const char **)&out));
        refused(syncedmem_device_number(syncedmem_host(), keys[i], &number));
        cr_assert_eq(number, 0);
        if (keys[i] != 4) {
            number = 7;
            refused(syncedmem_stat(buffer, keys[i], &number));
            cr_assert_eq(number, 0);
            refused(syncedmem_stat(NULL, keys[i], &number));
            cr_assert_null(syncedmem_stat_name(keys[i]));
        }
    }
    /* A key of the other kind. */
    uint64_t number = 7;
    void *out;
    refused(syncedmem_device_number(sim(0), SYNCEDMEM_PLACE_NAME, &number));
    refused_out(out, syncedmem_device_text(sim(0), SYNCEDMEM_PLACE_UNIFIED, (const char **)&out));
}

Test(errors, unknown_policies_and_kinds, .init = make_things, .fini = end_things)
{
    static const int32_t values[] = {0, -1, 3, 99, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        refused(syncedmem_set_host_policy(buffer, values[i]));
        refused(syncedmem_set_default_host_policy(values[i]));
        if (values[i] != 3) {
            refused(syncedmem_sim_fail(sim(0), values[i], 1));
        }
    }
    refused(syncedmem_sim_fail(sim(0), 6, 1));
}

Test(errors, the_host_is_no_device, .init = make_things, .fini = end_things)
{
    void *out;
    refused_out(out, syncedmem_stream_create(syncedmem_host(), (syncedmem_stream **)&out));
    refused_out(out, syncedmem_stream_default(syncedmem_host(), (syncedmem_stream **)&out));
    refused(syncedmem_device_set_current(syncedmem_host()));
    refused_out(out, syncedmem_sim_alloc(syncedmem_host(), SIZE, &out));
    refused(syncedmem_sim_free(syncedmem_host(), block));
    refused(syncedmem_sim_fail(syncedmem_host(), SYNCEDMEM_SIM_FAIL_COPY, 1));
}

/* ---- Names ---- */

static const struct {
    syncedmem_status_t status;
    const char *name;
} statuses[] = {
    {0, "OK"},
    {-10, "INVALID_ARGUMENT"},
    {-11, "OUT_OF_RANGE"},
    {-12, "WRONG_STATE"},
    {-13, "UNSUPPORTED"},
    {-14, "NOT_FOUND"},
    {-15, "WRONG_MEMORY"},
    {-16, "BUSY"},
    {-17, "INVALID_LEASE"},
    {-30, "OUT_OF_HOST_MEMORY"},
    {-31, "OUT_OF_DEVICE_MEMORY"},
    {-50, "NO_DEVICE"},
    {-51, "DEVICE_ERROR"},
};

Test(errors, status_names)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        cr_assert_str_eq(syncedmem_status_name(statuses[i].status), statuses[i].name);
        cr_assert(is_one_line(syncedmem_status_text(statuses[i].status)));
        for (size_t j = 0; j < i; j++) {
            cr_assert(strcmp(syncedmem_status_text(statuses[i].status),
                             syncedmem_status_text(statuses[j].status)) != 0);
        }
    }
    static const int32_t unknown[] = {1, -1, -9, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        cr_assert_str_eq(syncedmem_status_name(unknown[i]), "UNKNOWN");
        cr_assert(is_one_line(syncedmem_status_text(unknown[i])));
    }
}

Test(errors, statistics_have_names)
{
    static const char *const names[STATS] = {
        NULL,
        "transfers",
        "transfers_to_device",
        "transfers_to_host",
        "bytes_to_device",
        "bytes_to_host",
        "host_allocations",
        "device_allocations",
        "host_bytes",
        "device_bytes",
        "bytes_zeroed",
        "waits",
        "pin_fallbacks",
        "leases",
        "merges",
        "stream_waits",
    };
    for (syncedmem_key_t key = 1; key < STATS; key++) {
        cr_assert_str_eq(syncedmem_stat_name(key), names[key]);
    }
}

Test(errors, version)
{
    cr_assert_eq(syncedmem_version(), SYNCEDMEM_VERSION);
    cr_assert_eq(SYNCEDMEM_VERSION, 10000);
}
