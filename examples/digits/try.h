/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DIGITS_TRY_H
#define DIGITS_TRY_H

/* Makes a call, and returns its status from the function around it where that is a failure. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const syncedmem_status_t try_status = (call);                                              \
        if (try_status != SYNCEDMEM_OK)                                                            \
            return try_status;                                                                     \
    } while (0)

#endif
