/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random sequences of the plain calls, compared with a model that knows only the contract.
 *
 *   SYNCEDMEM_TEST_SEED    the first seed (a failure prints the one it had)
 *   SYNCEDMEM_TEST_ROUNDS  how many sequences, 300 unless told
 */
#include "model.h"
#include "support.h"

/* ---- Steps ---- */

static void step_cpu_data(struct model *model)
{
    const void *pointer = NULL;
    CHECK_STATUS(syncedmem_cpu_data(model->buffer, &pointer), SYNCEDMEM_OK);
    CHECK(pointer != NULL);
    model_host(model, false);
    CHECK(memcmp(pointer, model->bytes, model->size) == 0);
}

static void step_mutable_cpu_data(struct model *model)
{
    void *pointer = NULL;
    CHECK_STATUS(syncedmem_mutable_cpu_data(model->buffer, &pointer), SYNCEDMEM_OK);
    CHECK(pointer != NULL);
    model_host(model, true);
    CHECK(memcmp(pointer, model->bytes, model->size) == 0);
    change_bytes(model);
    memcpy(pointer, model->bytes, model->size);
}

static void check_device_bytes(const struct model *model, const void *pointer)
{
    CHECK((pointer == NULL) == (model->size == 0));
    memset(scratch, 0xEE, sizeof scratch);
    device_read((unsigned)model->home, pointer, scratch, model->size);
    CHECK(memcmp(scratch, model->bytes, model->size) == 0);
}

static void step_gpu_data(struct model *model)
{
    const void *pointer = model;
    const int home = home_for_call(model);
    const syncedmem_status_t status = syncedmem_gpu_data(model->buffer, &pointer);
    if (home == NO_HOME) {
        CHECK_STATUS(status, SYNCEDMEM_NO_DEVICE);
        CHECK(pointer == NULL);
        return;
    }
    CHECK_STATUS(status, SYNCEDMEM_OK);
    fix_home(model, home);
    model_device(model, false);
    check_device_bytes(model, pointer);
}

static void step_mutable_gpu_data(struct model *model)
{
    void *pointer = model;
    const int home = home_for_call(model);
    const syncedmem_status_t status = syncedmem_mutable_gpu_data(model->buffer, &pointer);
    if (home == NO_HOME) {
        CHECK_STATUS(status, SYNCEDMEM_NO_DEVICE);
        CHECK(pointer == NULL);
        return;
    }
    CHECK_STATUS(status, SYNCEDMEM_OK);
    fix_home(model, home);
    model_device(model, true);
    check_device_bytes(model, pointer);
    change_bytes(model);
    device_write((unsigned)home, pointer, model->bytes, model->size);
}

static void step_set_cpu_data(struct model *model)
{
    const size_t offset = dice(2) == 0 ? 0 : dice(SLACK / 2);
    const size_t longer = dice(2) == 0 ? 0 : dice(SLACK / 2);
    model->host_turn ^= 1;
    unsigned char *block = model->host_block[model->host_turn] + offset;
    random_bytes(model);
    memcpy(block, model->bytes, model->size);
    CHECK_STATUS(syncedmem_set_cpu_data(model->buffer, block, model->size + longer), SYNCEDMEM_OK);
    model->head = SYNCEDMEM_HEAD_AT_CPU;
}

static void step_set_gpu_data(struct model *model)
{
    const int home = home_for_call(model);
    const size_t offset = dice(2) == 0 ? 0 : dice(SLACK / 2);
    if (home == NO_HOME) {
        CHECK_STATUS(syncedmem_set_gpu_data(model->buffer, model->device_block[0][0], SIZE_MOST),
                     SYNCEDMEM_NO_DEVICE);
        return;
    }
    model->device_turn ^= 1;
    unsigned char *block = model->device_block[home][model->device_turn];
    random_bytes(model);
    device_write((unsigned)home, block + offset, model->bytes, model->size);
    CHECK_STATUS(syncedmem_set_gpu_data(model->buffer, block + offset, model->size + dice(8)),
                 SYNCEDMEM_OK);
    fix_home(model, home);
    model->head = SYNCEDMEM_HEAD_AT_GPU;
}

