/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the contract says of buffers under the plain calls, kept apart from the library.
 *
 * One model a buffer: its bytes, head, home and transfers. test_model.c takes random steps on
 * both and compares.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_MODEL_H
#define SYNCEDMEM_TESTS_UNIT_MODEL_H

#include <stdlib.h>

#include "support.h"

enum { BUFFERS = 4, STEPS = 60, SIZE_MOST = 5000, SLACK = 64, DEVICES = 2, NO_HOME = -1 };

/* What the contract says of one buffer. Transfers of size 0 are not counted by the model. */
struct model {
    syncedmem_buffer *buffer;
    size_t size;
    syncedmem_head_t head;
    int home;
    bool home_fixed;
    unsigned references;
    uint64_t to_device, to_host;
    unsigned char bytes[SIZE_MOST];
    /* Memory of the caller's: two blocks a place, adopted by turns. */
    unsigned char *host_block[2];
    void *device_block[DEVICES][2];
    unsigned host_turn, device_turn;
};

struct world {
    struct model model[BUFFERS];
    syncedmem_stream *stream[DEVICES];
    int current; /* this thread's current device, or NO_HOME */
    uint64_t random;
    unsigned long seed;
    int step;
    const char *doing;
};

static struct world world;
static unsigned char scratch[SIZE_MOST];

#define CHECK(condition)                                                                           \
    cr_assert(condition, "SYNCEDMEM_TEST_SEED=%lu step %d, %s: not true: %s (%s)", world.seed,     \
              world.step, world.doing, #condition, syncedmem_last_error())
#define CHECK_STATUS(call, wanted)                                                                 \
    do {                                                                                           \
        const syncedmem_status_t got_ = (call);                                                    \
        cr_assert_eq(got_, (wanted), "SYNCEDMEM_TEST_SEED=%lu step %d, %s: %s not %s (%s)",        \
                     world.seed, world.step, world.doing, syncedmem_status_name(got_),             \
                     syncedmem_status_name(wanted), syncedmem_last_error());                       \
    } while (0)

/* Below the limit; xorshift. */
static inline unsigned dice(unsigned limit)
{
    world.random ^= world.random << 13;
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return (unsigned)((world.random >> 11) % limit);
}

static inline size_t random_size(void)
{
    static const size_t special[] = {0, 1, 10, 63, 64, 65, 255, 256, 4096, SIZE_MOST};
    return dice(3) == 0 ? special[dice(10)] : dice(SIZE_MOST + 1);
}

/* ---- A buffer begins and ends ---- */

static inline void begin(struct model *model)
{
    model->size = random_size();
    model->head = SYNCEDMEM_UNINITIALIZED;
    model->home = NO_HOME;
    model->home_fixed = false;
    model->references = 1;
    model->to_device = model->to_host = 0;
    memset(model->bytes, 0, sizeof model->bytes);
    CHECK_STATUS(syncedmem_create(model->size, &model->buffer), SYNCEDMEM_OK);
}

static inline void end(struct model *model)
{
    for (; model->references > 0; model->references--) {
        syncedmem_release(model->buffer);
    }
}

static inline void make_blocks(struct model *model)
{
    for (int turn = 0; turn < 2; turn++) {
        model->host_block[turn] = malloc(SIZE_MOST + SLACK);
        CHECK(model->host_block[turn] != NULL);
        for (unsigned device = 0; device < DEVICES; device++) {
            CHECK_STATUS(syncedmem_sim_alloc(sim(device), SIZE_MOST + SLACK,
                                             &model->device_block[device][turn]),
                         SYNCEDMEM_OK);
        }
    }
}

static inline void free_blocks(struct model *model)
{
    for (int turn = 0; turn < 2; turn++) {
        free(model->host_block[turn]);
        for (unsigned device = 0; device < DEVICES; device++) {
            CHECK_STATUS(syncedmem_sim_free(sim(device), model->device_block[device][turn]),
                         SYNCEDMEM_OK);
        }
    }
}

/* ---- What the contract says a call does ---- */

/* The home that a device call takes, or NO_HOME. */
static inline int home_for_call(const struct model *model)
{
    return model->home != NO_HOME ? model->home : world.current;
}

static inline void fix_home(struct model *model, int home)
{
    model->home = home;
    model->home_fixed = true;
}

static inline void model_host(struct model *model, bool writing)
{
    if (model->head == SYNCEDMEM_HEAD_AT_GPU) {
        model->to_host++;
        model->head = SYNCEDMEM_SYNCED;
    }
    if (writing || model->head == SYNCEDMEM_UNINITIALIZED) {
        model->head = SYNCEDMEM_HEAD_AT_CPU;
    }
}

static inline void model_device(struct model *model, bool writing)
{
    if (model->head == SYNCEDMEM_HEAD_AT_CPU) {
        model->to_device++;
        model->head = SYNCEDMEM_SYNCED;
    }
    if (writing || model->head == SYNCEDMEM_UNINITIALIZED) {
        model->head = SYNCEDMEM_HEAD_AT_GPU;
    }
}

/* ---- Writing: random bytes over a random part ---- */

static inline void change_bytes(struct model *model)
{
    if (model->size == 0) {
        return;
    }
    const size_t from = dice((unsigned)model->size);
    const size_t length = 1 + dice((unsigned)(model->size - from));
    for (size_t i = from; i < from + length; i++) {
        model->bytes[i] = (unsigned char)dice(256);
    }
}

static inline void random_bytes(struct model *model)
{
    for (size_t i = 0; i < model->size; i++) {
        model->bytes[i] = (unsigned char)dice(256);
    }
}

#endif
