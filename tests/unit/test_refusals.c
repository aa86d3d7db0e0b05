/* SPDX-License-Identifier: BSD-2-Clause */
/* set_cpu_data and set_gpu_data: what is refused, and that a refusal changes nothing. */
#include <stdlib.h>

#include "support.h"
#include "table.h"

TestSuite(refusals, .init = sim_setup, .timeout = 120);

enum { SIZE = 70000 };

/* A buffer with memory of its own at both places, in one of the states, and all there is to see. */
struct seen {
    struct subject subject;
    const void *host, *device;
    struct figures figures;
};

static void look(struct seen *seen, syncedmem_head_t state)
{
    subject_make(&seen->subject, SIZE, state, true);
    seen->host = seen->device = NULL;
    if (state == SYNCEDMEM_SYNCED) {
        assert_ok(syncedmem_cpu_data(seen->subject.buffer, &seen->host));
        assert_ok(syncedmem_gpu_data(seen->subject.buffer, &seen->device));
    }
    seen->figures = figures_of(seen->subject.buffer);
}

static void check_unchanged(struct seen *seen, const char *what)
{
    const struct figures now = figures_of(seen->subject.buffer);
    const void *pointer;
    cr_assert(is_one_line(syncedmem_last_error()), "%s", what);
    cr_assert(figures_equal(&seen->figures, &now), "%s: figures", what);
    if (seen->host != NULL) {
        assert_ok(syncedmem_cpu_data(seen->subject.buffer, &pointer));
        cr_assert_eq(pointer, seen->host, "%s: host pointer", what);
        cr_assert(pattern_is(pointer, SIZE, 1), "%s: host bytes", what);
        assert_ok(syncedmem_gpu_data(seen->subject.buffer, &pointer));
        cr_assert_eq(pointer, seen->device, "%s: device pointer", what);
        cr_assert(device_pattern_is(0, pointer, SIZE, 1), "%s: device bytes", what);
    }
}

/* After all refusals: the bytes at both places. */
static void look_away(struct seen *seen)
{
    cr_assert(subject_bytes_right(&seen->subject));
    subject_end(&seen->subject);
}

static void refuse(struct seen *seen, syncedmem_status_t status, syncedmem_status_t wanted,
                   const char *what)
{
    cr_assert_eq(status, wanted, "%s: %s (%s)", what, syncedmem_status_name(status),
                 syncedmem_last_error());
    check_unchanged(seen, what);
}

static void refuse_cpu(syncedmem_head_t state)
{
    struct seen seen;
    look(&seen, state);
    struct subject *subject = &seen.subject;
    syncedmem_buffer *buffer = subject->buffer;
    refuse(&seen, syncedmem_set_cpu_data(buffer, subject->host_block, SIZE - 1),
           SYNCEDMEM_OUT_OF_RANGE, "short");
    refuse(&seen, syncedmem_set_cpu_data(buffer, subject->host_block, 0), SYNCEDMEM_OUT_OF_RANGE,
           "empty");
    refuse(&seen, syncedmem_set_cpu_data(buffer, NULL, SIZE), SYNCEDMEM_INVALID_ARGUMENT, "NULL");
    refuse(&seen, syncedmem_set_cpu_data(buffer, subject->device_block, SIZE),
           SYNCEDMEM_WRONG_MEMORY, "device memory");
    refuse(&seen, syncedmem_set_cpu_data(buffer, (char *)subject->device_block + 1, SIZE),
           SYNCEDMEM_WRONG_MEMORY, "inside device memory");
    look_away(&seen);
}

