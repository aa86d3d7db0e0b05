/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace ends for lack of room while a transfer that it has begun is under way. */
#include <sys/resource.h>

#include "core/root.h"
#include "processes.h"
#include "trace/trace.h"

enum { SIZE = 4096, LIMIT = 20000, CALLS_MOST = 100000 };

/* From now on the file has no room for more than this; the simulator's memory has its own. */
static int program_limit(void)
{
    static struct gate gate;
    syncedmem_buffer *buffer, *other;
    syncedmem_stream *stream;
    const void *reading;
    struct rlimit before;
    setenv("SYNCEDMEM_LOG", "warning", 1);
    CHILD_OK(syncedmem_create(SIZE, &buffer));
    CHILD_OK(syncedmem_create(SIZE, &other));
    CHILD_OK(syncedmem_set_home(other, sim(0)));
    CHILD_OK(syncedmem_fill(buffer, 0, SIZE, 7));
    CHILD_OK(syncedmem_stream_create(sim(0), &stream));
    gate_put(&gate, stream);
    CHILD_OK(syncedmem_prefetch(buffer, sim(0), 0, SIZE, stream));
    CHILD_CHECK(trace_is_on());
    CHILD_CHECK(buffer->root->body->works.first->trace != 0);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){LIMIT, before.rlim_max});
    for (int i = 0; i < CALLS_MOST && trace_is_on(); i++) {
        const void *there;
        CHILD_OK(syncedmem_fill(other, 0, SIZE, 1)); /* at the host */
        CHILD_OK(syncedmem_drop(other, sim(0)));
        CHILD_OK(syncedmem_gpu_data(other, &there));
        CHILD_OK(syncedmem_cpu_data(other, &there));
    }
    setrlimit(RLIMIT_FSIZE, &before);
    CHILD_CHECK(!trace_is_on());
    gate_open(&gate);
    CHILD_OK(syncedmem_wait(buffer));
    CHILD_OK(syncedmem_drop(buffer, syncedmem_host()));
    CHILD_OK(syncedmem_cpu_data(buffer, &reading));
    CHILD_CHECK(((const unsigned char *)reading)[SIZE - 1] == 7);
    syncedmem_release(buffer);
    syncedmem_release(other);
    syncedmem_stream_release(stream);
    return 0;
}

static const struct program programs[] = {{"limit", program_limit}};

__attribute__((constructor)) static void run_program(void)
{
    run_named_program(programs, sizeof programs / sizeof programs[0]);
}

/* The transfer's end is told to no one: the file is cut where it had to be, and the bytes arrive. */
Test(trace_ends, while_a_transfer_is_under_way, .timeout = 60)
{
    char path[] = "/tmp/syncedmem-trace-XXXXXX";
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    setenv("SYNCEDMEM_TRACE", path, 1);
    const struct outcome outcome = outcome_of(outcome_start, "limit");
    const off_t length = lseek(file, 0, SEEK_END);
    close(file);
    unlink(path);
    cr_assert_eq(outcome.status, 0, "status %d: %s", outcome.status, outcome.said);
    cr_assert(contains(outcome.said, "trace ends here"), "%s", outcome.said);
    cr_assert(length > 0 && length <= LIMIT, "%ld bytes", (long)length);
}
