/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies, fills and launches: what they do to bytes, and which addresses they take. */
#include "support.h"

#include <errno.h>

static struct engine_device *device;
static struct engine_device *other;
static struct engine_stream *stream;

static void set_up(void)
{
    device = device_with(16 * MIB);
    other = device_with(16 * MIB);
    stream = stream_of(device);
}

static void tear_down(void)
{
    syncedmem_engine_device_destroy(device);
    syncedmem_engine_device_destroy(other);
}

static void number(unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i * 7 + 1);
}

Test(simulator_transfer, bytes_travel_all_ways, .init = set_up, .fini = tear_down)
{
    unsigned char sent[1000];
    unsigned char came[1000] = {0};
    void *first = block_of(device, 1000);
    void *second = block_of(device, 1000);
    void *third = block_of(other, 1000);
    number(sent, sizeof sent);
    struct side route[] = {
        {NULL, sent}, {device, first}, {device, second}, {other, third}, {NULL, came}};
    for (size_t i = 0; i + 1 < sizeof route / sizeof route[0]; i++)
        cr_assert_eq(copy_bytes(stream, route[i + 1], route[i], 1000), ENGINE_OK);
    cr_assert_eq(memcmp(sent, came, 1000), 0);
}

Test(simulator_transfer, host_to_host_works_too, .init = set_up, .fini = tear_down)
{
    char from[] = "abc";
    char to[] = "xyz";
    cr_assert_eq(copy_bytes(stream, (struct side){NULL, to}, (struct side){NULL, from}, 3),
                 ENGINE_OK);
    cr_assert_str_eq(to, "abc");
}

Test(simulator_transfer, regions_go_where_they_belong, .init = set_up, .fini = tear_down)
{
    unsigned char from[100];
    number(from, sizeof from);
    unsigned char *to = block_of(device, 100);
    unsigned char *usable = syncedmem_engine_translate(device, to);
    struct engine_region regions[] = {{.to = 50, .from = 10, .length = 5},
                                      {.to = 900000, .from = 0, .length = 0},
                                      {.to = 0, .from = 99, .length = 1},
                                      {.to = 60, .from = 20, .length = 40}};
    struct engine_copy copy = {
        .to = to, .from = from, .to_device = device, .regions = regions, .count = 4};
    struct engine_event *event;
    memset(usable, 0, 100);
    cr_assert_eq(syncedmem_engine_copy(stream, &copy, &event), ENGINE_OK);
    memset(regions, 0xFF, sizeof regions); /* the call has copied them */
    cr_assert_eq(outcome(event), ENGINE_OK);
    cr_assert_eq(usable[0], from[99]);
    cr_assert(all_are(usable + 1, 49, 0));
    cr_assert_eq(memcmp(usable + 50, from + 10, 5), 0);
    cr_assert(all_are(usable + 55, 5, 0));
    cr_assert_eq(memcmp(usable + 60, from + 20, 40), 0);
}

Test(simulator_transfer, a_base_outside_is_fine_where_the_regions_are_inside, .init = set_up,
     .fini = tear_down)
{
    unsigned char from[10] = "012345678";
    unsigned char *block = block_of(device, 100);
    struct engine_region region = {.to = 4096, .from = 0, .length = 10};
    struct engine_copy copy = {.to = (void *)((uintptr_t)block - 4096),
                               .from = from,
                               .to_device = device,
                               .regions = &region,
                               .count = 1};
    struct engine_event *event;
    cr_assert_eq(syncedmem_engine_copy(stream, &copy, &event), ENGINE_OK);
    cr_assert_eq(outcome(event), ENGINE_OK);
    cr_assert_eq(memcmp(syncedmem_engine_translate(device, block), from, 10), 0);
}

