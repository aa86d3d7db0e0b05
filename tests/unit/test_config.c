/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator's specification and the environment. Each test is a process of its own. */
#include <stdlib.h>

#include "support.h"

/* ---- Specifications that are refused, with the setting that is to be named ---- */

static const struct {
    const char *specification;
    const char *setting;
} malformed[] = {
    {"devices=0", "devices"},
    {"devices=65", "devices"},
    {"devices=-1", "devices"},
    {"devices=", "devices"},
    {"devices", "devices"},
    {"devices=x", "devices"},
    {"devices=1x", "devices"},
    {"devices=1k", "devices"},
    {"devices=4294967297", "devices"},
    {"devices=18446744073709551617", "devices"},
    {"devices=2;memory=1m", "devices"},
    {"devices==2", "devices"},
    {"memory=", "memory"},
    {"memory=m", "memory"},
    {"memory=-1m", "memory"},
    {"memory=1t", "memory"},
    {"memory=1mb", "memory"},
    {"memory=1.5g", "memory"},
    {"memory=18446744073709551616", "memory"},
    {"memory=17179869184g", "memory"},
    {"memory=99999999999999999999999999", "memory"},
    {"latency=1h", "latency"},
    {"latency=1s", "latency"},
    {"latency=us", "latency"},
    {"latency=-1us", "latency"},
    {"latency=1k", "latency"},
    {"latency=18446744073709551615ms", "latency"},
    {"bandwidth=fast", "bandwidth"},
    {"bandwidth=1us", "bandwidth"},
    {"launch=1x", "launch"},
    {"fail_alloc=x", "fail_alloc"},
    {"fail_copy=-1", "fail_copy"},
    {"fail_copy_late=1.5", "fail_copy_late"},
    {"fail_pin=", "fail_pin"},
    {"bogus=1", "bogus"},
    {"device=1", "device"},
    {"Devices=1", "Devices"},
    {"devices=1,bogus=2", "bogus"},
    {"devices=1,memory=0x10", "memory"},
    {"memory=1m,devices=99,latency=1us", "devices"},
};

CHILD_TEST(config, malformed_specifications)
{
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        const syncedmem_status_t status = syncedmem_sim_configure(malformed[i].specification);
        if (status != SYNCEDMEM_INVALID_ARGUMENT || !is_one_line(syncedmem_last_error()) ||
            !contains(syncedmem_last_error(), malformed[i].setting)) {
            fprintf(stderr, "\"%s\": %s, %s\n", malformed[i].specification,
                    syncedmem_status_name(status), syncedmem_last_error());
            _exit(1);
        }
    }
    CHILD_STATUS(syncedmem_sim_configure("=1"), SYNCEDMEM_INVALID_ARGUMENT);
    CHILD_STATUS(syncedmem_sim_configure("nothing"), SYNCEDMEM_INVALID_ARGUMENT);
    CHILD_STATUS(syncedmem_sim_configure(",,"), SYNCEDMEM_INVALID_ARGUMENT);
    /* None of them was taken, and the simulator is not in use. */
    CHILD_CHECK(syncedmem_device_count() == 0);
    CHILD_OK(syncedmem_sim_configure("devices=5,memory=3m"));
    CHILD_CHECK(syncedmem_device_count() == 5);
    uint64_t memory;
    CHILD_OK(syncedmem_device_number(sim(4), SYNCEDMEM_PLACE_MEMORY_TOTAL, &memory));
    CHILD_CHECK(memory == (uint64_t)3 << 20);
}

CHILD_TEST(config, everything_at_once)
{
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=512k,latency=3us,bandwidth=1g,launch=100ns,"
                                     "fail_alloc=0,fail_copy=0,fail_copy_late=0,fail_pin=0"));
    CHILD_CHECK(syncedmem_device_count() == 2);
    CHILD_CHECK(device_memory_free(1) == 512 << 10);
}

CHILD_TEST(config, most_devices)
{
    syncedmem_place *place;
    CHILD_OK(syncedmem_sim_configure("devices=64,memory=64k"));
    CHILD_CHECK(syncedmem_device_count() == 64);
    CHILD_OK(syncedmem_device_find("sim:62", &place));
    CHILD_STATUS(syncedmem_device_find("sim:64", &place), SYNCEDMEM_NO_DEVICE);
}

CHILD_TEST(config, defaults)
{
    uint64_t memory;
    CHILD_OK(syncedmem_sim_configure(""));
    CHILD_CHECK(syncedmem_device_count() == 1);
    CHILD_OK(syncedmem_device_number(sim(0), SYNCEDMEM_PLACE_MEMORY_TOTAL, &memory));
    CHILD_CHECK(memory == (sizeof(void *) == 4 ? (uint64_t)64 << 20 : (uint64_t)4 << 30));
}

