/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps: plain calls, verbs and adoption. */
#include <string.h>

#include "world.h"

/* ---- Host ---- */

static struct range all_of(struct range range)
{
    range.from = range.base;
    range.to = range.base + range.length_all;
    return range;
}

void step_read_host(void)
{
    const struct range range = all_of(some_range(some_buffer()));
    struct buffer *buffer = range.buffer;
    const void *pointer;
    say("cpu_data buffer %d [%zu, %zu)", buffer->identity, range.from, range.to);
    const bool busy = is_busy(buffer, range.from, range.to, false);
    if (took(buffer, "cpu_data", syncedmem_cpu_data(range.handle, &pointer), busy)) {
        read_host(buffer, pointer, range.from, range.to, "cpu_data");
    }
}

void step_write_host(void)
{
    const struct range range = all_of(some_range(some_buffer()));
    struct buffer *buffer = range.buffer;
    void *pointer;
    say("mutable_cpu_data buffer %d [%zu, %zu)", buffer->identity, range.from, range.to);
    const bool busy = is_busy(buffer, range.from, range.to, true);
    if (took(buffer, "mutable_cpu_data", syncedmem_mutable_cpu_data(range.handle, &pointer),
             busy)) {
        read_host(buffer, pointer, range.from, range.to, "mutable_cpu_data");
        write_host(buffer, pointer, range.from, range.to);
    }
}

/* ---- The home device ---- */

static int home_of(const struct buffer *buffer)
{
    const syncedmem_place *home = syncedmem_home(buffer->handle);
    return home == world.places[2] ? 2 : 1;
}

/* The bytes have arrived. */
static void settle(struct buffer *buffer, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        model_settle(&buffer->bytes[i]);
    }
}

void step_read_device(void)
{
    const struct range range = all_of(some_range(some_buffer()));
    struct buffer *buffer = range.buffer;
    const void *pointer;
    say("gpu_data buffer %d [%zu, %zu)", buffer->identity, range.from, range.to);
    const bool busy = is_busy(buffer, range.from, range.to, false);
    if (took(buffer, "gpu_data", syncedmem_gpu_data(range.handle, &pointer), busy)) {
        settle(buffer, range.from, range.to);
        put_kernel(&(struct kernel){buffer, range.from, range.to, true, false, false, false},
                   home_of(buffer), NULL, pointer);
    }
}

void step_write_device(void)
{
    const struct range range = all_of(some_range(some_buffer()));
    struct buffer *buffer = range.buffer;
    void *pointer;
    say("mutable_gpu_data buffer %d [%zu, %zu)", buffer->identity, range.from, range.to);
    const bool busy = is_busy(buffer, range.from, range.to, true);
    if (took(buffer, "mutable_gpu_data", syncedmem_mutable_gpu_data(range.handle, &pointer),
             busy)) {
        settle(buffer, range.from, range.to);
        put_kernel(&(struct kernel){buffer, range.from, range.to, true, true, false, false},
                   home_of(buffer), NULL, pointer);
    }
}

void step_push(void)
{
    const struct range range = all_of(some_range(some_buffer()));
    struct buffer *buffer = range.buffer;
    struct stream *stream = some_stream(home_of(buffer));
    say("push buffer %d [%zu, %zu) on stream %td", buffer->identity, range.from, range.to,
        stream ? stream - world.streams : -1);
    const bool busy = is_busy(buffer, range.from, range.to, false);
    const syncedmem_status_t status =
        syncedmem_async_gpu_push(range.handle, stream ? stream->handle : NULL);
    if (status == SYNCEDMEM_WRONG_STATE) {
        EXPECT(syncedmem_head(range.handle) != SYNCEDMEM_HEAD_AT_CPU, "push: WRONG_STATE");
        say("    WRONG_STATE");
        return;
    }
    took(buffer, "push", status, busy);
}

/* ---- Verbs ---- */

