/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line. */
#ifndef DIGITS_OPTIONS_H
#define DIGITS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *device; /* NULL: the best there is */
    const char *data;   /* NULL: the file that comes with the example */
    uint32_t epochs;
    uint64_t seed;
    uint32_t ahead; /* batches to prepare ahead */
    bool is_ahead_given;
    bool help;
};

/* False after a message on stderr. */
bool options_parse(int argc, char **argv, struct options *out_options);

void options_print_help(void);

#endif
