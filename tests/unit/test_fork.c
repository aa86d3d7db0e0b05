/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a forked child may do with buffers and devices of its parent: whatever the host holds, and
 * nothing that needs the device. And that the parent notices nothing.
 */
#include "made.h"
#include "processes.h"

enum { LAST = 4 };

/* One of each kind; made in the parent before it forks. */
static syncedmem_buffer *at_host;   /* OLD, never on a device */
static syncedmem_buffer *at_device; /* NEW there, OLD on the host */
static syncedmem_buffer *synced;    /* OLD at both */
static syncedmem_buffer *split;     /* OLD: the first half at the host, the second at the device */
static syncedmem_stream *stream;

static syncedmem_buffer *made_split(void)
{
    syncedmem_token_t token;
    void *pointer;
    syncedmem_buffer *buffer = made_synced();
    assert_ok(syncedmem_begin(buffer, sim(0), SYNCEDMEM_READ_WRITE, HALF, HALF, NULL, &pointer,
                              NULL, &token));
    assert_ok(syncedmem_end(buffer, token));
    assert_ok(syncedmem_begin(buffer, syncedmem_host(), SYNCEDMEM_READ_WRITE, 0, HALF, NULL,
                              &pointer, NULL, &token));
    assert_ok(syncedmem_end(buffer, token));
    return buffer;
}

static void make_all(void)
{
    sim_setup();
    at_host = made_at_host();
    at_device = made_at_device();
    synced = made_synced();
    split = made_split();
    assert_ok(syncedmem_stream_create(sim(0), &stream));
}

