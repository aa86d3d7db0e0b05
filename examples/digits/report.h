/* SPDX-License-Identifier: BSD-2-Clause */
/* What is printed before and after the training. */
#ifndef DIGITS_REPORT_H
#define DIGITS_REPORT_H

#include "training.h"

syncedmem_status_t report_start(const struct device *device, const struct data *data,
                                uint32_t ahead);

/* Draws a few of the digits held out, a wrong one among them where there is one. */
syncedmem_status_t report_digits(struct training *training);

syncedmem_status_t report_result(struct training *training, const struct epoch *last);

/* What the library moved, against copying around every kernel. */
syncedmem_status_t report_traffic(const struct device *device);

#endif
