/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

enum { CELL = 32, NAME_WIDTH = 54, FIGURE_WIDTH = 11 };

/* ---- Figures ---- */

static void format_ns(double ns, char text[CELL])
{
    if (ns < 1e3)
        snprintf(text, CELL, "%.2f ns", ns);
    else if (ns < 1e6)
        snprintf(text, CELL, "%.2f us", ns / 1e3);
    else
        snprintf(text, CELL, "%.2f ms", ns / 1e6);
}

static void format_figure(double figure, enum unit unit, char text[CELL])
{
    if (unit == UNIT_NS)
        format_ns(figure, text);
    else
        snprintf(text, CELL, "%.0f bytes", figure);
}

static void format_baseline(const struct row *row, char text[CELL])
{
    if (row->baseline == 0)
        snprintf(text, CELL, "-");
    else
        format_figure(row->baseline, row->unit, text);
}

/* ---- Goals ---- */

static void format_goal(const struct row *row, char text[CELL])
{
    const char *unit = row->unit == UNIT_NS ? "ns" : "bytes";
    if (row->wanted != 0)
        snprintf(text, CELL, "<= %.2f, %.0f %s wanted", row->most_ratio, row->wanted, unit);
    else if (row->most_ratio != 0)
        snprintf(text, CELL, "<= %.2f", row->most_ratio);
    else if (row->most != 0)
        snprintf(text, CELL, "<= %.0f %s", row->most, unit);
    else if (row->zero)
        snprintf(text, CELL, "0 %s", unit);
    else
        snprintf(text, CELL, "-");
}

static void format_ratio(const struct row *row, char text[CELL])
{
    if (row->baseline == 0)
        snprintf(text, CELL, "-");
    else
        snprintf(text, CELL, row->ours < 0.1 * row->baseline ? "%.4f" : "%.2f",
                 row->ours / row->baseline);
}

static enum outcome judge(const struct row *row)
{
    if (row->most_ratio == 0 && row->most == 0 && !row->zero)
        return OUTCOME_NO_GOAL;
    const bool met = (row->most_ratio == 0 || row->ours <= row->most_ratio * row->baseline) &&
                     (row->most == 0 || row->ours <= row->most) && (!row->zero || row->ours == 0);
    return met ? OUTCOME_MET : OUTCOME_NOT_MET;
}

/* ---- Lines ---- */

static void print_line(const char *name, const char *ours, const char *baseline, const char *ratio,
                       const char *goal, const char *outcome, const char *note)
{
    printf("%-*s %*s %*s %8s  %-20s %s", NAME_WIDTH, name, FIGURE_WIDTH, ours, FIGURE_WIDTH,
           baseline, ratio, goal, outcome);
    printf(note ? "  (%s)\n" : "\n", note);
}

void table_head(void)
{
    static bool printed;
    if (printed)
        return;
    printed = true;
    print_line("benchmark", "ours", "baseline", "ratio", "goal", "", NULL);
}

enum outcome table_row(const struct row *row)
{
    static const char *const words[] = {
        [OUTCOME_NO_GOAL] = "", [OUTCOME_MET] = "met", [OUTCOME_NOT_MET] = "NOT met"};
    char ours[CELL], baseline[CELL], ratio[CELL], goal[CELL];
    const enum outcome outcome = judge(row);
    format_figure(row->ours, row->unit, ours);
    format_baseline(row, baseline);
    format_ratio(row, ratio);
    format_goal(row, goal);
    print_line(row->name, ours, baseline, ratio, goal, words[outcome], row->note);
    return outcome;
}

enum outcome table_skip(const char *name, const char *reason)
{
    printf("%-*s skipped: %s\n", NAME_WIDTH, name, reason);
    return OUTCOME_SKIPPED;
}

/* ---- The sweep ---- */

enum { SIZE_WIDTH = 10 };

static void print_head_line(const char *name, const struct column *columns, size_t count,
                            bool second)
{
    printf("%-*s", SIZE_WIDTH, name);
    for (size_t i = 0; i < count; i++) {
        const char *head = columns[i].head;
        const char *newline = strchr(head, '\n');
        printf(" %*.*s", FIGURE_WIDTH, second ? FIGURE_WIDTH : (int)(newline - head),
               second ? newline + 1 : head);
    }
    printf("\n");
}

void sweep_head(const struct column *columns, size_t count)
{
    print_head_line("", columns, count, false);
    print_head_line("size", columns, count, true);
}

void sweep_row(const char *name, const struct column *columns, size_t count)
{
    printf("%-*s", SIZE_WIDTH, name);
    for (size_t i = 0; i < count; i++) {
        char text[CELL];
        format_ns(columns[i].ns, text);
        printf(" %*s", FIGURE_WIDTH, text);
    }
    printf("\n");
}
