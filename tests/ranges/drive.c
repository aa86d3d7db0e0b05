/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs streams of operations from files, or shrinks one.
 *
 *   drive FILE...              each in turn; a directory stands for the files in it
 *   drive --trace FILE         a line for each call
 *   drive --shrink FILE        and writes FILE.short
 *   drive --seed N COUNT FILE  writes the stream of a seed; a negative count: with faults
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ops.h"
#include "run.h"

enum { SIZE_MOST = STREAM_OPERATIONS_MOST * OP_BYTES };

static unsigned run, bad;
static struct run_options options;

static size_t read_file(const char *path, unsigned char *bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    const size_t size = fread(bytes, 1, SIZE_MOST, file);
    fclose(file);
    return size;
}

static void run_file(const char *path)
{
    char message[1024];
    unsigned char bytes[SIZE_MOST];
    const size_t size = read_file(path, bytes);
    run++;
    if (!run_in_fork(bytes, size, options, message, sizeof message)) {
        bad++;
        printf("not ok - %s: %s\n", path, message);
    } else {
        printf("ok - %s\n", path);
    }
}

static void run_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        run_file(path);
        return;
    }
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char inside[1024];
        if (entry->d_name[0] != '.') {
            snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
            run_path(inside);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

static int write_seed(char **arguments)
{
    unsigned char bytes[SIZE_MOST];
    const long count = strtol(arguments[1], NULL, 10);
    const size_t operations = (size_t)labs(count);
    if (operations > STREAM_OPERATIONS_MOST) {
        return 2;
    }
    ops_generate(strtoull(arguments[0], NULL, 10), count < 0, bytes, operations);
    FILE *file = fopen(arguments[2], "wb");
    if (file == NULL || fwrite(bytes, OP_BYTES, operations, file) != operations) {
        return 2;
    }
    return fclose(file) == 0 ? 0 : 2;
}

static int shrink_file(const char *path)
{
    unsigned char bytes[SIZE_MOST];
    char shorter[1024];
    const size_t size = read_file(path, bytes);
    snprintf(shorter, sizeof shorter, "%s.short", path);
    report_bad_stream(bytes, size, shorter);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 5 && strcmp(arguments[1], "--seed") == 0) {
        return write_seed(arguments + 2);
    }
    if (count == 3 && strcmp(arguments[1], "--shrink") == 0) {
        return shrink_file(arguments[2]);
    }
    options.trace = count > 1 && strcmp(arguments[1], "--trace") == 0;
    for (int i = 1 + options.trace; i < count; i++) {
        run_path(arguments[i]);
    }
    printf("%u passed, %u failed\n", run - bad, bad);
    return bad == 0 && run > 0 ? 0 : 1;
}
