/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs random programs.
 *
 *   drive --seed N                 one, with a line for each step
 *   drive --failing-seed N         the same, with transfers that fail later
 *   drive --seeds FIRST COUNT      many, quietly; stops at the tenth that goes badly
 *   drive --failing-seeds FIRST COUNT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

int main(int count, char **arguments)
{
    const bool fails = count > 1 && strncmp(arguments[1], "--failing", 9) == 0;
    const char *what = count > 1 ? arguments[1] + (fails ? strlen("--failing-") : 2) : "";
    const uint64_t first = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    if (count == 3 && strcmp(what, "seed") == 0) {
        return run_seed(first, fails, true) ? 0 : 1;
    }
    if (count == 4 && strcmp(what, "seeds") == 0) {
        const unsigned bad = run_seeds(first, strtoull(arguments[3], NULL, 10), fails, 10);
        printf("%u went badly\n", bad);
        return bad == 0 ? 0 : 1;
    }
    fprintf(stderr, "usage: %s --[failing-]seed N | --[failing-]seeds FIRST COUNT\n", arguments[0]);
    return 2;
}
