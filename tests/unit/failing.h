/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be made to fail, for tests that are linked with wrap-alloc. */
#ifndef SYNCEDMEM_TESTS_UNIT_FAILING_H
#define SYNCEDMEM_TESTS_UNIT_FAILING_H

#include "support.h"
#include "wrap_alloc.h"

enum failing { HOST_ALLOCATION, DEVICE_ALLOCATION, COPY, LATE_COPY, FAILINGS };

static const struct {
    const char *name;
    int32_t what;
    syncedmem_status_t status;
} failings[FAILINGS] = {
    {"host allocation", 0, SYNCEDMEM_OUT_OF_HOST_MEMORY},
    {"device allocation", SYNCEDMEM_SIM_FAIL_ALLOC, SYNCEDMEM_OUT_OF_DEVICE_MEMORY},
    {"copy", SYNCEDMEM_SIM_FAIL_COPY, SYNCEDMEM_DEVICE_ERROR},
    {"late copy", SYNCEDMEM_SIM_FAIL_COPY_LATE, SYNCEDMEM_DEVICE_ERROR},
};

/* The n-th one from now on, on this thread or on the first device. */
static inline void arm(enum failing failing, unsigned n)
{
    if (failing == HOST_ALLOCATION) {
        wrap_fail_nth(n);
    } else {
        assert_ok(syncedmem_sim_fail(sim(0), failings[failing].what, n));
    }
}

#endif