void step_prefetch(void)
{
    const struct range range = some_range(some_buffer());
    struct buffer *buffer = range.buffer;
    const int place = (int)below(PLACES);
    struct stream *stream = some_stream(place == HOST ? 1 + (int)below(2) : place);
    say("prefetch buffer %d [%zu, %zu) to %s on stream %td", buffer->identity, range.from, range.to,
        place_name(place), stream ? stream - world.streams : -1);
    const bool busy = is_busy(buffer, range.from, range.to, false);
    took(buffer, "prefetch",
         syncedmem_prefetch(range.handle, world.places[place], range.from - range.base,
                            range.to - range.from, stream ? stream->handle : NULL),
         busy);
}

void step_fill(void)
{
    const struct range range = some_range(some_buffer());
    struct buffer *buffer = range.buffer;
    const uint8_t value = (uint8_t)throw_dice();
    say("fill buffer %d [%zu, %zu) with %u", buffer->identity, range.from, range.to, value);
    const bool busy = is_busy(buffer, range.from, range.to, true);
    const syncedmem_status_t status =
        syncedmem_fill(range.handle, range.from - range.base, range.to - range.from, value);
    const bool done = took(buffer, "fill", status, busy);
    for (size_t i = range.from; i < range.to && status != SYNCEDMEM_BUSY; i++) {
        if (done) {
            model_set(&buffer->bytes[i], value);
        } else {
            model_blur(&buffer->bytes[i], value);
        }
    }
}

static void copy_model(const struct range *to, const struct range *from, bool done)
{
    struct model_byte taken[SIZE_MOST];
    const size_t length = to->to - to->from;
    memcpy(taken, &from->buffer->bytes[from->from], length * sizeof taken[0]);
    for (size_t i = 0; i < length; i++) {
        struct model_byte *byte = &to->buffer->bytes[to->from + i];
        if (done) {
            model_settle(&from->buffer->bytes[from->from + i]);
            model_copy(byte, &taken[i]);
        } else {
            model_blur_copy(byte, &taken[i]);
        }
    }
}

void step_copy(void)
{
    struct range to = some_range(some_buffer()), from = some_range(some_buffer());
    const size_t one = to.to - to.from, other = from.to - from.from;
    const size_t length = one < other ? one : other;
    to.to = to.from + length;
    from.to = from.from + length;
    say("copy buffer %d [%zu, %zu) to buffer %d from %zu", from.buffer->identity, from.from,
        from.to, to.buffer->identity, to.from);
    const bool busy =
        is_busy(from.buffer, from.from, from.to, false) || is_busy(to.buffer, to.from, to.to, true);
    const syncedmem_status_t status =
        syncedmem_copy(to.handle, to.from - to.base, from.handle, from.from - from.base, length);
    const bool done = took_both(to.buffer, from.buffer, "copy", status, busy);
    if (status != SYNCEDMEM_BUSY) {
        copy_model(&to, &from, done);
    }
}

static void mark_host(const struct range *range)
{
    const void *pointer;
    struct buffer *buffer = range->buffer;
    if (!took(buffer, "cpu_data", syncedmem_cpu_data(range->handle, &pointer), false)) {
        return;
    }
    read_host(buffer, pointer, range->from, range->to, "cpu_data");
    write_host(buffer, (void *)(uintptr_t)pointer, range->from, range->to);
}

static void mark_device(const struct range *range)
{
    const void *pointer;
    struct buffer *buffer = range->buffer;
    if (!took(buffer, "gpu_data", syncedmem_gpu_data(range->handle, &pointer), false)) {
        return;
    }
    settle(buffer, range->from, range->to);
    put_kernel(&(struct kernel){buffer, range->from, range->to, true, true, false, false},
               home_of(buffer), NULL, pointer);
}

static bool has_read_only(const struct buffer *buffer)
{
    for (int place = 0; place < PLACES; place++) {
        if (buffer->blocks[place] != NULL && buffer->blocks[place]->read_only) {
            return true;
        }
    }
    return false;
}