/* Nothing that the child did is seen here, and the devices work on. */
static void check_parent(void)
{
    const void *pointer;
    const struct {
        syncedmem_buffer *buffer;
        unsigned seed;
    } wanted[] = {{at_host, OLD}, {at_device, NEW}, {synced, OLD}, {split, OLD}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_ok(syncedmem_gpu_data(wanted[i].buffer, &pointer));
        cr_assert(device_pattern_is(0, pointer, SIZE, wanted[i].seed), "device, buffer %zu", i);
        assert_ok(syncedmem_cpu_data(wanted[i].buffer, &pointer));
        cr_assert(pattern_is(pointer, SIZE, wanted[i].seed), "host, buffer %zu", i);
        syncedmem_release(wanted[i].buffer);
    }
    assert_ok(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
}

TestSuite(fork, .timeout = 120, .init = make_all, .fini = check_parent);

/* A status that says FORKED, and a line that says so. */
#define CHILD_FORKED(call)                                                                         \
    do {                                                                                           \
        CHILD_STATUS(call, SYNCEDMEM_FORKED);                                                      \
        CHILD_CHECK(is_one_line(syncedmem_last_error()));                                          \
        CHILD_CHECK(contains(syncedmem_last_error(), "fork"));                                     \
    } while (0)

/* ---- Reading and writing at the host ---- */

static void child_reads(void)
{
    const void *pointer;
    for (int i = 0; i < 3; i++) { /* hot from the second on */
        CHILD_OK(syncedmem_cpu_data(at_host, &pointer));
        CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
        CHILD_OK(syncedmem_cpu_data(synced, &pointer));
        CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
        CHILD_FORKED(syncedmem_cpu_data(at_device, &pointer));
        CHILD_CHECK(pointer == NULL);
        CHILD_FORKED(syncedmem_cpu_data(split, &pointer));
    }
}

Test(fork, host_valid_bytes_are_read)
{
    assert_forked(child_reads);
}

static void child_reads_hot_pointers(void)
{
    const void *pointer;
    CHILD_OK(syncedmem_cpu_data(at_host, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
    CHILD_FORKED(syncedmem_gpu_data(synced, &pointer));
    CHILD_CHECK(pointer == NULL);
    CHILD_OK(syncedmem_cpu_data(synced, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
    CHILD_FORKED(syncedmem_gpu_data(synced, &pointer));
    CHILD_FORKED(syncedmem_gpu_data(at_device, &pointer));
    void *writing = &pointer;
    CHILD_FORKED(syncedmem_mutable_gpu_data(at_device, &writing));
    CHILD_CHECK(writing == NULL);
    CHILD_FORKED(syncedmem_mutable_gpu_data(synced, &writing));
}

/* What the parent had last is a call that has nothing to do. */
Test(fork, hot_calls)
{
    const void *pointer;
    void *writing;
    for (int i = 0; i < 3; i++) {
        assert_ok(syncedmem_cpu_data(at_host, &pointer));
        assert_ok(syncedmem_cpu_data(synced, &pointer));
        assert_ok(syncedmem_gpu_data(synced, &pointer));
        assert_ok(syncedmem_mutable_gpu_data(at_device, &writing));
    }
    assert_forked(child_reads_hot_pointers);
}

static void child_writes(void)
{
    void *pointer;
    const void *reading;
    syncedmem_buffer *const both[] = {at_host, synced};
    for (int i = 0; i < 2; i++) {
        for (unsigned seed = OTHER; seed <= LAST; seed++) {
            CHILD_OK(syncedmem_mutable_cpu_data(both[i], &pointer));
            pattern_write(pointer, SIZE, seed);
            CHILD_OK(syncedmem_cpu_data(both[i], &reading));
            CHILD_CHECK(pattern_is(reading, SIZE, seed));
        }
        CHILD_CHECK(syncedmem_head(both[i]) == SYNCEDMEM_HEAD_AT_CPU);
    }
    CHILD_FORKED(syncedmem_mutable_cpu_data(at_device, &pointer));
    CHILD_FORKED(syncedmem_mutable_cpu_data(split, &pointer));
}

Test(fork, host_valid_bytes_are_written)
{
    assert_forked(child_writes);
}

static void child_uses_half(void)
{
    syncedmem_buffer *first, *second;
    const void *pointer;
    void *writing;
    CHILD_OK(syncedmem_view(split, 0, HALF, &first));
    CHILD_OK(syncedmem_view(split, HALF, HALF, &second));
    CHILD_OK(syncedmem_cpu_data(first, &pointer));
    CHILD_CHECK(pattern_is(pointer, HALF, OLD));
    CHILD_FORKED(syncedmem_cpu_data(second, &pointer));
    CHILD_OK(syncedmem_mutable_cpu_data(first, &writing));
    pattern_write(writing, HALF, OTHER);
    CHILD_OK(syncedmem_cpu_data(first, &pointer));
    CHILD_CHECK(pattern_is(pointer, HALF, OTHER));
    size_t valid;
    CHILD_OK(syncedmem_valid_bytes(split, syncedmem_host(), 0, SIZE, &valid));
    CHILD_CHECK(valid == HALF);
    syncedmem_release(first);
    syncedmem_release(second);
}

Test(fork, a_part_that_the_host_holds)
{
    assert_forked(child_uses_half);
}

static void child_overwrites(void)
{
    syncedmem_token_t token;
    void *pointer;
    const void *reading;
    CHILD_OK(syncedmem_begin(at_device, syncedmem_host(), SYNCEDMEM_WRITE, 0, SIZE, NULL, &pointer,
                             NULL, &token));
    pattern_write(pointer, SIZE, OTHER);
    CHILD_OK(syncedmem_end(at_device, token));
    CHILD_OK(syncedmem_cpu_data(at_device, &reading));
    CHILD_CHECK(pattern_is(reading, SIZE, OTHER));
    CHILD_OK(syncedmem_begin(split, syncedmem_host(), SYNCEDMEM_WRITE, HALF, HALF, NULL, &pointer,
                             NULL, &token));
    memset(pointer, 7, HALF);
    CHILD_OK(syncedmem_end(split, token));
    CHILD_OK(syncedmem_cpu_data(split, &reading));
    CHILD_CHECK(pattern_is(reading, HALF, OLD));
    CHILD_CHECK(((const unsigned char *)reading)[SIZE - 1] == 7);
}

/* Nothing of the device is needed for that. */
Test(fork, stale_bytes_are_written_over)
{
    assert_forked(child_overwrites);
}

static void child_uses_verbs(void)
{
    const void *reading;
    CHILD_OK(syncedmem_mark_modified(synced, syncedmem_host(), 0, SIZE));
    CHILD_OK(syncedmem_fill(at_host, 0, HALF, 9));
    CHILD_OK(syncedmem_copy(synced, 0, at_host, 0, SIZE));
    CHILD_OK(syncedmem_cpu_data(synced, &reading));
    CHILD_CHECK(((const unsigned char *)reading)[0] == 9);
    CHILD_CHECK(((const unsigned char *)reading)[SIZE - 1] == pattern_at(OLD, SIZE - 1));
    CHILD_OK(syncedmem_prefetch(synced, syncedmem_host(), 0, SIZE, NULL));
    CHILD_OK(syncedmem_wait(synced));
    CHILD_FORKED(syncedmem_copy(at_host, 0, at_device, 0, SIZE));
    CHILD_OK(syncedmem_cpu_data(at_host, &reading));
    CHILD_CHECK(((const unsigned char *)reading)[0] == 9);
}

Test(fork, verbs_at_the_host)
{
    assert_forked(child_uses_verbs);
}

/* Where the bytes are is out of reach, and on the host they can be set: either will do. */
static void child_fills_what_is_at_the_device(void)
{
    const void *reading;
    const syncedmem_status_t status = syncedmem_fill(at_device, 0, SIZE, 9);
    if (status == SYNCEDMEM_OK) {
        CHILD_OK(syncedmem_cpu_data(at_device, &reading));
        CHILD_CHECK(((const unsigned char *)reading)[SIZE - 1] == 9);
    } else {
        CHILD_CHECK(status == SYNCEDMEM_FORKED);
        CHILD_FORKED(syncedmem_cpu_data(at_device, &reading));
    }
}

Test(fork, fill_of_bytes_at_the_device)
{
    assert_forked(child_fills_what_is_at_the_device);
}

static void child_adopts(void)
{
    static unsigned char block[SIZE], another[SIZE];
    const void *reading;
    pattern_write(block, SIZE, OTHER);
    pattern_write(another, SIZE, LAST);
    syncedmem_buffer *const all[] = {at_host, synced, at_device, split};
    for (int i = 0; i < 4; i++) {
        CHILD_OK(syncedmem_set_cpu_data(all[i], block, SIZE));
        CHILD_OK(syncedmem_cpu_data(all[i], &reading));
        CHILD_CHECK(reading == block && pattern_is(reading, SIZE, OTHER));
        CHILD_OK(syncedmem_adopt(all[i], syncedmem_host(), another, SIZE, SYNCEDMEM_ADOPT_READ_ONLY,
                                 NULL, NULL, NULL));
        CHILD_OK(syncedmem_cpu_data(all[i], &reading));
        CHILD_CHECK(reading == another && pattern_is(reading, SIZE, LAST));
    }
}

Test(fork, host_memory_is_adopted)
{
    assert_forked(child_adopts);
}

/* ---- What needs the device ---- */

static void child_names_the_device(void)
{
    syncedmem_buffer *const all[] = {at_host, synced, at_device, split};
    syncedmem_token_t token;
    void *pointer;
    for (int i = 0; i < 4; i++) {
        for (syncedmem_mode_t mode = SYNCEDMEM_READ; mode <= SYNCEDMEM_READ_WRITE; mode++) {
            CHILD_FORKED(
                syncedmem_begin(all[i], sim(0), mode, 0, SIZE, NULL, &pointer, NULL, &token));
            CHILD_FORKED(
                syncedmem_begin(all[i], sim(0), mode, 0, SIZE, stream, &pointer, NULL, &token));
        }
        CHILD_FORKED(syncedmem_prefetch(all[i], sim(0), 0, SIZE, NULL));
        CHILD_FORKED(syncedmem_prefetch(all[i], sim(0), 0, SIZE, stream));
        CHILD_FORKED(syncedmem_mark_modified(all[i], sim(0), 0, SIZE));
        CHILD_FORKED(syncedmem_adopt(all[i], sim(0), &token, SIZE, 0, NULL, NULL, NULL));
        CHILD_FORKED(syncedmem_set_gpu_data(all[i], &token, SIZE));
    }
    CHILD_OK(syncedmem_drop(synced, sim(0))); /* nothing has to be saved, and no driver is called */
    CHILD_FORKED(syncedmem_drop(at_device, sim(0)));
    CHILD_FORKED(syncedmem_async_gpu_push(at_host, NULL));
    CHILD_FORKED(syncedmem_async_gpu_push(at_host, stream));
    uint64_t leases;
    CHILD_OK(syncedmem_stat(NULL, SYNCEDMEM_STAT_LEASES, &leases));
    CHILD_CHECK(leases == 0);
}

Test(fork, calls_that_name_the_device)
{
    assert_forked(child_names_the_device);
}

static void kernel_nothing(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)addresses;
    (void)count;
}

static void child_uses_streams(void)
{
    syncedmem_stream *another;
    void *block;
    uint64_t figure;
    CHILD_FORKED(syncedmem_stream_wait(stream));
    CHILD_FORKED(syncedmem_stream_create(sim(0), &another));
    CHILD_CHECK(another == NULL);
    CHILD_FORKED(syncedmem_sim_launch(stream, kernel_nothing, NULL, 0, NULL, 0));
    CHILD_FORKED(syncedmem_sim_alloc(sim(0), 64, &block));
    CHILD_FORKED(syncedmem_device_number(sim(0), SYNCEDMEM_PLACE_MEMORY_FREE, &figure));
    CHILD_CHECK(syncedmem_stream_place(stream) == sim(0));
    CHILD_CHECK(syncedmem_stream_retain(stream) == stream);
    syncedmem_stream_release(stream);
    syncedmem_stream_release(stream);
}

Test(fork, streams)
{
    assert_forked(child_uses_streams);
}

static void child_looks(void)
{
    const char *text;
    char described[4000];
    size_t needed;
    uint64_t figure;
    syncedmem_place *place;
    CHILD_CHECK(syncedmem_device_count() == 2);
    CHILD_OK(syncedmem_device_at(1, &place));
    CHILD_OK(syncedmem_device_text(place, SYNCEDMEM_PLACE_NAME, &text));
    CHILD_CHECK(strcmp(text, "sim:1") == 0);
    CHILD_OK(syncedmem_device_number(syncedmem_host(), SYNCEDMEM_PLACE_ALIGNMENT, &figure));
    CHILD_CHECK(syncedmem_head(synced) == SYNCEDMEM_SYNCED);
    CHILD_CHECK(syncedmem_head(at_device) == SYNCEDMEM_HEAD_AT_GPU);
    CHILD_CHECK(syncedmem_head(split) == SYNCEDMEM_HEAD_SPLIT);
    CHILD_CHECK(syncedmem_home(synced) == sim(0));
    CHILD_OK(syncedmem_describe(split, described, sizeof described, &needed));
    CHILD_OK(syncedmem_stat(synced, SYNCEDMEM_STAT_TRANSFERS, &figure));
    CHILD_CHECK(figure == 1);
}

Test(fork, looking)
{
    assert_forked(child_looks);
}

static void child_makes_new_buffers(void)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    void *writing;
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_FORKED(syncedmem_gpu_data(buffer, &pointer));
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, 0));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
    pattern_write(writing, SIZE, OTHER);
    CHILD_FORKED(syncedmem_mutable_gpu_data(buffer, &writing));
    CHILD_OK(syncedmem_cpu_data(buffer, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OTHER));
    syncedmem_release(buffer);
    CHILD_OK(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
    CHILD_FORKED(syncedmem_gpu_data(buffer, &pointer));
    syncedmem_release(buffer);
}

Test(fork, new_buffers)
{
    assert_forked(child_makes_new_buffers);
}

/* ---- The end of things ---- */

static void child_releases(void)
{
    syncedmem_release(at_host);
    syncedmem_release(at_device);
    syncedmem_release(synced);
    syncedmem_release(split);
    syncedmem_stream_release(stream);
}

Test(fork, release)
{
    assert_forked(child_releases);
}

static int told_host, told_device;

static void count_release(void *user)
{
    ++*(int *)user;
}

static syncedmem_buffer *adopted_host, *adopted_device;

static void child_releases_adopted(void)
{
    const void *pointer;
    CHILD_OK(syncedmem_cpu_data(adopted_host, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OTHER));
    syncedmem_release(adopted_host);
    CHILD_CHECK(told_host == 1);
    syncedmem_release(adopted_device);
    CHILD_CHECK(told_device == 0);
}

Test(fork, adopted_memory)
{
    static unsigned char block[SIZE];
    const void *pointer;
    void *device_block;
    pattern_write(block, SIZE, OTHER);
    assert_ok(syncedmem_create(SIZE, &adopted_host));
    assert_ok(syncedmem_create(SIZE, &adopted_device));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &device_block));
    assert_ok(syncedmem_adopt(adopted_host, syncedmem_host(), block, SIZE, 0, NULL, count_release,
                              &told_host));
    assert_ok(syncedmem_gpu_data(adopted_host, &pointer));
    assert_ok(syncedmem_adopt(adopted_device, sim(0), device_block, SIZE, 0, NULL, count_release,
                              &told_device));
    assert_forked(child_releases_adopted);
    cr_assert_eq(told_host + told_device, 0);
    syncedmem_release(adopted_host);
    syncedmem_release(adopted_device);
    cr_assert(told_host == 1 && told_device == 1);
    assert_ok(syncedmem_sim_free(sim(0), device_block));
}

