/* SPDX-License-Identifier: BSD-2-Clause */
#include "source.h"

#include "try.h"

syncedmem_status_t source_create(const struct data *data, uint32_t learned, struct random random,
                                 struct source *out_source)
{
    *out_source = (struct source){.data = data, .random = random, .learned = learned};
    void *order;
    TRY(syncedmem_create(data->count * sizeof *out_source->order, &out_source->order_buffer));
    TRY(syncedmem_mutable_cpu_data(out_source->order_buffer, &order));
    out_source->order = order;
    for (uint32_t i = 0; i < data->count; i++)
        out_source->order[i] = i;
    return SYNCEDMEM_OK;
}

void source_release(struct source *source)
{
    syncedmem_release(source->order_buffer);
    *source = (struct source){0};
}

/* Fisher and Yates. */
static void shuffle(struct source *source)
{
    uint32_t *order = source->order;
    for (uint32_t left = source->learned; left > 1; left--) {
        const uint32_t chosen = random_below(&source->random, left);
        const uint32_t last = order[left - 1];
        order[left - 1] = order[chosen];
        order[chosen] = last;
    }
}

syncedmem_status_t source_fill(struct source *source, struct batch *batch)
{
    const uint32_t digits = batch->pixels.rows;
    if (source->next == 0)
        shuffle(source);
    TRY(batch_fill(batch, source->data, source->order + source->next, &source->random));
    source->next += digits;
    if (source->learned - source->next < digits)
        source->next = 0;
    return SYNCEDMEM_OK;
}

syncedmem_status_t source_fill_held_out(const struct source *source, struct batch *batch)
{
    return batch_fill(batch, source->data, source->order + source->learned, NULL);
}