/* On the default stream, or on one of device 0 or 1, which may be the wrong one. */
static void step_push(struct model *model)
{
    const int device = (int)dice(DEVICES + 1) - 1;
    syncedmem_stream *stream = device < 0 ? NULL : world.stream[device];
    const syncedmem_status_t status = syncedmem_async_gpu_push(model->buffer, stream);
    int home = model->home;
    if (home == NO_HOME) {
        home = device < 0 ? world.current : device;
    }
    const bool refused = home == NO_HOME || (device >= 0 && device != home);
    if (model->head != SYNCEDMEM_HEAD_AT_CPU) {
        CHECK(refused ? status != SYNCEDMEM_OK : status == SYNCEDMEM_WRONG_STATE);
    } else if (refused) {
        CHECK_STATUS(status, home == NO_HOME ? SYNCEDMEM_NO_DEVICE : SYNCEDMEM_INVALID_ARGUMENT);
    } else {
        CHECK_STATUS(status, SYNCEDMEM_OK);
        fix_home(model, home);
        model_device(model, false);
    }
}

static void step_set_home(struct model *model)
{
    const int device = (int)dice(DEVICES);
    const bool wrong = model->home_fixed && device != model->home;
    CHECK_STATUS(syncedmem_set_home(model->buffer, sim((unsigned)device)),
                 wrong ? SYNCEDMEM_WRONG_STATE : SYNCEDMEM_OK);
    if (!wrong) {
        model->home = device;
    }
    CHECK_STATUS(syncedmem_set_home(model->buffer, syncedmem_host()), SYNCEDMEM_INVALID_ARGUMENT);
}

static void step_refused(struct model *model)
{
    unsigned char *host = model->host_block[0];
    const int home = home_for_call(model);
    if (model->size > 0) {
        CHECK_STATUS(syncedmem_set_cpu_data(model->buffer, host, model->size - 1),
                     SYNCEDMEM_OUT_OF_RANGE);
        CHECK_STATUS(syncedmem_set_cpu_data(model->buffer, NULL, model->size),
                     SYNCEDMEM_INVALID_ARGUMENT);
        CHECK_STATUS(syncedmem_set_cpu_data(model->buffer, model->device_block[0][0], SIZE_MOST),
                     SYNCEDMEM_WRONG_MEMORY);
    }
    if (model->size > 0 && home != NO_HOME) {
        CHECK_STATUS(
            syncedmem_set_gpu_data(model->buffer, model->device_block[home][0], model->size - 1),
            SYNCEDMEM_OUT_OF_RANGE);
        CHECK_STATUS(syncedmem_set_gpu_data(model->buffer, NULL, model->size),
                     SYNCEDMEM_INVALID_ARGUMENT);
        CHECK_STATUS(syncedmem_set_gpu_data(model->buffer, host, model->size),
                     SYNCEDMEM_WRONG_MEMORY);
        CHECK_STATUS(
            syncedmem_set_gpu_data(model->buffer, model->device_block[1 - home][0], SIZE_MOST),
            SYNCEDMEM_WRONG_MEMORY);
    }
    CHECK_STATUS(syncedmem_cpu_data(model->buffer, NULL), SYNCEDMEM_INVALID_ARGUMENT);
    CHECK_STATUS(syncedmem_mutable_gpu_data(model->buffer, NULL), SYNCEDMEM_INVALID_ARGUMENT);
}

static void step_current(struct model *model)
{
    (void)model;
    world.current = (int)dice(DEVICES + 1) - 1;
    CHECK_STATUS(syncedmem_device_set_current(
                     world.current == NO_HOME ? NULL : sim((unsigned)world.current)),
                 SYNCEDMEM_OK);
}

static void step_again(struct model *model)
{
    if (dice(3) == 0) {
        end(model);
        begin(model);
    }
}

static void step_references(struct model *model)
{
    if (model->references > 1 && dice(2) == 0) {
        syncedmem_release(model->buffer);
        model->references--;
    } else {
        CHECK(syncedmem_retain(model->buffer) == model->buffer);
        model->references++;
    }
}