static syncedmem_token_t token_device, token_host;

static void child_ends_leases(void)
{
    CHILD_OK(syncedmem_end(synced, token_device));
    CHILD_STATUS(syncedmem_end(synced, token_device), SYNCEDMEM_INVALID_LEASE);
    CHILD_OK(syncedmem_end(at_host, token_host));
    CHILD_STATUS(syncedmem_end(at_host, token_host), SYNCEDMEM_INVALID_LEASE);
    CHILD_CHECK(stat_of(NULL, SYNCEDMEM_STAT_LEASES) == 0);
    syncedmem_release(synced);
    syncedmem_release(at_host);
}

static void child_leaves_leases(void)
{
    syncedmem_release(synced);
    syncedmem_release(at_host);
}

Test(fork, leases_open_at_the_fork)
{
    void *pointer;
    assert_ok(syncedmem_begin(synced, sim(0), SYNCEDMEM_READ, 0, SIZE, stream, &pointer, NULL,
                              &token_device));
    assert_ok(syncedmem_begin(at_host, syncedmem_host(), SYNCEDMEM_READ_WRITE, 0, SIZE, NULL,
                              &pointer, NULL, &token_host));
    assert_forked(child_ends_leases);
    assert_forked(child_leaves_leases);
    assert_ok(syncedmem_end(synced, token_device));
    assert_ok(syncedmem_end(at_host, token_host));
}

