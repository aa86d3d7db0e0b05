/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "try.h"

/* ---- Numbers for people ---- */

struct text {
    char characters[32];
};

/* 1234567 as "1,234,567". */
static struct text with_commas(uint64_t number)
{
    char digits[24];
    struct text text = {""};
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    char *next = text.characters;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *next++ = ',';
        *next++ = digits[i];
    }
    *next = '\0';
    return text;
}

static struct text as_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct text text;
    double number = (double)bytes;
    size_t unit = 0;
    while (number >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        number /= 1024;
        unit++;
    }
    snprintf(text.characters, sizeof text.characters, unit ? "%.1f %s" : "%.0f %s", number,
             units[unit]);
    return text;
}

/* ---- Start ---- */

syncedmem_status_t report_start(const struct device *device, const struct data *data,
                                uint32_t ahead)
{
    const char *name;
    const char *description;
    TRY(syncedmem_device_text(device->place, SYNCEDMEM_PLACE_NAME, &name));
    TRY(syncedmem_device_text(device->place, SYNCEDMEM_PLACE_DESCRIPTION, &description));
    if (device->is_stand_in)
        printf("no GPU found, using the simulated device %s\n", name);
    printf("\n  device   %s (%s)\n", name, description);
    printf("  network  %d pixels -> %d hidden (ReLU) -> %d classes: %s parameters\n", DATA_PIXELS,
           NETWORK_HIDDEN, DATA_CLASSES, with_commas(NETWORK_PARAMETERS).characters);
    printf("  digits   %s to learn from, in batches of %d; the last %d are held out\n",
           with_commas(data->count - TRAINING_HELD_OUT).characters, TRAINING_BATCH,
           TRAINING_HELD_OUT);
    if (ahead)
        printf("  batches  prepared by another thread, %" PRIu32 " ahead\n\n", ahead);
    else
        printf("  batches  prepared one by one\n\n");
    return SYNCEDMEM_OK;
}

/* ---- Digits ---- */

enum { SHOWN = 4 };

/* Three that were read right, of different classes, and the first that was not. */
static uint32_t choose(const struct digit *digits, const uint32_t *read_as, uint32_t *out_chosen)
{
    bool seen[DATA_CLASSES] = {false};
    uint32_t right = 0;
    uint32_t wrong = TRAINING_HELD_OUT;
    for (uint32_t i = 0; i < TRAINING_HELD_OUT; i++) {
        if (digits[i].class != read_as[i]) {
            if (wrong == TRAINING_HELD_OUT)
                wrong = i;
        } else if (right < SHOWN && !seen[digits[i].class]) {
            seen[digits[i].class] = true;
            out_chosen[right++] = i;
        }
    }
    if (wrong == TRAINING_HELD_OUT)
        return right;
    if (right == SHOWN)
        right--;
    out_chosen[right++] = wrong;
    return right;
}

/* Each pixel twice, because characters are twice as high as wide. */
static void draw_row(const uint8_t *pixels)
{
    static const char shades[] = " .:-=+*#%@";
    for (int x = 0; x < DATA_SIDE; x++) {
        const char shade = shades[pixels[x] * (int)(sizeof shades - 2) / DATA_BRIGHTEST];
        putchar(shade);
        putchar(shade);
    }
}

static void draw(const struct digit *digits, const uint32_t *chosen, uint32_t count)
{
    for (int y = 0; y < DATA_SIDE; y++) {
        for (uint32_t i = 0; i < count; i++) {
            printf("  ");
            draw_row(&digits[chosen[i]].pixels[y * DATA_SIDE]);
        }
        putchar('\n');
    }
}

syncedmem_status_t report_digits(struct training *training)
{
    const uint32_t *read_as;
    TRY(training_read_as(training, &read_as));
    const struct digit *digits = training->data->digits + training->learned;
    uint32_t chosen[SHOWN];
    const uint32_t count = choose(digits, read_as, chosen);
    draw(digits, chosen, count);
    for (uint32_t i = 0; i < count; i++) {
        const unsigned right = digits[chosen[i]].class;
        const unsigned read = read_as[chosen[i]];
        if (read == right)
            printf("  read as %-8u", read);
        else
            printf("  read as %u, is %u ", read, right);
    }
    printf("\n\n");
    return SYNCEDMEM_OK;
}

syncedmem_status_t report_result(struct training *training, const struct epoch *last)
{
    uint64_t hash;
    TRY(training_fingerprint(training, &hash));
    printf("  accuracy on the last %d digits: %.3f (%u of %d)\n", TRAINING_HELD_OUT,
           (double)last->right / TRAINING_HELD_OUT, last->right, TRAINING_HELD_OUT);
    printf("  fingerprint of the parameters:   %016" PRIx64 "\n\n", hash);
    return SYNCEDMEM_OK;
}

/* ---- Traffic ---- */

static void print_row(const char *name, uint64_t moved, uint64_t moved_bytes, uint64_t naive,
                      uint64_t naive_bytes)
{
    printf("  %-15s %9s %11s   %13s %11s\n", name, with_commas(moved).characters,
           as_bytes(moved_bytes).characters, with_commas(naive).characters,
           as_bytes(naive_bytes).characters);
}

syncedmem_status_t report_traffic(const struct device *device)
{
    struct traffic moved;
    TRY(device_traffic(&moved));
    const struct traffic naive = device->naive;
    const uint64_t transfers = moved.to_device + moved.to_host;
    const uint64_t bytes = moved.bytes_to_device + moved.bytes_to_host;
    const uint64_t naive_transfers = naive.to_device + naive.to_host;
    const uint64_t naive_bytes = naive.bytes_to_device + naive.bytes_to_host;

    printf("  %-15s %21s   %25s\n", "", "with syncedmem", "copying around each use");
    printf("  %-15s %9s %11s   %13s %11s\n", "", "transfers", "bytes", "transfers", "bytes");
    print_row("host to device", moved.to_device, moved.bytes_to_device, naive.to_device,
              naive.bytes_to_device);
    print_row("device to host", moved.to_host, moved.bytes_to_host, naive.to_host,
              naive.bytes_to_host);
    print_row("together", transfers, bytes, naive_transfers, naive_bytes);
    if (transfers == 0 || bytes == 0)
        printf("\n  nothing had to move\n");
    else
        printf("\n  %.0f times fewer transfers, %.0f times fewer bytes\n",
               (double)naive_transfers / (double)transfers, (double)naive_bytes / (double)bytes);
    return SYNCEDMEM_OK;
}
