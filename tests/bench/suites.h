/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYNCEDMEM_BENCH_SUITES_H
#define SYNCEDMEM_BENCH_SUITES_H

#include "run.h"

extern const struct suite bench_hot;       /* hot.c: calls with nothing to do */
extern const struct suite bench_class;     /* class.c: the same through the C++ classes */
extern const struct suite bench_handles;   /* handles.c: buffers that no one touches */
extern const struct suite bench_memory;    /* memory.c: the first touch on the host */
extern const struct suite bench_transfers; /* transfers.c: whole buffers, both ways */
extern const struct suite bench_ranges;    /* ranges.c: leases of a part or all of a buffer */
extern const struct suite bench_segments;  /* segments.c: writes to a crowded validity map */
extern const struct suite bench_pipeline;  /* pipeline.c: push, kernel, pull overlapping */
extern const struct suite bench_trace;     /* trace.c: with the trace, and without */
extern const struct suite bench_starpu;    /* starpu.c: leases against another library's */
extern const struct suite bench_sweep;     /* sweep.c: ways to get zeroed memory, by size */

#endif