/* Through a pointer for reading, when nothing else is done with the bytes; then it is said. */
void step_mark(void)
{
    const struct range range = all_of(some_range(some_buffer()));
    struct buffer *buffer = range.buffer;
    const unsigned told = world.epochs[buffer->identity];
    const bool on_host = chance(50);
    if (is_leased(buffer) || has_read_only(buffer)) {
        return;
    }
    say("mark_modified buffer %d [%zu, %zu) at %s", buffer->identity, range.from, range.to,
        on_host ? "host" : "home");
    if (!took(buffer, "wait", syncedmem_wait(buffer->handle), false)) {
        return;
    }
    if (on_host) {
        mark_host(&range);
    } else {
        mark_device(&range);
    }
    if (told == world.epochs[buffer->identity]) {
        const int place = on_host ? HOST : home_of(buffer);
        EXPECT_OK(syncedmem_mark_modified(range.handle, world.places[place],
                                          range.from - range.base, range.to - range.from));
    }
}

void step_drop(void)
{
    struct buffer *buffer = some_buffer();
    const int place = (int)below(PLACES);
    say("drop buffer %d at %s", buffer->identity, place_name(place));
    const syncedmem_status_t status = syncedmem_drop(buffer->handle, world.places[place]);
    /* Nothing is saved to where a lease goes on whose upload has failed. */
    const bool is_in_the_way =
        world.fails && status == SYNCEDMEM_BUSY && is_leased(buffer) && place == HOST;
    if (!is_in_the_way && took(buffer, "drop", status, is_leased_at(buffer, place))) {
        forget_failures(buffer);
        block_end(&buffer->blocks[place]);
    }
}

void step_wait(void)
{
    struct buffer *buffer = some_buffer();
    say("wait for buffer %d", buffer->identity);
    took(buffer, "wait", syncedmem_wait(buffer->handle), false);
}

/* ---- Adoption ---- */

static syncedmem_status_t hand_over(struct buffer *buffer, struct block *block,
                                    syncedmem_stream *stream)
{
    syncedmem_place *place = world.places[block->place];
    void *memory = block_memory(block);
    const bool by_set = !block->has_callback && !block->read_only && stream == NULL;
    if (by_set && block->place == HOST) {
        return syncedmem_set_cpu_data(buffer->handle, memory, block->size);
    }
    if (by_set && home_of(buffer) == block->place && syncedmem_home(buffer->handle)) {
        return syncedmem_set_gpu_data(buffer->handle, memory, block->size);
    }
    return syncedmem_adopt(buffer->handle, place, memory, block->size,
                           block->read_only ? SYNCEDMEM_ADOPT_READ_ONLY : 0, stream,
                           block->has_callback ? block_release : NULL, block);
}

/* The bytes are on the device when the stream gets there, or are waited for. */
static struct block *make_block(struct buffer *buffer, int place, syncedmem_stream **out_stream)
{
    syncedmem_stream *stream = NULL;
    if (place != HOST) {
        EXPECT_OK(syncedmem_stream_create(world.places[place], &stream));
    }
    struct block *block = block_make(place, buffer->size, stream);
    if (block != NULL && stream != NULL && chance(50)) {
        EXPECT_OK(syncedmem_stream_wait(stream));
        syncedmem_stream_release(stream);
        stream = NULL;
    }
    *out_stream = stream;
    return block;
}

void step_adopt(void)
{
    struct buffer *buffer = some_buffer();
    const int place = (int)below(PLACES);
    syncedmem_stream *stream;
    struct block *block = make_block(buffer, place, &stream);
    if (block != NULL) {
        block->has_callback = chance(50);
        block->read_only = chance(30);
        say("adopt a block at %s in buffer %d%s%s%s", place_name(place), buffer->identity,
            block->has_callback ? ", callback" : "", block->read_only ? ", read only" : "",
            stream ? ", by a stream" : "");
        const syncedmem_status_t status = hand_over(buffer, block, stream);
        if (took(buffer, "adopt", status, is_leased(buffer))) {
            forget_failures(buffer);
            block_end(&buffer->blocks[place]);
            buffer->blocks[place] = block;
            for (size_t i = 0; i < buffer->size; i++) {
                model_set(&buffer->bytes[i], block_bytes(block)[i]);
            }
        } else {
            block->has_callback = false;
            block->read_only = block->read_only && stream == NULL;
            syncedmem_stream_wait(stream);
            block_end(&block);
        }
    }
    syncedmem_stream_release(stream);
}