Test(simulator_transfer, ranges_may_overlap, .init = set_up, .fini = tear_down)
{
    unsigned char *block = block_of(device, 300);
    unsigned char *usable = syncedmem_engine_translate(device, block);
    unsigned char expected[300];
    number(usable, 300);
    memcpy(expected, usable, 300);
    memmove(expected + 50, expected, 200);
    cr_assert_eq(
        copy_bytes(stream, (struct side){device, block + 50}, (struct side){device, block}, 200),
        ENGINE_OK);
    cr_assert_eq(memcmp(usable, expected, 300), 0);
}

Test(simulator_transfer, nothing_to_copy_is_done_at_once, .init = set_up, .fini = tear_down)
{
    struct engine_copy copy = {.to = NULL, .from = NULL, .to_device = device};
    struct engine_event *event;
    cr_assert_eq(syncedmem_engine_copy(stream, &copy, &event), ENGINE_OK);
    cr_assert_eq(outcome(event), ENGINE_OK);
}

Test(simulator_transfer, fills_write_their_regions_only, .init = set_up, .fini = tear_down)
{
    unsigned char *block = block_of(device, 100);
    unsigned char *usable = syncedmem_engine_translate(device, block);
    struct engine_region regions[] = {
        {.to = 10, .length = 5}, {.to = 30, .length = 0}, {.to = 99, .length = 1}};
    struct engine_fill fill = {.to = block, .regions = regions, .count = 3, .value = 0xAB};
    struct engine_event *event;
    cr_assert_eq(syncedmem_engine_fill(stream, &fill, &event), ENGINE_OK);
    cr_assert_eq(outcome(event), ENGINE_OK);
    cr_assert(all_are(usable, 10, 0xCD));
    cr_assert(all_are(usable + 10, 5, 0xAB));
    cr_assert(all_are(usable + 15, 84, 0xCD));
    cr_assert_eq(usable[99], 0xAB);
}

static enum engine_result try_copy(struct engine_device *to_device, void *to, size_t offset,
                                   size_t length)
{
    static unsigned char from[1024];
    struct engine_region regions[] = {{.to = 0, .from = 0, .length = 0},
                                      {.to = offset, .from = 0, .length = length}};
    struct engine_copy copy = {
        .to = to, .from = from, .to_device = to_device, .regions = regions, .count = 2};
    struct engine_event *event = (struct engine_event *)from;
    enum engine_result result = syncedmem_engine_copy(stream, &copy, &event);
    if (result == ENGINE_OK)
        return outcome(event);
    cr_assert_null(event);
    return result;
}

Test(simulator_transfer, copies_stay_inside_one_live_block, .init = set_up, .fini = tear_down)
{
    unsigned char *block = block_of(device, 256);
    unsigned char *neighbour = block_of(device, 256);
    unsigned char here[256];
    cr_assert_eq(neighbour, block + 256);
    cr_assert_eq(try_copy(device, block, 0, 256), ENGINE_OK);
    cr_assert_eq(try_copy(device, block, 255, 1), ENGINE_OK);
    cr_assert_eq(try_copy(device, block, 0, 257), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(device, block, 255, 2), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(device, block, 512, 1), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(device, block, 10, SIZE_MAX), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(device, block, SIZE_MAX, 1), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(device, block + 4096, SIZE_MAX - 4095, 1), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(device, here, 0, 1), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(other, block, 0, 1), ENGINE_BAD_ADDRESS);
    syncedmem_engine_free(device, block);
    cr_assert_eq(try_copy(device, block, 0, 1), ENGINE_BAD_ADDRESS);
    cr_assert_eq(try_copy(device, block, 256, 1), ENGINE_OK);
}

Test(simulator_transfer, sources_are_checked_as_well, .init = set_up, .fini = tear_down)
{
    unsigned char to[300];
    struct side host = {NULL, to};
    struct side block = {device, block_of(device, 200)};
    cr_assert_eq(copy_bytes(stream, host, block, 200), ENGINE_OK);
    cr_assert_eq(copy_bytes(stream, host, block, 201), ENGINE_BAD_ADDRESS);
    block.device = other;
    cr_assert_eq(copy_bytes(stream, host, block, 1), ENGINE_BAD_ADDRESS);
}