CHILD_TEST(config, not_after_use)
{
    void *block;
    CHILD_OK(syncedmem_sim_configure("devices=1"));
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=1m"));
    CHILD_OK(syncedmem_sim_alloc(sim(0), 100, &block));
    CHILD_STATUS(syncedmem_sim_configure("devices=3"), SYNCEDMEM_WRONG_STATE);
    CHILD_CHECK(is_one_line(syncedmem_last_error()));
    CHILD_CHECK(syncedmem_device_count() == 2);
    CHILD_OK(syncedmem_sim_free(sim(0), block));
    CHILD_STATUS(syncedmem_sim_configure("devices=3"), SYNCEDMEM_WRONG_STATE);
}

/* Counted on each device by itself, and once. */
CHILD_TEST(config, failures_by_specification)
{
    void *first, *second;
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=1m,fail_alloc=2"));
    for (unsigned device = 0; device < 2; device++) {
        CHILD_OK(syncedmem_sim_alloc(sim(device), 100, &first));
        CHILD_STATUS(syncedmem_sim_alloc(sim(device), 100, &second),
                     SYNCEDMEM_OUT_OF_DEVICE_MEMORY);
        CHILD_CHECK(second == NULL);
        CHILD_OK(syncedmem_sim_alloc(sim(device), 100, &second));
        CHILD_OK(syncedmem_sim_free(sim(device), first));
        CHILD_OK(syncedmem_sim_free(sim(device), second));
    }
}

/* The n-th copy of a device, counted from its first use, by each of the two settings. */
static void check_third_copy_fails(const char *specification)
{
    const void *reading;
    void *writing;
    syncedmem_buffer *buffer;
    CHILD_OK(syncedmem_sim_configure(specification));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(1000, &buffer));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
    CHILD_OK(syncedmem_gpu_data(buffer, &reading));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
    pattern_write(writing, 1000, 3);
    CHILD_OK(syncedmem_gpu_data(buffer, &reading));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
    CHILD_STATUS(syncedmem_gpu_data(buffer, &reading), SYNCEDMEM_DEVICE_ERROR);
    CHILD_CHECK(reading == NULL && pattern_is(writing, 1000, 3));
    CHILD_OK(syncedmem_gpu_data(buffer, &reading));
    CHILD_CHECK(device_pattern_is(0, reading, 1000, 3));
    syncedmem_release(buffer);
}

CHILD_TEST(config, third_copy)
{
    check_third_copy_fails("fail_copy=3,memory=1m");
}

CHILD_TEST(config, third_copy_late)
{
    check_third_copy_fails("fail_copy_late=3,memory=1m");
}

CHILD_TEST(config, first_pin)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_OK(syncedmem_sim_configure("fail_pin=1,memory=1m"));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(1000, &buffer));
    CHILD_OK(syncedmem_set_host_policy(buffer, SYNCEDMEM_PINNED));
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_CHECK(stat_of(buffer, SYNCEDMEM_STAT_PIN_FALLBACKS) == 1);
    syncedmem_release(buffer);
}

/* ---- Costs ---- */

static uint64_t time_transfer(size_t size)
{
    const void *reading;
    void *writing;
    syncedmem_buffer *buffer;
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_create(size, &buffer));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
    const uint64_t begin = now_ms();
    CHILD_OK(syncedmem_gpu_data(buffer, &reading));
    const uint64_t end = now_ms();
    syncedmem_release(buffer);
    return end - begin;
}

CHILD_TEST(config, latency)
{
    CHILD_OK(syncedmem_sim_configure("latency=60ms,memory=1m"));
    CHILD_CHECK(time_transfer(1) >= 59);
}

CHILD_TEST(config, bandwidth)
{
    CHILD_OK(syncedmem_sim_configure("bandwidth=1m,memory=1m"));
    CHILD_CHECK(time_transfer(100000) >= 94);
}

CHILD_TEST(config, launch)
{
    CHILD_OK(syncedmem_sim_configure("launch=50ms,memory=1m"));
    void *block;
    CHILD_OK(syncedmem_sim_alloc(sim(0), 10, &block));
    const uint64_t begin = now_ms();
    device_pattern_write(0, block, 10, 1);
    CHILD_CHECK(now_ms() - begin >= 49);
    CHILD_OK(syncedmem_sim_free(sim(0), block));
}

/* ---- The environment ---- */

