/* SPDX-License-Identifier: BSD-2-Clause */
/* Random programs, a process each: see world.h. SYNCEDMEM_TEST_ROUNDS says how many. */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "run.h"

TestSuite(programs, .timeout = 3600);

static uint64_t rounds(void)
{
    const char *text = getenv("SYNCEDMEM_TEST_ROUNDS");
    return text != NULL ? strtoull(text, NULL, 10) : 3000;
}

Test(programs, without_failures)
{
    cr_assert_eq(run_seeds(1, rounds(), false, 3), 0);
}

Test(programs, with_late_failures)
{
    cr_assert_eq(run_seeds(1, rounds(), true, 3), 0);
}
