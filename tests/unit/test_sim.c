/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator as a user of sim.h sees it: memory, kernels, failures on demand, losses, seeds. */
#include <stdlib.h>
#include <sys/mman.h>

#include "backends/sim/sim.h"
#include "base/epoch.h"
#include "places/place.h"
#include "support.h"

TestSuite(sim, .init = sim_setup, .timeout = 60);

enum { SIZE = 8192 };

/* ---- Memory ---- */

/* The host may neither read nor write the address: it is mapped so, or not at all. */
static bool faults_on_host(const void *address)
{
    char line[512];
    bool faults = true;
    FILE *maps = fopen("/proc/self/maps", "r");
    cr_assert_not_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long long begin, end;
        char mode[5];
        if (sscanf(line, "%llx-%llx %4s", &begin, &end, mode) == 3 && begin <= (uintptr_t)address &&
            (uintptr_t)address < end) {
            faults = mode[0] == '-' && mode[1] == '-' && mode[2] == '-';
        }
    }
    fclose(maps);
    return faults;
}

Test(sim, device_addresses_fault_on_the_host)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    void *block;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    cr_assert(faults_on_host(pointer));
    cr_assert(faults_on_host((const char *)pointer + SIZE - 1));
    cr_assert(faults_on_host(block));
    cr_assert(!faults_on_host(&buffer));
    assert_ok(syncedmem_sim_free(sim(0), block));
    syncedmem_release(buffer);
}

Test(sim, alloc_and_free)
{
    const uint64_t free_before = device_memory_free(0);
    void *one, *two;
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &one));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &two));
    cr_assert_not_null(one);
    cr_assert_neq(one, two);
    device_pattern_write(0, one, SIZE, 1);
    device_pattern_write(0, two, SIZE, 2);
    cr_assert(device_pattern_is(0, one, SIZE, 1) && device_pattern_is(0, two, SIZE, 2));
    assert_ok(syncedmem_sim_free(sim(0), one));
    cr_assert(device_pattern_is(0, two, SIZE, 2));
    assert_ok(syncedmem_sim_free(sim(0), two));
    cr_assert_eq(device_memory_free(0), free_before);
}

Test(sim, too_much)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX,
                                   ((size_t)64 << 20) + 1};
    void *block = &block;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const syncedmem_status_t status = syncedmem_sim_alloc(sim(0), sizes[i], &block);
        cr_assert(status == SYNCEDMEM_OUT_OF_DEVICE_MEMORY || status == SYNCEDMEM_OUT_OF_RANGE);
        cr_assert_null(block);
        cr_assert(is_one_line(syncedmem_last_error()));
    }
    assert_ok(syncedmem_sim_alloc(sim(0), (size_t)64 << 20, &block));
    assert_ok(syncedmem_sim_free(sim(0), block));
}

/* Only what sim_alloc() returned, on its device, once. */
Test(sim, free_refuses_other_addresses)
{
    syncedmem_buffer *buffer;
    const void *pointer;
    void *block;
    assert_ok(syncedmem_create(SIZE, &buffer));
    assert_ok(syncedmem_gpu_data(buffer, &pointer));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    const uint64_t free_before = device_memory_free(0);
    char *inside = (char *)block + 256;
    assert_status(syncedmem_sim_free(sim(0), inside), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_sim_free(sim(0), &block), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_sim_free(sim(1), block), SYNCEDMEM_INVALID_ARGUMENT);
    /* Of the library's own: its owner is the buffer. */
    assert_status(syncedmem_sim_free(sim(0), (void *)(uintptr_t)pointer),
                  SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_eq(device_memory_free(0), free_before);
    cr_assert(device_pattern_is(0, pointer, SIZE, 0));
    assert_ok(syncedmem_sim_free(sim(0), block));
    assert_status(syncedmem_sim_free(sim(0), block), SYNCEDMEM_INVALID_ARGUMENT);
    syncedmem_release(buffer);
}

/* Freeing comes after the work on the default stream. */
Test(sim, free_comes_after_the_default_stream)
{
    static unsigned char seen[SIZE];
    syncedmem_stream *stream;
    struct gate gate;
    void *block;
    assert_ok(syncedmem_stream_default(sim(0), &stream));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    device_pattern_write(0, block, SIZE, 3);
    gate_put(&gate, stream);
    cr_assert(stream_read(stream, block, seen, SIZE));
    gate_open_later(&gate, 40);
    assert_ok(syncedmem_sim_free(sim(0), block));
    gate_join(&gate);
    assert_ok(syncedmem_stream_wait(stream));
    cr_assert(pattern_is(seen, SIZE, 3));
    syncedmem_stream_release(stream);
}

/* ---- Kernels ---- */

struct note {
    int number;
    size_t count;
    void *addresses[4];
    void *arguments;
};

static struct note note;

static void kernel_note(void *arguments, void *const *addresses, size_t count)
{
    note.arguments = arguments;
    note.number = arguments == NULL ? -1 : *(int *)arguments;
    note.count = count;
    for (size_t i = 0; i < count && i < 4; i++) {
        note.addresses[i] = addresses[i];
    }
}

static void launch_note(const void *arguments, size_t size, const void *const *addresses,
                        size_t count)
{
    syncedmem_stream *stream;
    note = (struct note){.number = 0};
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_sim_launch(stream, kernel_note, arguments, size, addresses, count));
    assert_ok(syncedmem_stream_wait(stream));
    syncedmem_stream_release(stream);
}