CHILD_TEST(config, environment_specification)
{
    CHILD_CHECK(setenv("SYNCEDMEM_SIM", "devices=3,memory=2m", 1) == 0);
    CHILD_CHECK(syncedmem_device_count() == 3);
    CHILD_CHECK(device_memory_free(2) == 2 << 20);
    syncedmem_place *place;
    CHILD_STATUS(syncedmem_device_current(&place), SYNCEDMEM_NO_DEVICE);
}

CHILD_TEST(config, configure_goes_before_the_environment)
{
    CHILD_CHECK(setenv("SYNCEDMEM_SIM", "devices=3,memory=2m", 1) == 0);
    CHILD_OK(syncedmem_sim_configure("memory=1m"));
    CHILD_CHECK(syncedmem_device_count() == 1);
    CHILD_CHECK(device_memory_free(0) == 1 << 20);
}

CHILD_TEST(config, environment_device)
{
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_CHECK(setenv("SYNCEDMEM_DEVICE", "sim:1", 1) == 0);
    CHILD_CHECK(setenv("SYNCEDMEM_SIM", "devices=2,memory=1m", 1) == 0);
    CHILD_OK(syncedmem_create(100, &buffer));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    CHILD_CHECK(home_is_fixed_at(buffer, 1));
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == sim(1));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == sim(0));
    CHILD_OK(syncedmem_device_set_current(NULL));
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == sim(1));
    syncedmem_release(buffer);
}

CHILD_TEST(config, environment_device_alone)
{
    syncedmem_place *place;
    CHILD_CHECK(setenv("SYNCEDMEM_DEVICE", "sim:0", 1) == 0);
    CHILD_OK(syncedmem_device_current(&place));
    CHILD_CHECK(place == sim(0));
}

static const char *environment_value;
static syncedmem_status_t environment_status;

/* No device: the same status from every call that asks for it, and what was asked for is said. */
static void check_unusable_device(void)
{
    syncedmem_place *place;
    syncedmem_buffer *buffer;
    const void *pointer;
    CHILD_CHECK(setenv("SYNCEDMEM_DEVICE", environment_value, 1) == 0);
    CHILD_CHECK(setenv("SYNCEDMEM_SIM", "memory=1m", 1) == 0);
    CHILD_STATUS(syncedmem_device_current(&place), environment_status);
    CHILD_CHECK(place == NULL && is_one_line(syncedmem_last_error()));
    CHILD_CHECK(contains(syncedmem_last_error(), environment_value));
    CHILD_OK(syncedmem_create(100, &buffer));
    CHILD_STATUS(syncedmem_gpu_data(buffer, &pointer), environment_status);
    CHILD_CHECK(syncedmem_head(buffer) == SYNCEDMEM_UNINITIALIZED);
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_OK(syncedmem_set_home(buffer, sim(0)));
    CHILD_OK(syncedmem_gpu_data(buffer, &pointer));
    syncedmem_release(buffer);
}

static void check_environment_device(const char *value, syncedmem_status_t status)
{
    environment_value = value;
    environment_status = status;
    cr_assert_eq(run_in_child(check_unusable_device), 0, "%s", value);
}

Test(config, environment_device_that_is_none, .timeout = 60)
{
    check_environment_device("sim:9", SYNCEDMEM_NO_DEVICE);
    check_environment_device("nonsense", SYNCEDMEM_NOT_FOUND);
    check_environment_device("gpu:0", SYNCEDMEM_NOT_FOUND);
    check_environment_device("host", SYNCEDMEM_NOT_FOUND);
}

/* Malformed: ignored, and named in the log. */
static bool named_in_log;

static void look_for_variable(void *user, syncedmem_log_level_t level, const char *line)
{
    CHILD_CHECK(is_one_line(line));
    CHILD_CHECK(level >= SYNCEDMEM_LOG_ERROR && level <= SYNCEDMEM_LOG_WARNING);
    named_in_log = named_in_log || contains(line, user);
}

static void check_malformed_environment(void)
{
    static char variable[] = "SYNCEDMEM_SIM";
    syncedmem_place *place;
    CHILD_CHECK(setenv(variable, environment_value, 1) == 0);
    CHILD_OK(syncedmem_set_log(look_for_variable, variable, SYNCEDMEM_LOG_WARNING));
    (void)syncedmem_device_count();
    CHILD_OK(syncedmem_device_find("sim:0", &place));
    CHILD_CHECK(syncedmem_device_count() == 1);
    CHILD_CHECK(named_in_log);
}

Test(config, environment_malformed, .timeout = 60)
{
    static const char *const values[] = {"devices=0", "bogus=2", "memory=1t", "latency=1h",
                                         "devices=1,fail_copy=x"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        environment_value = values[i];
        cr_assert_eq(run_in_child(check_malformed_environment), 0, "%s", values[i]);
    }
}
