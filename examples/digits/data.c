/* SPDX-License-Identifier: BSD-2-Clause */
#include "data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the build says that the file is; the other path works from the top of the source tree. */
#ifndef DIGITS_DATA_PATH
#define DIGITS_DATA_PATH "examples/data/digits.csv"
#endif
static const char *const default_paths[] = {DIGITS_DATA_PATH, "examples/data/digits.csv"};

/* A number from 0 to `most`, and what must follow it. Moves the text past both. */
static bool take_number(const char **text, unsigned long most, char after, uint8_t *out_number)
{
    if (**text < '0' || **text > '9')
        return false;
    char *end;
    const unsigned long number = strtoul(*text, &end, 10);
    if (number > most || *end != after)
        return false;
    *out_number = (uint8_t)number;
    *text = end + 1;
    return true;
}

/* The line ends in '\n'. */
static bool parse_digit(const char *line, struct digit *out_digit)
{
    for (int i = 0; i < DATA_PIXELS; i++) {
        if (!take_number(&line, DATA_BRIGHTEST, ',', &out_digit->pixels[i]))
            return false;
    }
    return take_number(&line, DATA_CLASSES - 1, '\n', &out_digit->class);
}

/* Takes "\r\n" and a last line without an end as "\n". The buffer has room for that. */
static void end_line(char *line)
{
    const size_t length = strcspn(line, "\r\n");
    line[length] = '\n';
    line[length + 1] = '\0';
}

static bool append(struct data *data, size_t *capacity, const struct digit *digit)
{
    if (data->count == *capacity) {
        const size_t more = *capacity ? 2 * *capacity : 2048;
        struct digit *moved = realloc(data->digits, more * sizeof *moved);
        if (!moved)
            return false;
        data->digits = moved;
        *capacity = more;
    }
    data->digits[data->count++] = *digit;
    return true;
}

static bool read_digits(FILE *file, const char *path, struct data *data)
{
    char line[512];
    size_t capacity = 0;
    while (fgets(line, sizeof line - 1, file)) {
        struct digit digit;
        end_line(line);
        if (data->count == DATA_MOST || !parse_digit(line, &digit)) {
            fprintf(stderr,
                    "digits: %s:%u: not a digit, which is %d pixels from 0 to %d and a class\n",
                    path, data->count + 1U, DATA_PIXELS, DATA_BRIGHTEST);
            return false;
        }
        if (!append(data, &capacity, &digit)) {
            fprintf(stderr, "digits: no memory for the digits of %s\n", path);
            return false;
        }
    }
    if (ferror(file)) {
        fprintf(stderr, "digits: %s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

static FILE *open_file(const char **path)
{
    if (*path)
        return fopen(*path, "r");
    FILE *file = NULL;
    for (size_t i = 0; !file && i < sizeof default_paths / sizeof *default_paths; i++) {
        *path = default_paths[i];
        file = fopen(*path, "r");
    }
    return file;
}

bool data_load(const char *path, uint32_t least, struct data *out_data)
{
    *out_data = (struct data){0};
    FILE *file = open_file(&path);
    if (!file) {
        fprintf(stderr, "digits: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool ok = read_digits(file, path, out_data);
    fclose(file);
    if (ok && out_data->count < least) {
        fprintf(stderr, "digits: %s: %u digits, and at least %u are needed\n", path,
                out_data->count, least);
        ok = false;
    }
    if (!ok)
        data_free(out_data);
    return ok;
}

void data_free(struct data *data)
{
    free(data->digits);
    *data = (struct data){0};
}