Test(sim, arguments_are_copied_or_passed_on)
{
    int number = 5;
    launch_note(&number, sizeof number, NULL, 0);
    cr_assert_eq(note.number, 5);
    cr_assert_neq(note.arguments, &number);
    launch_note(&number, 0, NULL, 0);
    cr_assert_eq(note.arguments, &number);
    launch_note(NULL, 0, NULL, 0);
    cr_assert_null(note.arguments);
    /* Changed after the launch: the kernel has the copy. */
    syncedmem_stream *stream;
    struct gate gate;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_launch(stream, kernel_note, &number, sizeof number, NULL, 0));
    number = 6;
    gate_open(&gate);
    assert_ok(syncedmem_stream_wait(stream));
    cr_assert_eq(note.number, 5);
    syncedmem_stream_release(stream);
}

Test(sim, addresses_and_offsets)
{
    void *block;
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    const char *bytes = block;
    const void *const addresses[] = {bytes, NULL, bytes + 1, bytes + SIZE - 1};
    launch_note(NULL, 0, addresses, 4);
    cr_assert_eq(note.count, 4);
    cr_assert_not_null(note.addresses[0]);
    cr_assert_null(note.addresses[1]);
    cr_assert_eq((char *)note.addresses[2] - (char *)note.addresses[0], 1);
    cr_assert_eq((char *)note.addresses[3] - (char *)note.addresses[0], SIZE - 1);
    device_pattern_write(0, block, SIZE, 1);
    device_pattern_write(0, bytes + 101, 50, 2);
    cr_assert(device_pattern_is(0, bytes + 101, 50, 2));
    cr_assert(device_pattern_is(0, block, 101, 1));
    assert_ok(syncedmem_sim_free(sim(0), block));
}

static void refuse_launch(syncedmem_stream *stream, const void *good, const void *bad)
{
    const void *const first[] = {bad, good}, *const second[] = {good, bad};
    note = (struct note){.number = 7};
    assert_status(syncedmem_sim_launch(stream, kernel_note, NULL, 0, first, 2),
                  SYNCEDMEM_WRONG_MEMORY);
    cr_assert(is_one_line(syncedmem_last_error()));
    assert_status(syncedmem_sim_launch(stream, kernel_note, NULL, 0, second, 2),
                  SYNCEDMEM_WRONG_MEMORY);
    assert_ok(syncedmem_stream_wait(stream));
    cr_assert_eq(note.number, 7, "the kernel ran");
}

Test(sim, wrong_addresses_are_refused)
{
    syncedmem_stream *stream;
    void *block, *other, *freed;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    assert_ok(syncedmem_sim_alloc(sim(1), SIZE, &other));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &freed));
    assert_ok(syncedmem_sim_free(sim(0), freed));
    refuse_launch(stream, block, &stream);
    refuse_launch(stream, block, other);
    refuse_launch(stream, block, freed);
    refuse_launch(stream, block, (void *)(uintptr_t)1);
    assert_ok(syncedmem_sim_free(sim(0), block));
    refuse_launch(stream, NULL, block);
    assert_ok(syncedmem_sim_free(sim(1), other));
    syncedmem_stream_release(stream);
}

/* In order, one after the other. */
static void kernel_append(void *arguments, void *const *addresses, size_t count)
{
    unsigned char *bytes = addresses[0];
    (void)count;
    bytes[++bytes[0]] = (unsigned char)*(int *)arguments;
}