Test(simulator_transfer, a_refused_list_does_nothing, .init = set_up, .fini = tear_down)
{
    unsigned char *block = block_of(device, 100);
    struct engine_region regions[] = {{.to = 0, .length = 10}, {.to = 91, .length = 10}};
    struct engine_fill fill = {.to = block, .regions = regions, .count = 2, .value = 1};
    struct engine_event *event = (struct engine_event *)regions;
    errno = 55;
    cr_assert_eq(syncedmem_engine_fill(stream, &fill, &event), ENGINE_BAD_ADDRESS);
    cr_assert_eq(errno, 55);
    cr_assert_null(event);
    syncedmem_engine_stream_synchronize(stream);
    cr_assert(all_are(syncedmem_engine_translate(device, block), 100, 0xCD));
}

/* ---- Launches ---- */

struct addition {
    unsigned char value;
    size_t length;
};

static void kernel_add(void *arguments, void *const *addresses, size_t count)
{
    const struct addition *addition = arguments;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; addresses[i] != NULL && j < addition->length; j++)
            ((unsigned char *)addresses[i])[j] =
                (unsigned char)(((unsigned char *)addresses[i])[j] + addition->value);
}

Test(simulator_transfer, kernels_work_on_translated_addresses, .init = set_up, .fini = tear_down)
{
    unsigned char *block = block_of(device, 100);
    unsigned char *usable = syncedmem_engine_translate(device, block);
    struct addition *addition = malloc(sizeof *addition);
    const void *addresses[] = {block + 10, NULL, block + 98};
    struct engine_event *event;
    sem_t gate;
    *addition = (struct addition){.value = 3, .length = 2};
    memset(usable, 0, 100);
    hold_up(stream, &gate);
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_add, addition, sizeof *addition, addresses,
                                         3, &event),
                 ENGINE_OK);
    memset(addition, 0xFF, sizeof *addition); /* the call has copied them */
    free(addition);
    memset(addresses, 0xFF, sizeof addresses);
    sem_post(&gate);
    cr_assert_eq(outcome(event), ENGINE_OK);
    cr_assert(all_are(usable, 10, 0));
    cr_assert(all_are(usable + 10, 2, 3));
    cr_assert(all_are(usable + 12, 86, 0));
    cr_assert(all_are(usable + 98, 2, 3));
}

static void kernel_mark(void *arguments, void *const *addresses, size_t count)
{
    (void)addresses;
    *(size_t *)arguments += 100 + count;
}

Test(simulator_transfer, arguments_of_no_size_are_passed_on, .init = set_up, .fini = tear_down)
{
    size_t seen = 1;
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_mark, &seen, 0, NULL, 0, NULL), ENGINE_OK);
    syncedmem_engine_stream_synchronize(stream);
    cr_assert_eq(seen, 101);
}

Test(simulator_transfer, arguments_larger_than_memory_are_refused, .init = set_up,
     .fini = tear_down)
{
    size_t seen = 0;
    errno = 55;
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_mark, &seen, SIZE_MAX, NULL, 0, NULL),
                 ENGINE_HOST_MEMORY);
    cr_assert_eq(errno, 55);
}

Test(simulator_transfer, kernels_get_live_addresses_only, .init = set_up, .fini = tear_down)
{
    unsigned char *block = block_of(device, 100);
    size_t seen = 0;
    const void *addresses[] = {NULL, block + 100};
    struct engine_event *event = (struct engine_event *)block;
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_mark, &seen, 0, addresses, 2, &event),
                 ENGINE_BAD_ADDRESS);
    cr_assert_null(event);
    addresses[1] = &seen;
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_mark, &seen, 0, addresses, 2, NULL),
                 ENGINE_BAD_ADDRESS);
    addresses[1] = block_of(other, 100);
    cr_assert_eq(syncedmem_engine_launch(stream, kernel_mark, &seen, 0, addresses, 2, NULL),
                 ENGINE_BAD_ADDRESS);
    syncedmem_engine_stream_synchronize(stream);
    cr_assert_eq(seen, 0);
}
