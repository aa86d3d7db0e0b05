/* SPDX-License-Identifier: BSD-2-Clause */
/* syncedmem_bench [--quick] [--filter TEXT]: measures, prints, and fails only if something does
 * not run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "suites.h"

struct options {
    const char *filter;
    bool help;
};

static const char usage[] =
    "usage: syncedmem_bench [--quick] [--filter TEXT]\n"
    "\n"
    "  --quick         few repetitions, to see that everything runs; the figures mean little\n"
    "  --filter TEXT   only the benchmarks whose name has TEXT in it\n"
    "\n"
    "ours: the library; baseline: what the name says after the colon, in the same run, by turns\n"
    "with ours. Each figure is the least of at least 30 repetitions. From allocation to end:\n"
    "create and release, or free, are part of what is timed where memory is.\n";

static bool parse_one(char **argument, struct options *options, int *taken)
{
    *taken = 1;
    if (strcmp(argument[0], "--quick") == 0) {
        bench_quick = true;
        bench_effort = (struct effort){.repetitions = 3, .seconds = 0};
    } else if (strcmp(argument[0], "--help") == 0) {
        options->help = true;
    } else if (strcmp(argument[0], "--filter") == 0 && argument[1]) {
        options->filter = argument[1];
        *taken = 2;
    } else {
        return false;
    }
    return true;
}

static bool parse(char **arguments, struct options *options)
{
    for (int taken; *arguments; arguments += taken)
        if (!parse_one(arguments, options, &taken))
            return false;
    return true;
}

static void run_all(const char *filter, struct tally *tally)
{
    static const struct suite *const suites[] = {&bench_hot,      &bench_class,     &bench_handles,
                                                 &bench_memory,   &bench_transfers, &bench_ranges,
                                                 &bench_segments, &bench_pipeline,  &bench_trace,
                                                 &bench_starpu,   &bench_sweep};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        bench_run_suite(suites[i], filter, tally);
}

int main(int count, char **arguments)
{
    struct options options = {0};
    struct tally tally = {0};
    (void)count;
    if (!parse(arguments + 1, &options) || options.help) {
        fputs(usage, options.help ? stdout : stderr);
        return options.help ? EXIT_SUCCESS : 2;
    }
    printf("Build type: %s\n\n", BENCH_BUILD_TYPE);
    run_all(options.filter, &tally);
    printf("\n%u of %u goals met", tally.met, tally.met + tally.not_met);
    if (tally.skipped)
        printf(", %u benchmarks skipped", tally.skipped);
    printf(tally.failed ? ", %u failed to run\n" : "\n", tally.failed);
    return tally.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
