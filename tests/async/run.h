/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs programs, each in a process of its own. */
#ifndef SYNCEDMEM_TESTS_ASYNC_RUN_H
#define SYNCEDMEM_TESTS_ASYNC_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* False when it went badly: what and how to run it again is on standard error. */
bool run_seed(uint64_t seed, bool fails, bool trace);

/* How many of the seeds went badly; stops after so many. */
unsigned run_seeds(uint64_t first, uint64_t count, bool fails, unsigned bad_most);

#endif