static void refuse_gpu(syncedmem_head_t state)
{
    struct seen seen;
    void *other, *small;
    assert_ok(syncedmem_sim_alloc(sim(1), SIZE, &other));
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE / 4, &small));
    look(&seen, state);
    struct subject *subject = &seen.subject;
    syncedmem_buffer *buffer = subject->buffer;
    refuse(&seen, syncedmem_set_gpu_data(buffer, subject->device_block, SIZE - 1),
           SYNCEDMEM_OUT_OF_RANGE, "short");
    refuse(&seen, syncedmem_set_gpu_data(buffer, NULL, SIZE), SYNCEDMEM_INVALID_ARGUMENT, "NULL");
    refuse(&seen, syncedmem_set_gpu_data(buffer, subject->host_block, SIZE), SYNCEDMEM_WRONG_MEMORY,
           "host memory");
    refuse(&seen, syncedmem_set_gpu_data(buffer, &seen, SIZE), SYNCEDMEM_WRONG_MEMORY, "stack");
    refuse(&seen, syncedmem_set_gpu_data(buffer, other, SIZE), SYNCEDMEM_WRONG_MEMORY,
           "another device's memory");
    refuse(&seen, syncedmem_set_gpu_data(buffer, (void *)(uintptr_t)16, SIZE),
           SYNCEDMEM_WRONG_MEMORY, "no memory at all");
    const syncedmem_status_t status = syncedmem_set_gpu_data(buffer, small, SIZE);
    cr_assert(status == SYNCEDMEM_OUT_OF_RANGE || status == SYNCEDMEM_WRONG_MEMORY,
              "a block that the driver knows is shorter than said: %s",
              syncedmem_status_name(status));
    check_unchanged(&seen, "shorter than said");
    assert_ok(syncedmem_sim_free(sim(0), small));
    refuse(&seen, syncedmem_set_gpu_data(buffer, small, SIZE / 4), SYNCEDMEM_OUT_OF_RANGE,
           "short and freed");
    look_away(&seen);
    assert_ok(syncedmem_sim_free(sim(1), other));
}

Test(refusals, cpu_refusals)
{
    for (syncedmem_head_t state = 0; state < STATES; state++) {
        refuse_cpu(state);
    }
}

Test(refusals, gpu_refusals)
{
    for (syncedmem_head_t state = 0; state < STATES; state++) {
        refuse_gpu(state);
    }
}

Test(refusals, freed_device_memory_is_refused)
{
    struct seen seen;
    void *gone;
    look(&seen, SYNCEDMEM_SYNCED);
    assert_ok(syncedmem_sim_alloc(sim(0), SIZE, &gone));
    assert_ok(syncedmem_sim_free(sim(0), gone));
    refuse(&seen, syncedmem_set_gpu_data(seen.subject.buffer, gone, SIZE), SYNCEDMEM_WRONG_MEMORY,
           "freed");
    look_away(&seen);
}

/* The library's own blocks of this buffer, at their first and last byte and between. */
Test(refusals, own_blocks_are_refused)
{
    static const size_t offsets[] = {0, 1, 64, SIZE / 2, SIZE - 1};
    struct seen seen;
    look(&seen, SYNCEDMEM_SYNCED);
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        char *host = (char *)(uintptr_t)seen.host + offsets[i];
        char *device = (char *)(uintptr_t)seen.device + offsets[i];
        refuse(&seen, syncedmem_set_cpu_data(seen.subject.buffer, host, SIZE),
               SYNCEDMEM_INVALID_ARGUMENT, "own host block");
        refuse(&seen, syncedmem_set_gpu_data(seen.subject.buffer, device, SIZE),
               SYNCEDMEM_INVALID_ARGUMENT, "own device block");
        cr_assert_neq(syncedmem_set_cpu_data(seen.subject.buffer, device, SIZE), SYNCEDMEM_OK);
        check_unchanged(&seen, "own device block for the host");
        cr_assert_neq(syncedmem_set_gpu_data(seen.subject.buffer, host, SIZE), SYNCEDMEM_OK);
        check_unchanged(&seen, "own host block for the device");
    }
    look_away(&seen);
}

/* A refused set_gpu_data does not fix the home. */
Test(refusals, a_refusal_leaves_the_home_open)
{
    struct subject subject;
    void *other;
    assert_ok(syncedmem_sim_alloc(sim(1), SIZE, &other));
    subject_make(&subject, SIZE, SYNCEDMEM_UNINITIALIZED, false);
    assert_status(syncedmem_set_gpu_data(subject.buffer, subject.host_block, SIZE),
                  SYNCEDMEM_WRONG_MEMORY);
    assert_status(syncedmem_set_gpu_data(subject.buffer, other, SIZE), SYNCEDMEM_WRONG_MEMORY);
    cr_assert(home_is_open(subject.buffer));
    assert_ok(syncedmem_set_home(subject.buffer, sim(1)));
    assert_ok(syncedmem_set_gpu_data(subject.buffer, other, SIZE));
    cr_assert(home_is_fixed_at(subject.buffer, 1));
    subject_end(&subject);
    assert_ok(syncedmem_sim_free(sim(1), other));
}