static void step_wait(struct model *model)
{
    CHECK_STATUS(syncedmem_wait(model->buffer), SYNCEDMEM_OK);
}

static const struct {
    const char *name;
    void (*take)(struct model *model);
} steps[] = {
    {"cpu_data", step_cpu_data},
    {"mutable_cpu_data", step_mutable_cpu_data},
    {"gpu_data", step_gpu_data},
    {"mutable_gpu_data", step_mutable_gpu_data},
    {"cpu_data", step_cpu_data},
    {"mutable_cpu_data", step_mutable_cpu_data},
    {"gpu_data", step_gpu_data},
    {"mutable_gpu_data", step_mutable_gpu_data},
    {"set_cpu_data", step_set_cpu_data},
    {"set_gpu_data", step_set_gpu_data},
    {"async_gpu_push", step_push},
    {"async_gpu_push", step_push},
    {"mutable_cpu_data", step_mutable_cpu_data},
    {"set_home", step_set_home},
    {"refused calls", step_refused},
    {"set_current", step_current},
    {"release and create", step_again},
    {"retain, release", step_references},
    {"wait", step_wait},
};

/* ---- What can be seen without changing anything ---- */

static void compare(const struct model *model)
{
    const syncedmem_buffer *buffer = model->buffer;
    CHECK(syncedmem_head(buffer) == model->head);
    CHECK(syncedmem_size(buffer) == model->size);
    if (model->size != 0) {
        CHECK(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS_TO_DEVICE) == model->to_device);
        CHECK(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS_TO_HOST) == model->to_host);
        CHECK(stat_of(buffer, SYNCEDMEM_STAT_TRANSFERS) == model->to_device + model->to_host);
    }
    CHECK(stat_of(buffer, SYNCEDMEM_STAT_BYTES_TO_DEVICE) == model->to_device * model->size);
    CHECK(stat_of(buffer, SYNCEDMEM_STAT_BYTES_TO_HOST) == model->to_host * model->size);
}

static void run_sequence(unsigned long seed)
{
    world.seed = seed;
    world.random = seed * 0x9E3779B97F4A7C15u + 1;
    world.step = -1;
    world.doing = "begin";
    for (int i = 0; i < BUFFERS; i++) {
        begin(&world.model[i]);
    }
    for (world.step = 0; world.step < STEPS; world.step++) {
        struct model *model = &world.model[dice(BUFFERS)];
        const unsigned which = dice(sizeof steps / sizeof steps[0]);
        world.doing = steps[which].name;
        steps[which].take(model);
        for (int i = 0; i < BUFFERS; i++) {
            compare(&world.model[i]);
        }
    }
    for (int i = 0; i < BUFFERS; i++) {
        end(&world.model[i]);
    }
}

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoul(text, NULL, 10);
}

Test(model, random_sequences, .init = sim_setup)
{
    const unsigned long first = from_environment("SYNCEDMEM_TEST_SEED", 1);
    const unsigned long rounds = from_environment("SYNCEDMEM_TEST_ROUNDS", 300);
    world.current = 0;
    for (int i = 0; i < BUFFERS; i++) {
        make_blocks(&world.model[i]);
    }
    for (unsigned device = 0; device < DEVICES; device++) {
        assert_ok(syncedmem_stream_create(sim(device), &world.stream[device]));
    }
    const uint64_t host_bytes = stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES);
    const uint64_t device_bytes = stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES);
    for (unsigned long round = 0; round < rounds; round++) {
        run_sequence(first + round);
    }
    CHECK(stat_of(NULL, SYNCEDMEM_STAT_HOST_BYTES) == host_bytes);
    CHECK(stat_of(NULL, SYNCEDMEM_STAT_DEVICE_BYTES) == device_bytes);
    for (unsigned device = 0; device < DEVICES; device++) {
        syncedmem_stream_release(world.stream[device]);
    }
    for (int i = 0; i < BUFFERS; i++) {
        free_blocks(&world.model[i]);
    }
}