/* ---- More than one fork ---- */

static void grandchild(void)
{
    child_reads();
    child_uses_streams();
    syncedmem_release(at_host);
    syncedmem_release(at_device);
}

/* Uses its own locks before it forks: they are the child's then. */
static void child_forks(void)
{
    child_reads();
    const struct outcome outcome = outcome_of_fork(grandchild);
    fputs(outcome.said, stderr);
    CHILD_CHECK(outcome.status == 0);
    child_reads();
}

Test(fork, a_child_of_the_child)
{
    assert_forked(child_forks);
}

Test(fork, many_children)
{
    for (int i = 0; i < 20; i++) {
        assert_forked(child_reads);
        assert_forked(child_writes);
    }
}

/* ---- Pinned host memory ---- */

static syncedmem_buffer *pinned;

static void child_uses_pinned(void)
{
    const void *pointer;
    void *writing;
    CHILD_OK(syncedmem_cpu_data(pinned, &pointer));
    CHILD_CHECK(pattern_is(pointer, SIZE, OLD));
    CHILD_OK(syncedmem_mutable_cpu_data(pinned, &writing));
    pattern_write(writing, SIZE, OTHER);
    CHILD_FORKED(syncedmem_gpu_data(pinned, &pointer));
    syncedmem_release(pinned);
}

Test(fork, pinned_memory)
{
    assert_ok(syncedmem_set_default_host_policy(SYNCEDMEM_PINNED));
    pinned = made_synced();
    assert_forked(child_uses_pinned);
    syncedmem_release(pinned);
}
