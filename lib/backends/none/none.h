/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYNCEDMEM_BACKENDS_NONE_H
#define SYNCEDMEM_BACKENDS_NONE_H

#include "backends/ops.h"

extern const struct backend syncedmem_backend_none;

#endif
