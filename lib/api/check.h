/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that every public function begins with. */
#ifndef SYNCEDMEM_API_CHECK_H
#define SYNCEDMEM_API_CHECK_H

#include "base/call.h"
#include "base/error.h"

/* Returns INVALID_ARGUMENT, naming the parameter, from the calling function. */
#define REQUIRE_ARGUMENT(argument)                                                                 \
    do {                                                                                           \
        if (!(argument))                                                                           \
            return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, #argument " is NULL");              \
    } while (0)

/* The same for an out parameter, which is then cleared. */
#define REQUIRE_OUT(out)                                                                           \
    do {                                                                                           \
        REQUIRE_ARGUMENT(out);                                                                     \
        *(out) = 0;                                                                                \
    } while (0)

#endif
