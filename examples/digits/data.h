/* SPDX-License-Identifier: BSD-2-Clause */
/* The digits, as they are in the file. */
#ifndef DIGITS_DATA_H
#define DIGITS_DATA_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DATA_SIDE = 8,
    DATA_PIXELS = DATA_SIDE * DATA_SIDE,
    DATA_BRIGHTEST = 16,
    DATA_CLASSES = 10,
    DATA_MOST = 1000000 /* digits in a file, so that no sum of sizes can overflow */
};

struct digit {
    uint8_t pixels[DATA_PIXELS]; /* 0 to DATA_BRIGHTEST */
    uint8_t class;
};

struct data {
    struct digit *digits;
    uint32_t count;
};

/*
 * Reads a file; NULL for the one that comes with the example. False after a message on stderr,
 * also when there are fewer digits than `least`. data_free() gives the memory back.
 */
bool data_load(const char *path, uint32_t least, struct data *out_data);
void data_free(struct data *data);

#endif