Test(sim, a_stream_works_in_order)
{
    enum { MANY = 200 };
    syncedmem_stream *stream;
    void *block;
    unsigned char bytes[MANY + 1] = {0};
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_sim_alloc(sim(0), sizeof bytes, &block));
    device_write(0, block, bytes, sizeof bytes);
    const void *const addresses[] = {block};
    for (int i = 1; i <= MANY; i++) {
        assert_ok(syncedmem_sim_launch(stream, kernel_append, &i, sizeof i, addresses, 1));
    }
    assert_ok(syncedmem_stream_wait(stream));
    device_read(0, block, bytes, sizeof bytes);
    for (int i = 1; i <= MANY; i++) {
        cr_assert_eq(bytes[i], i);
    }
    assert_ok(syncedmem_sim_free(sim(0), block));
    syncedmem_stream_release(stream);
}

/* ---- Failures on demand ---- */

Test(sim, the_nth_allocation_fails_once)
{
    void *blocks[4];
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_ALLOC, 3));
    for (int i = 0; i < 4; i++) {
        const syncedmem_status_t status = syncedmem_sim_alloc(sim(0), SIZE, &blocks[i]);
        cr_assert_eq(status, i == 2 ? SYNCEDMEM_OUT_OF_DEVICE_MEMORY : SYNCEDMEM_OK);
        cr_assert_eq(blocks[i] == NULL, i == 2);
        assert_ok(syncedmem_sim_free(sim(0), blocks[i]));
    }
}

Test(sim, a_failure_is_taken_back_and_stays_on_its_device)
{
    void *block;
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_ALLOC, 1));
    assert_ok(syncedmem_sim_alloc(sim(1), SIZE, &block));
    assert_ok(syncedmem_sim_free(sim(1), block));
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_ALLOC, 0));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    assert_ok(syncedmem_sim_free(sim(0), block));
}

/* ---- Loss ---- */

static void expect_lost(syncedmem_place *place, syncedmem_stream *stream)
{
    void *block = &block;
    syncedmem_stream *other;
    assert_status(syncedmem_sim_alloc(place, SIZE, &block), SYNCEDMEM_DEVICE_LOST);
    cr_assert_null(block);
    cr_assert(is_one_line(syncedmem_last_error()));
    assert_status(syncedmem_stream_create(place, &other), SYNCEDMEM_DEVICE_LOST);
    assert_status(syncedmem_sim_launch(stream, kernel_note, NULL, 0, NULL, 0),
                  SYNCEDMEM_DEVICE_LOST);
    assert_status(syncedmem_stream_wait(stream), SYNCEDMEM_DEVICE_LOST);
}

Test(sim, a_lost_device_comes_back_empty)
{
    syncedmem_stream *stream;
    void *block, *other;
    const uint64_t whole = device_memory_free(0);
    assert_status(syncedmem_sim_restore(sim(0)), SYNCEDMEM_WRONG_STATE);
    cr_assert(is_one_line(syncedmem_last_error()));
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    assert_ok(syncedmem_sim_alloc(sim(1), SIZE, &other));
    for (int i = 0; i < 2; i++) {
        assert_ok(syncedmem_sim_lose(sim(0)));
        expect_lost(sim(0), stream);
    }
    device_pattern_write(1, other, SIZE, 1);
    cr_assert(device_pattern_is(1, other, SIZE, 1));
    assert_ok(syncedmem_sim_restore(sim(0)));
    cr_assert(!device_knows(0, block));
    cr_assert_eq(device_memory_free(0), whole);
    assert_status(syncedmem_sim_launch(stream, kernel_note, NULL, 0, NULL, 0),
                  SYNCEDMEM_DEVICE_LOST);
    assert_status(syncedmem_stream_wait(stream), SYNCEDMEM_DEVICE_LOST);
    syncedmem_stream_release(stream);
    assert_ok(syncedmem_sim_free(sim(0), block));
    assert_status(syncedmem_sim_free(sim(0), block), SYNCEDMEM_INVALID_ARGUMENT);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    device_pattern_write(0, block, SIZE, 2);
    cr_assert(device_pattern_is(0, block, SIZE, 2));
    assert_ok(syncedmem_sim_free(sim(0), block));
    assert_ok(syncedmem_sim_free(sim(1), other));
    assert_status(syncedmem_sim_restore(sim(1)), SYNCEDMEM_WRONG_STATE);
}

