/* SPDX-License-Identifier: BSD-2-Clause */
/* The block allocator against a model: a table that says of each unit whether it is taken. */
#include "support.h"

enum { UNITS = 2048, LIVE = 200, STEPS = 10000 };

struct model {
    bool taken[UNITS];
    size_t free_units;
};

struct live {
    unsigned char *address;
    size_t size;
};

static size_t units_of(size_t size)
{
    return (size + ENGINE_ALIGNMENT - 1) / ENGINE_ALIGNMENT;
}

static bool run_is_free(const struct model *model, size_t start, size_t units)
{
    for (size_t i = start; i < start + units; i++)
        if (i >= UNITS || model->taken[i])
            return false;
    return true;
}

/* The lowest unit where so many are free; UNITS where there is none. */
static size_t first_fit(const struct model *model, size_t units)
{
    for (size_t start = 0; start < UNITS; start++)
        if (run_is_free(model, start, units))
            return start;
    return UNITS;
}

static void mark(struct model *model, size_t start, size_t units, bool taken)
{
    for (size_t i = start; i < start + units; i++) {
        cr_assert_neq(model->taken[i], taken);
        model->taken[i] = taken;
    }
    model->free_units = taken ? model->free_units - units : model->free_units + units;
}

/* Whether there was room. */
static bool step_alloc(struct engine_device *device, struct model *model, const unsigned char *base,
                       size_t size, struct live *out_live)
{
    size_t expected = first_fit(model, units_of(size));
    void *address;
    enum engine_result result = syncedmem_engine_alloc(device, size, &address);
    cr_assert_eq(result, expected < UNITS ? ENGINE_OK : ENGINE_DEVICE_MEMORY);
    if (result != ENGINE_OK)
        return false;
    *out_live = (struct live){.address = address, .size = size};
    cr_assert_eq((uintptr_t)address % ENGINE_ALIGNMENT, 0);
    cr_assert_eq((size_t)((uintptr_t)address - (uintptr_t)base), expected * ENGINE_ALIGNMENT);
    mark(model, expected, units_of(size), true);
    return true;
}

static void step_free(struct engine_device *device, struct model *model, const unsigned char *base,
                      const struct live *live)
{
    size_t offset = (size_t)(live->address - base);
    cr_assert_eq(syncedmem_engine_free(device, live->address), ENGINE_OK);
    mark(model, offset / ENGINE_ALIGNMENT, units_of(live->size), false);
}

static const unsigned char *base_of(struct engine_device *device)
{
    void *address = block_of(device, 1);
    cr_assert_eq(syncedmem_engine_free(device, address), ENGINE_OK);
    return address;
}

Test(simulator_allocator, agrees_with_a_model, .timeout = 120)
{
    static struct model model;
    static struct live live[LIVE];
    size_t count = 0;
    size_t refused = 0;
    uint32_t random = 12345;
    struct engine_device *device = device_with((uint64_t)UNITS * ENGINE_ALIGNMENT);
    const unsigned char *base = base_of(device);
    model = (struct model){.free_units = UNITS};
    for (int step = 0; step < STEPS; step++) {
        bool grow = next_random(&random) % 100 < 55;
        if (grow && count < LIVE) {
            size_t size = 1 + next_random(&random) % (next_random(&random) % 8 ? 3000 : 40000);
            if (step_alloc(device, &model, base, size, &live[count]))
                count++;
            else
                refused++;
        } else if (count > 0) {
            size_t chosen = next_random(&random) % count;
            step_free(device, &model, base, &live[chosen]);
            live[chosen] = live[--count];
        }
        cr_assert_eq(syncedmem_engine_memory_free(device), model.free_units * ENGINE_ALIGNMENT);
    }
    cr_assert_gt(refused, 0);
    while (count > 0)
        step_free(device, &model, base, &live[--count]);
    cr_assert_eq(block_of(device, UNITS * ENGINE_ALIGNMENT), base);
    syncedmem_engine_device_destroy(device);
}
