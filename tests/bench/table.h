/* SPDX-License-Identifier: BSD-2-Clause */
/* What is printed: one line per benchmark. */
#ifndef SYNCEDMEM_BENCH_TABLE_H
#define SYNCEDMEM_BENCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum outcome { OUTCOME_NO_GOAL, OUTCOME_MET, OUTCOME_NOT_MET, OUTCOME_SKIPPED };

enum unit { UNIT_NS, UNIT_BYTES };

struct row {
    const char *name;
    enum unit unit;
    double ours;
    double baseline;   /* 0: none */
    double most_ratio; /* the goal; 0: none */
    double most;       /* the goal for ours alone; 0: none */
    bool zero;         /* the goal for ours alone is 0 */
    double wanted;     /* shown, and not judged; 0: none */
    const char *note;  /* at the end of the line; NULL: none */
};

/* The first time only: all suites but the sweep are one table. */
void table_head(void);
enum outcome table_row(const struct row *row);
/* For what cannot be measured here. */
enum outcome table_skip(const char *name, const char *reason);

/* ---- The sweep: a size, and times ---- */

struct column {
    const char *head; /* two lines, with '\n' between them */
    double ns;
};

void sweep_head(const struct column *columns, size_t count);
void sweep_row(const char *name, const struct column *columns, size_t count);

#endif
