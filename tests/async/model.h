/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a buffer's bytes have to be, in the order of the program.
 *
 * Without failures a byte is what was written last. A transfer that fails later may take back what
 * was written on top of it: so a byte keeps all values it may go back to. It may go back only when a
 * failure has been returned, and from then until it is read or written it is unsure.
 */
#ifndef SYNCEDMEM_TESTS_ASYNC_MODEL_H
#define SYNCEDMEM_TESTS_ASYNC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIZE_MOST = 160 };

struct model_byte {
    uint8_t latest;
    bool unsure;
    bool fragile;    /* at the only place that it was brought to for writing: may be lost */
    uint64_t may[4]; /* a bit for each value, `latest` among them */
};

/* Nothing that happened before can take it back. */
void model_set(struct model_byte *byte, uint8_t value);

/* Brought to be written on, and stale everywhere else. */
void model_bring(struct model_byte *byte);

/* Written on top of what may still fail. */
void model_add(struct model_byte *byte, uint8_t value);

/* Old or new: the call that was to write it failed. */
void model_blur(struct model_byte *byte, uint8_t value);

/* The same, for a copy of a byte that is unsure itself. */
void model_copy(struct model_byte *to, const struct model_byte *from);
void model_blur_copy(struct model_byte *to, const struct model_byte *from);

/* A failure was returned. */
void model_report(struct model_byte *bytes, size_t count);

/* It has arrived where it was asked for, so nothing takes it back any more. */
void model_settle(struct model_byte *byte);

/* It was read: false when it must not have that value. From now on it has. */
bool model_read(struct model_byte *byte, uint8_t value);

#endif
