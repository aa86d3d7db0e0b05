/* SPDX-License-Identifier: BSD-2-Clause */
#include "batch.h"

#include "try.h"

syncedmem_status_t batch_create(uint32_t digits, struct batch *out_batch)
{
    *out_batch = (struct batch){0};
    const size_t digit = DATA_PIXELS * sizeof(float) + sizeof(uint32_t);
    TRY(syncedmem_create(digits * digit, &out_batch->buffer));
    size_t end = 0;
    out_batch->pixels = tensor_lay(out_batch->buffer, &end, digits, DATA_PIXELS);
    out_batch->classes = tensor_lay(out_batch->buffer, &end, digits, 1);
    return SYNCEDMEM_OK;
}

void batch_release(struct batch *batch)
{
    syncedmem_release(batch->buffer);
    *batch = (struct batch){0};
}

/* The pixel at x of a row of the digit; black beside it. */
static float pixel(const uint8_t *row, int x)
{
    return x < 0 || x >= DATA_SIDE ? 0 : (float)row[x] / DATA_BRIGHTEST;
}

syncedmem_status_t batch_fill(struct batch *batch, const struct data *data, const uint32_t *indices,
                              struct random *random)
{
    void *elements;
    TRY(tensor_write(batch->pixels, &elements));
    float *pixels = elements;
    TRY(tensor_write(batch->classes, &elements));
    uint32_t *classes = elements;

    for (uint32_t i = 0; i < batch->pixels.rows; i++) {
        const struct digit *digit = &data->digits[indices[i]];
        const int shift = random ? (int)random_below(random, 3) - 1 : 0;
        for (int y = 0; y < DATA_SIDE; y++) {
            for (int x = 0; x < DATA_SIDE; x++)
                *pixels++ = pixel(&digit->pixels[y * DATA_SIDE], x + shift);
        }
        classes[i] = digit->class;
    }
    return SYNCEDMEM_OK;
}
