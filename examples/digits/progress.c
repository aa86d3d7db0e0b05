/* SPDX-License-Identifier: BSD-2-Clause */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"

#include <stdio.h>
#include <unistd.h>

enum { BAR_WIDTH = 30 };

struct progress progress_start(uint32_t epochs)
{
    return (struct progress){.epochs = epochs, .is_terminal = isatty(STDOUT_FILENO) == 1};
}

static void show_bar(const struct progress *progress, uint32_t done)
{
    char bar[BAR_WIDTH + 1];
    const uint32_t full = (uint32_t)((uint64_t)done * BAR_WIDTH / progress->epochs);
    for (uint32_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    printf("\r  [%s] ", bar);
}

void progress_show(const struct progress *progress, uint32_t done, const struct epoch *epoch)
{
    if (progress->is_terminal)
        show_bar(progress, done);
    else
        printf("  ");
    printf("epoch %3u  loss %.4f  accuracy %.3f", done, epoch->loss,
           (double)epoch->right / TRAINING_HELD_OUT);
    if (!progress->is_terminal)
        putchar('\n');
    fflush(stdout);
}

void progress_end(const struct progress *progress)
{
    if (progress->is_terminal)
        putchar('\n');
    putchar('\n');
}
