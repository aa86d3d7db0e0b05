/* SPDX-License-Identifier: BSD-2-Clause */
/* Epoch by epoch: a bar that grows on a terminal, one line each elsewhere. */
#ifndef DIGITS_PROGRESS_H
#define DIGITS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "training.h"

struct progress {
    uint32_t epochs;
    bool is_terminal;
};

struct progress progress_start(uint32_t epochs);
void progress_show(const struct progress *progress, uint32_t done, const struct epoch *epoch);

/* Leaves the bar's line, also when not all epochs came. */
void progress_end(const struct progress *progress);

#endif
