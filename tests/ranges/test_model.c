/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random streams of every operation on roots and nested views, compared with the model.
 *
 *   SYNCEDMEM_TEST_SEED    the first seed (a failure prints the one it had)
 *   SYNCEDMEM_TEST_ROUNDS  how many streams of 100 operations, 400 unless told; half as many
 *                          with faults
 *   SYNCEDMEM_TEST_KEEP    the folder that a bad stream is written to, /tmp unless told
 *
 * A bad stream is made shorter in forks of a helper: a process that has not touched a device, as
 * the devices do not live on in a fork. The helper also learns which stream was the last one
 * when the test itself dies.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "ops.h"
#include "run.h"

enum { OPERATIONS = 100, SIZE = OPERATIONS * OP_BYTES };

TestSuite(ranges, .timeout = 3500);

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoul(text, NULL, 10);
}

/* ---- The helper ---- */

struct shared {
    _Atomic(unsigned long) seed; /* of the stream that runs */
    bool with_faults;
};

struct helper {
    pid_t pid;
    int to; /* a byte on it: all went well; its end alone: something is wrong */
    struct shared *shared;
};

static void report_seed(unsigned long seed, bool with_faults)
{
    unsigned char stream[SIZE];
    char path[512];
    const char *folder = getenv("SYNCEDMEM_TEST_KEEP");
    ops_generate(seed, with_faults, stream, OPERATIONS);
    snprintf(path, sizeof path, "%s/%s-%lu", folder == NULL ? "/tmp" : folder,
             with_faults ? "faults" : "model", seed);
    fprintf(stderr, "SYNCEDMEM_TEST_SEED=%lu%s\n", seed, with_faults ? " with faults" : "");
    report_bad_stream(stream, SIZE, path);
}

static void help(const struct helper *helper, int from)
{
    char byte;
    if (read(from, &byte, 1) != 1) {
        report_seed(atomic_load(&helper->shared->seed), helper->shared->with_faults);
    }
    _exit(0);
}

static struct helper helper_begin(bool with_faults)
{
    struct helper helper;
    int ends[2];
    helper.shared = mmap(NULL, sizeof *helper.shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(helper.shared != MAP_FAILED && pipe(ends) == 0, "no memory for the test");
    helper.shared->with_faults = with_faults;
    fflush(NULL);
    helper.pid = fork();
    cr_assert(helper.pid >= 0, "fork");
    if (helper.pid == 0) {
        close(ends[1]);
        help(&helper, ends[0]);
    }
    close(ends[0]);
    helper.to = ends[1];
    return helper;
}

static void helper_end(const struct helper *helper, bool good)
{
    signal(SIGPIPE, SIG_IGN);
    if (good && write(helper->to, "", 1) != 1) {
        fprintf(stderr, "the helper has died\n");
    }
    close(helper->to);
    waitpid(helper->pid, NULL, 0);
    munmap(helper->shared, sizeof *helper->shared);
}

/* ---- The tests ---- */

static void run_seeds(bool with_faults, unsigned long rounds)
{
    unsigned char stream[SIZE];
    char difference[1024] = "";
    const unsigned long first = from_environment("SYNCEDMEM_TEST_SEED", 1);
    const struct helper helper = helper_begin(with_faults);
    unsigned long seed = first;
    for (; seed < first + rounds && difference[0] == '\0'; seed++) {
        atomic_store(&helper.shared->seed, seed);
        ops_generate(seed, with_faults, stream, OPERATIONS);
        const char *what = run_stream(stream, SIZE, (struct run_options){0});
        snprintf(difference, sizeof difference, "%s", what == NULL ? "" : what);
    }
    helper_end(&helper, difference[0] == '\0');
    cr_assert(difference[0] == '\0', "SYNCEDMEM_TEST_SEED=%lu: %s", seed - 1, difference);
}

Test(ranges, random_streams)
{
    run_seeds(false, from_environment("SYNCEDMEM_TEST_ROUNDS", 400));
}

/* With the n-th allocation or copy of some calls failing. */
Test(ranges, random_streams_with_faults)
{
    run_seeds(true, (from_environment("SYNCEDMEM_TEST_ROUNDS", 400) + 1) / 2);
}

/* The shrinker itself: of many operations the one is left that a difference was made up for. */
Test(ranges, bad_streams_become_short)
{
    unsigned char stream[SIZE];
    ops_generate(1, false, stream, OPERATIONS);
    cr_assert_eq(shrink(stream, SIZE, false), (size_t)SIZE, "a good stream is left as it is");
    cr_assert_eq(shrink(stream, SIZE, true), (size_t)OP_BYTES);
    cr_assert_eq(op_read(stream).kind, OP_DROP);
}
