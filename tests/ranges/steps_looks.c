/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that look, and calls that are refused whatever the state. */
#include <string.h>

#include "world.h"

static void look_at_text(const struct handle *handle)
{
    char text[64];
    size_t needed = 0;
    memset(text, 'x', sizeof text);
    expect_status(syncedmem_describe(handle->buffer, NULL, 0, &needed), MAY_OK, "describe");
    EXPECT(needed > 1, "describe needs %zu bytes", needed);
    size_t again = 0;
    expect_status(syncedmem_describe(handle->buffer, text, sizeof text / 2, &again), MAY_OK,
                  "describe");
    EXPECT(again == needed, "describe needs %zu bytes, and then %zu", needed, again);
    EXPECT(strlen(text) < sizeof text / 2 && text[sizeof text / 2] == 'x',
           "describe wrote too much");
    EXPECT(needed > sizeof text / 2 || strlen(text) + 1 == needed, "describe's length");
}

void step_look(const struct op *op)
{
    const struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    struct root *root = handle->root;
    const int place = (int)op->place % world.places;
    const struct part part =
        part_pick(handle->range.to - handle->range.from, op->a, op->b, op->variant);
    size_t bytes = 1;
    TRACE("valid_bytes(h%u, place %d, %zu, %zu), describe", number_of_handle(handle), place,
          part.offset, part.length);
    const syncedmem_status_t status =
        syncedmem_valid_bytes(handle->buffer, world.place[place], part.offset, part.length, &bytes);
    expect_status(status, part.inside ? MAY_OK : STATUS(SYNCEDMEM_OUT_OF_RANGE), "valid_bytes");
    const size_t from = handle->range.from + part.offset;
    const size_t wanted = part.inside ? model_valid_bytes(&root->model, place,
                                                          (struct range){from, from + part.length})
                                      : 0;
    EXPECT(bytes == wanted, "%zu valid bytes instead of %zu", bytes, wanted);
    look_at_text(handle);
    check_root(root);
}

/* ---- NULL, and what is none ---- */

#define REFUSED(call) expect_status(call, STATUS(SYNCEDMEM_INVALID_ARGUMENT), #call)

static void refuse_pointers(syncedmem_buffer *buffer)
{
    const void *to_read = &to_read;
    void *to_write = &to_write;
    syncedmem_buffer *view = buffer;
    REFUSED(syncedmem_cpu_data(buffer, NULL));
    REFUSED(syncedmem_mutable_cpu_data(buffer, NULL));
    REFUSED(syncedmem_gpu_data(buffer, NULL));
    REFUSED(syncedmem_mutable_gpu_data(buffer, NULL));
    REFUSED(syncedmem_cpu_data(NULL, &to_read));
    REFUSED(syncedmem_mutable_gpu_data(NULL, &to_write));
    EXPECT(to_read == NULL && to_write == NULL, "out parameters are left");
    REFUSED(syncedmem_view(buffer, 0, 0, NULL));
    REFUSED(syncedmem_view(NULL, 0, 0, &view));
    EXPECT(view == NULL, "an out parameter is left");
    REFUSED(syncedmem_set_cpu_data(NULL, &to_write, 0));
    REFUSED(syncedmem_set_gpu_data(NULL, &to_write, 0));
    REFUSED(syncedmem_async_gpu_push(NULL, NULL));
    REFUSED(syncedmem_wait(NULL));
    EXPECT(syncedmem_head(NULL) == SYNCEDMEM_INVALID_ARGUMENT, "the head of NULL");
    EXPECT(syncedmem_size(NULL) == 0, "the size of NULL");
    syncedmem_release(NULL);
}

static void refuse_leases(syncedmem_buffer *buffer)
{
    syncedmem_place *host = syncedmem_host();
    void *pointer = &pointer;
    size_t offset = 1;
    syncedmem_token_t token = 1;
    REFUSED(syncedmem_begin(NULL, host, SYNCEDMEM_READ, 0, 0, NULL, &pointer, &offset, &token));
    EXPECT(pointer == NULL && offset == 0 && token == 0, "out parameters are left");
    pointer = &pointer;
    token = 1;
    REFUSED(syncedmem_begin(buffer, NULL, SYNCEDMEM_READ, 0, 0, NULL, &pointer, NULL, &token));
    EXPECT(pointer == NULL && token == 0, "out parameters are left");
    REFUSED(syncedmem_begin(buffer, host, SYNCEDMEM_READ, 0, 0, NULL, NULL, NULL, &token));
    REFUSED(syncedmem_begin(buffer, host, SYNCEDMEM_READ, 0, 0, NULL, &pointer, NULL, NULL));
    REFUSED(syncedmem_end(NULL, 1));
}

static void refuse_verbs(syncedmem_buffer *buffer)
{
    syncedmem_place *host = syncedmem_host();
    size_t bytes = 1;
    uint64_t figure = 1;
    REFUSED(syncedmem_prefetch(NULL, host, 0, 0, NULL));
    REFUSED(syncedmem_prefetch(buffer, NULL, 0, 0, NULL));
    REFUSED(syncedmem_mark_modified(NULL, host, 0, 0));
    REFUSED(syncedmem_mark_modified(buffer, NULL, 0, 0));
    REFUSED(syncedmem_copy(NULL, 0, buffer, 0, 0));
    REFUSED(syncedmem_copy(buffer, 0, NULL, 0, 0));
    REFUSED(syncedmem_fill(NULL, 0, 0, 0));
    REFUSED(syncedmem_drop(NULL, host));
    REFUSED(syncedmem_valid_bytes(NULL, host, 0, 0, &bytes));
    EXPECT(bytes == 0, "an out parameter is left");
    REFUSED(syncedmem_valid_bytes(buffer, NULL, 0, 0, &bytes));
    REFUSED(syncedmem_valid_bytes(buffer, host, 0, 0, NULL));
    REFUSED(syncedmem_adopt(NULL, host, &bytes, 0, 0, NULL, NULL, NULL));
    REFUSED(syncedmem_stat(buffer, 0, &figure));
    EXPECT(figure == 0, "an out parameter is left");
    REFUSED(syncedmem_stat(buffer, 1000, &figure));
    REFUSED(syncedmem_stat(buffer, SYNCEDMEM_STAT_LEASES, NULL));
    REFUSED(syncedmem_describe(NULL, NULL, 0, &bytes));
    REFUSED(syncedmem_describe(buffer, NULL, 0, NULL));
    REFUSED(syncedmem_describe(buffer, NULL, 1, &bytes));
}

void step_refused(const struct op *op)
{
    const struct handle *handle = handle_pick(op->handle);
    if (handle == NULL) {
        return;
    }
    TRACE("calls with NULL");
    refuse_pointers(handle->buffer);
    refuse_leases(handle->buffer);
    refuse_verbs(handle->buffer);
    check_root(handle->root);
}
