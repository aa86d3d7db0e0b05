/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

enum { DEFAULT_EPOCHS = 40, MOST_EPOCHS = 100000, DEFAULT_SEED = 1 };

static const char help[] =
    "Usage: digits [OPTION]...\n"
    "Teaches a small neural network to read handwritten digits, with all of its numbers in\n"
    "synced buffers, and shows how few of them had to move.\n"
    "\n"
    "  --device NAME   where to compute: a device such as sim:0, or host (default: the best GPU,\n"
    "                  else sim:0)\n"
    "  --epochs N      how many times to go through the digits, 1 to %d (default: %d)\n"
    "  --prefetch N    how many batches a thread prepares and sends ahead, 0 to %d, 0 for no\n"
    "                  thread (default: 2, on the host 0)\n"
    "  --seed N        where the random numbers start (default: %d)\n"
    "  --data FILE     digits, one a line: 64 pixels from 0 to 16, then the class\n"
    "  --help          show this and exit\n"
    "\n"
    "The same seed gives the same result, at any place, whatever is prepared ahead.\n"
    "Exit status: 0, 1 for a failure, 2 for wrong options.\n";

void options_print_help(void)
{
    printf(help, MOST_EPOCHS, DEFAULT_EPOCHS, LOADER_AHEAD_MOST, DEFAULT_SEED);
}

/* strtoull() alone would take blanks and a sign. */
static bool parse_number(const char *text, uint64_t *out_number)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    *out_number = number;
    return errno == 0 && *end == '\0';
}

static bool set_epochs(struct options *options, const char *value)
{
    uint64_t number;
    if (!parse_number(value, &number) || number < 1 || number > MOST_EPOCHS)
        return false;
    options->epochs = (uint32_t)number;
    return true;
}

static bool set_ahead(struct options *options, const char *value)
{
    uint64_t number;
    if (!parse_number(value, &number) || number > LOADER_AHEAD_MOST)
        return false;
    options->ahead = (uint32_t)number;
    options->is_ahead_given = true;
    return true;
}

static bool set_seed(struct options *options, const char *value)
{
    return parse_number(value, &options->seed);
}

static bool set_device(struct options *options, const char *value)
{
    options->device = value;
    return value[0] != '\0';
}

static bool set_data(struct options *options, const char *value)
{
    options->data = value;
    return value[0] != '\0';
}

static const struct option {
    const char *name;
    bool (*set)(struct options *options, const char *value);
} known[] = {
    {"--device", set_device}, {"--epochs", set_epochs}, {"--prefetch", set_ahead},
    {"--seed", set_seed},     {"--data", set_data},
};

/* The option that the word names, up to its end or a '='. */
static const struct option *find(const char *word)
{
    const size_t length = strcspn(word, "=");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) == length && memcmp(known[i].name, word, length) == 0)
            return &known[i];
    }
    return NULL;
}

static bool refuse(const char *what, const char *word)
{
    fprintf(stderr, "digits: %s: %s\nTry 'digits --help'.\n", what, word);
    return false;
}

bool options_parse(int argc, char **argv, struct options *out_options)
{
    *out_options = (struct options){.epochs = DEFAULT_EPOCHS, .seed = DEFAULT_SEED};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0) {
            out_options->help = true;
            continue;
        }
        const struct option *option = find(word);
        if (!option)
            return refuse("unknown option", word);
        const char *value = strchr(word, '=');
        value = value ? value + 1 : argv[++i];
        if (!value)
            return refuse("no value for", word);
        if (!option->set(out_options, value)) {
            fprintf(stderr, "digits: bad value for %s: '%s'\nTry 'digits --help'.\n", option->name,
                    value);
            return false;
        }
    }
    return true;
}