/* Each loss is there for every buffer to see, once, and only then. */
Test(sim, a_loss_changes_the_epoch)
{
    void *block;
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    const uint64_t before = epoch_now();
    assert_ok(syncedmem_sim_lose(sim(0)));
    const uint64_t lost = epoch_now();
    cr_assert_neq(lost, before);
    assert_ok(syncedmem_sim_lose(sim(0)));
    cr_assert_eq(epoch_now(), lost);
    assert_ok(syncedmem_sim_free(sim(0), block));
    assert_ok(syncedmem_sim_restore(sim(0)));
    cr_assert_eq(epoch_now(), lost);
    assert_ok(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_DEVICE, 2));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &block));
    cr_assert_eq(epoch_now(), lost);
    assert_status(syncedmem_sim_alloc(sim(0), SIZE, &block), SYNCEDMEM_DEVICE_LOST);
    cr_assert_neq(epoch_now(), lost);
    cr_assert_eq(syncedmem_backend_sim.losses(sim(0)->device), 2);
}

/* Work that is queued behind a gate never runs; the gate's kernel finishes. */
Test(sim, queued_work_is_lost)
{
    syncedmem_stream *stream;
    struct gate gate;
    assert_ok(syncedmem_stream_create(sim(0), &stream));
    note = (struct note){.number = 7};
    gate_put(&gate, stream);
    assert_ok(syncedmem_sim_launch(stream, kernel_note, NULL, 0, NULL, 0));
    assert_ok(syncedmem_sim_lose(sim(0)));
    assert_ok(syncedmem_sim_restore(sim(0)));
    gate_open(&gate);
    assert_status(syncedmem_stream_wait(stream), SYNCEDMEM_DEVICE_LOST);
    cr_assert_eq(note.number, 7, "the kernel ran");
    syncedmem_stream_release(stream);
}

Test(sim, loss_and_faults_want_a_simulated_device)
{
    uint64_t count = 1;
    assert_status(syncedmem_sim_lose(NULL), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_sim_restore(NULL), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_sim_faults(NULL, &count), SYNCEDMEM_INVALID_ARGUMENT);
    assert_status(syncedmem_sim_faults(sim(0), NULL), SYNCEDMEM_INVALID_ARGUMENT);
    assert_ok(syncedmem_sim_faults(sim(0), &count));
    cr_assert_eq(count, 0);
    assert_status(syncedmem_sim_fail(sim(0), SYNCEDMEM_SIM_FAIL_DEVICE + 1, 1),
                  SYNCEDMEM_INVALID_ARGUMENT);
}

CHILD_TEST(sim_setting, fail_device)
{
    void *block;
    CHILD_OK(syncedmem_sim_configure("devices=2,memory=1m,fail_device=2"));
    for (unsigned device = 0; device < 2; device++) {
        CHILD_OK(syncedmem_sim_alloc(sim(device), 100, &block));
        CHILD_OK(syncedmem_sim_free(sim(device), block));
        CHILD_STATUS(syncedmem_sim_alloc(sim(device), 100, &block), SYNCEDMEM_DEVICE_LOST);
        CHILD_OK(syncedmem_sim_restore(sim(device)));
        CHILD_OK(syncedmem_sim_alloc(sim(device), 100, &block));
        CHILD_OK(syncedmem_sim_free(sim(device), block));
    }
}

/* ---- The adversarial mode: a process for each seed ---- */

enum { SEEDS = 30 };

static unsigned seed;
static int *tally; /* shared with the children */

static void use_seed(void)
{
    char specification[64];
    snprintf(specification, sizeof specification, "devices=2,memory=16m,seed=%u", seed);
    CHILD_OK(syncedmem_sim_configure(specification));
    CHILD_OK(syncedmem_device_set_current(sim(0)));
}

/* How many of the children have counted. */
static int for_each_seed(void (*body)(void))
{
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)tally, MAP_FAILED);
    for (seed = 1; seed <= SEEDS; seed++) {
        cr_assert_eq(run_in_child(body), 0, "seed %u", seed);
    }
    return *tally;
}

static struct region whole = {.length = SIZE};

/* A blocking copy up, looked at from a stream that nothing orders after it. */
static void copy_up(void)
{
    static unsigned char host[SIZE], seen[SIZE];
    struct backend_stream *first;
    syncedmem_stream *second;
    void *block;
    use_seed();
    CHILD_OK(syncedmem_backend_sim.stream_create(sim(0)->device, &first));
    CHILD_OK(syncedmem_stream_create(sim(0), &second));
    CHILD_OK(syncedmem_sim_alloc(sim(0), SIZE, &block));
    const struct transfer transfer = {
        .to = block, .from = host, .to_device = sim(0)->device, .regions = &whole, .count = 1};
    for (unsigned i = 1; i <= 20; i++) {
        pattern_write(host, SIZE, i);
        CHILD_OK(syncedmem_backend_sim.copy_wait(first, &transfer));
        memset(host, 0, SIZE);
        CHILD_CHECK(stream_read(second, block, seen, SIZE));
        CHILD_OK(syncedmem_stream_wait(second));
        CHILD_CHECK(pattern_is(seen, SIZE, i));
    }
    CHILD_OK(syncedmem_sim_free(sim(0), block));
    syncedmem_stream_release(second);
}

