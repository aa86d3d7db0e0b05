/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are not hot, with the trace on and off. Whether it is on is decided at the first call
 * of a process, so each side is measured in one of its own, after the other.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leases.h"
#include "suites.h"

enum { CALLS = 1000, SIZE = 4096 };

enum call { LEASE, TRANSFER };

/* Traced as nothing: it only says who it was that caused an event. */
static void lease(void *context)
{
    for (int i = 0; i < CALLS; i++)
        bench_lease(context, syncedmem_host(), SYNCEDMEM_READ, 0, SIZE);
}

/* Each an event in the trace. */
static void transfer(void *context)
{
    for (int i = 0; i < CALLS; i++) {
        void *written;
        const void *read;
        BENCH_REQUIRE(syncedmem_mutable_cpu_data(context, &written) == SYNCEDMEM_OK);
        BENCH_REQUIRE(syncedmem_gpu_data(context, &read) == SYNCEDMEM_OK);
    }
}

/* ---- One side, in its own process ---- */

static double time_here(enum call call)
{
    syncedmem_buffer *buffer;
    void *pointer;
    double ns;
    BENCH_REQUIRE(syncedmem_create(SIZE, &buffer) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_set_home(buffer, bench_device()) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_mutable_cpu_data(buffer, &pointer) == SYNCEDMEM_OK);
    const struct side side = {.run = call == LEASE ? lease : transfer, .context = buffer};
    bench_measure(&side, 1, &ns);
    syncedmem_release(buffer);
    return ns / CALLS;
}

static _Noreturn void run_child(enum call call, int result, const char *file)
{
    BENCH_REQUIRE((file ? setenv("SYNCEDMEM_TRACE", file, 1) : unsetenv("SYNCEDMEM_TRACE")) == 0);
    const double ns = time_here(call);
    BENCH_REQUIRE(write(result, &ns, sizeof ns) == sizeof ns);
    _exit(EXIT_SUCCESS);
}

static double time_apart(enum call call, const char *file)
{
    int ends[2];
    double ns;
    int status;
    BENCH_REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    BENCH_REQUIRE(child >= 0);
    if (child == 0)
        run_child(call, ends[1], file);
    BENCH_REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    BENCH_REQUIRE(read(ends[0], &ns, sizeof ns) == sizeof ns);
    close(ends[0]);
    close(ends[1]);
    return ns;
}

/* To where all is thrown away: a second of events is some hundred megabytes. */
static enum outcome compare(const struct benchmark *benchmark)
{
    const enum call call = (enum call)benchmark->variant;
    const double off = time_apart(call, NULL);
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = time_apart(call, "/dev/null"),
        .baseline = off,
    });
}

static const struct benchmark benchmarks[] = {
    {"traced lease, READ : not traced", compare, .variant = LEASE},
    {"traced 4 KiB to device : not traced", compare, .variant = TRANSFER},
};

const struct suite bench_trace = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