Test(sim_seed, blocking_copies_have_landed, .timeout = 120)
{
    for_each_seed(copy_up);
}

/* A fill that is not waited for, and one behind it on another stream. */
static void fill_and_follow(void)
{
    static unsigned char seen[SIZE];
    struct backend_stream *first, *second;
    struct backend_event *event, *end;
    syncedmem_status_t status;
    void *block;
    use_seed();
    CHILD_OK(syncedmem_backend_sim.stream_create(sim(0)->device, &first));
    CHILD_OK(syncedmem_backend_sim.stream_create(sim(1)->device, &second));
    CHILD_OK(syncedmem_sim_alloc(sim(0), SIZE, &block));
    const struct transfer down = {
        .to = seen, .from = block, .from_device = sim(0)->device, .regions = &whole, .count = 1};
    CHILD_OK(syncedmem_backend_sim.fill(first, block, &whole, 1, 5, &event));
    *tally += !syncedmem_backend_sim.event_done(event, &status);
    CHILD_OK(syncedmem_backend_sim.stream_wait_event(second, event));
    CHILD_OK(syncedmem_backend_sim.copy(second, &down, &end));
    while (!syncedmem_backend_sim.event_done(end, &status)) {
        continue;
    }
    CHILD_OK(status);
    CHILD_OK(syncedmem_backend_sim.event_wait(event));
    for (size_t i = 0; i < SIZE; i++) {
        CHILD_CHECK(seen[i] == 5);
    }
    syncedmem_backend_sim.event_release(event);
    syncedmem_backend_sim.event_release(end);
}

Test(sim_seed, asynchronous_fills, .timeout = 120)
{
    cr_assert_gt(for_each_seed(fill_and_follow), 0);
}

/* What every program does: uploads, a kernel, downloads, on two devices. */
static void go_round(void)
{
    syncedmem_buffer *buffer;
    const void *reading;
    void *writing;
    uint64_t faults;
    use_seed();
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    for (unsigned i = 1; i <= 10; i++) {
        CHILD_OK(syncedmem_mutable_cpu_data(buffer, &writing));
        pattern_write(writing, SIZE, i);
        CHILD_OK(syncedmem_gpu_data(buffer, &reading));
        CHILD_CHECK(device_pattern_is(0, reading, SIZE, i));
        CHILD_OK(syncedmem_mutable_gpu_data(buffer, &writing));
        device_pattern_write(0, writing, SIZE, i + 100);
        CHILD_OK(syncedmem_cpu_data(buffer, &reading));
        CHILD_CHECK(pattern_is(reading, SIZE, i + 100));
    }
    syncedmem_release(buffer);
    for (unsigned device = 0; device < 2; device++) {
        CHILD_OK(syncedmem_sim_faults(sim(device), &faults));
        CHILD_CHECK(faults == 0);
    }
}

Test(sim_seed, plain_calls, .timeout = 120)
{
    for_each_seed(go_round);
}

/* The program frees memory that its kernel has not read yet. */
static void free_too_early(void)
{
    static unsigned char seen[SIZE];
    syncedmem_stream *stream;
    void *block;
    uint64_t faults;
    use_seed();
    CHILD_OK(syncedmem_stream_create(sim(0), &stream));
    CHILD_OK(syncedmem_sim_alloc(sim(0), SIZE, &block));
    CHILD_CHECK(stream_read(stream, block, seen, SIZE));
    CHILD_OK(syncedmem_sim_free(sim(0), block));
    CHILD_OK(syncedmem_stream_wait(stream));
    CHILD_OK(syncedmem_sim_faults(sim(0), &faults));
    CHILD_CHECK(faults <= 1);
    CHILD_CHECK((faults == 0) == (seen[0] != 0));
    *tally += (int)faults;
    CHILD_OK(syncedmem_sim_faults(sim(1), &faults));
    CHILD_CHECK(faults == 0);
    syncedmem_stream_release(stream);
}

Test(sim_seed, faults_are_counted, .timeout = 120)
{
    cr_assert_gt(for_each_seed(free_too_early), SEEDS / 3);
}
