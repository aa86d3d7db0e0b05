/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a copy or fill does to bytes.
 *
 * Large ones go chunk by chunk and keep holes holes: where the source is known to be zero,
 * pages of the destination are given back or left untouched instead of written. So a buffer
 * of many gigabytes that is mostly zero takes little memory on either side.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPARSE_FROM = 64 * 1024 * 1024, /* smaller submissions are not worth the looking */
    CHUNK = 1024 * 1024
};

struct transfer;

typedef void (*region_fn)(const struct transfer *transfer, const struct engine_region *region);

/* The blocks that a region lay in when it was submitted; 0 for host memory. */
struct blocks {
    uint64_t to;
    uint64_t from;
};

/* The addresses are the callers'; each region's are translated when it is its turn. */
struct transfer {
    struct engine_operation operation;
    region_fn run_region;
    struct engine_memory *own;         /* of the stream's device */
    struct engine_memory *to_memory;   /* NULL: host memory */
    struct engine_memory *from_memory; /* NULL: host memory */
    struct blocks *blocks;             /* of each region; NULL: nobody checks them */
    unsigned char *staged;             /* what was read ahead, or NULL */
    const void *to;
    const void *from; /* not used by a fill */
    bool fails;
    bool sparse;
    uint8_t value; /* used by a fill only */
    size_t count;
    struct engine_region regions[];
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* An address that the host can use. In integers: the base alone may lie outside of the memory. */
static unsigned char *usable(const struct engine_memory *memory, const void *base, size_t offset)
{
    void *address = (void *)((uintptr_t)base + offset);
    return memory != NULL ? syncedmem_engine_usable(memory, address) : address;
}

/* ---- Chunks that are zero ---- */

/* Looks at the first bytes by themselves: data that is not zero mostly shows it there. */
static bool bytes_are_zero(const unsigned char *bytes, size_t length)
{
    size_t head = smaller(length, 64);
    for (size_t i = 0; i < head; i++)
        if (bytes[i] != 0)
            return false;
    /* Each byte equals the one `head` before it, so all are zero. */
    return memcmp(bytes, bytes + head, length - head) == 0;
}

/*
 * Whether the file has no data there. Asked instead of looking, which would allocate the page.
 * Only SEEK_DATA: SEEK_HOLE would walk all data up to the next hole, wherever that is.
 */
static bool bytes_are_hole(const struct engine_memory *memory, const unsigned char *bytes,
                           size_t length)
{
    off_t start = (off_t)(bytes - memory->usable);
    off_t data = lseek(memory->file, start, SEEK_DATA);
    return data < 0 ? errno == ENXIO : (size_t)(data - start) >= length;
}

static bool source_is_zero(const struct transfer *transfer, const unsigned char *from,
                           size_t length)
{
    return transfer->from_memory != NULL ? bytes_are_hole(transfer->from_memory, from, length)
                                         : bytes_are_zero(from, length);
}

/*
 * Length of the leading chunks that are alike, all zero or all not. The first one is shorter,
 * so that the others start at whole chunks of device memory.
 */
static size_t leading_run(const struct transfer *transfer, const unsigned char *from, size_t first,
                          size_t length, bool *out_zero)
{
    size_t end = smaller(first, length);
    *out_zero = source_is_zero(transfer, from, end);
    while (end < length) {
        size_t chunk = smaller(CHUNK, length - end);
        if (source_is_zero(transfer, from + end, chunk) != *out_zero)
            break;
        end += chunk;
    }
    return end;
}

/* ---- Large copies and fills ---- */

/* Host pages that are zero stay untouched: they may never have been allocated. */
static void clear_host(unsigned char *to, size_t length)
{
    while (length != 0) {
        size_t chunk = smaller(CHUNK, length);
        if (!bytes_are_zero(to, chunk))
            memset(to, 0, chunk);
        to += chunk;
        length -= chunk;
    }
}

static void clear(const struct engine_memory *memory, unsigned char *to, size_t length)
{
    if (memory != NULL)
        syncedmem_engine_clear(memory, to, length);
    else
        clear_host(to, length);
}

static size_t offset_in(const struct engine_memory *memory, const unsigned char *bytes)
{
    return (size_t)(bytes - memory->usable);
}

/*
 * Chunks are whole pages of the source where that is device memory: else copying one would
 * allocate the page where the next begins, and so make that one look like data as well.
 */
static size_t bytes_to_chunk(const struct transfer *transfer, const unsigned char *to,
                             const unsigned char *from)
{
    size_t offset = transfer->from_memory != NULL ? offset_in(transfer->from_memory, from)
                                                  : offset_in(transfer->to_memory, to);
    return CHUNK - offset % CHUNK;
}

static void copy_sparse(const struct transfer *transfer, unsigned char *to,
                        const unsigned char *from, size_t length)
{
    while (length != 0) {
        bool zero;
        size_t first = bytes_to_chunk(transfer, to, from);
        size_t run = leading_run(transfer, from, first, length, &zero);
        if (zero)
            clear(transfer->to_memory, to, run);
        else
            memcpy(to, from, run);
        to += run;
        from += run;
        length -= run;
    }
}

static bool ranges_overlap(const unsigned char *a, const unsigned char *b, size_t length)
{
    uintptr_t left = (uintptr_t)a;
    uintptr_t right = (uintptr_t)b;
    return (left < right ? right - left : left - right) < length;
}

/* ---- One region ---- */

static void copy_region(const struct transfer *transfer, const struct engine_region *region)
{
    unsigned char *to = usable(transfer->to_memory, transfer->to, region->to);
    const unsigned char *from = usable(transfer->from_memory, transfer->from, region->from);
    /* Within overlapping ranges the order matters, and chunks are not taken in memmove's. */
    if (transfer->sparse && !ranges_overlap(to, from, region->length))
        copy_sparse(transfer, to, from, region->length);
    else
        memmove(to, from, region->length);
}

static void fill_region(const struct transfer *transfer, const struct engine_region *region)
{
    unsigned char *to = usable(transfer->to_memory, transfer->to, region->to);
    if (transfer->sparse && transfer->value == 0)
        clear(transfer->to_memory, to, region->length);
    else
        memset(to, transfer->value, region->length);
}

/* A copy that fails when it runs: half of the bytes are new, and half are old. */
static void run_half(const struct transfer *transfer, const struct engine_region *region)
{
    const struct engine_region half = {
        .to = region->to, .from = region->from, .length = region->length - region->length / 2};
    transfer->run_region(transfer, &half);
}

static void move(const struct transfer *transfer)
{
    region_fn run_region = transfer->fails ? run_half : transfer->run_region;
    for (size_t i = 0; i < transfer->count; i++)
        if (transfer->regions[i].length != 0)
            run_region(transfer, &transfer->regions[i]);
}

/* ---- Memory that is still there ---- */

/* The block that the region lies in now, of a region that has bytes. */
static uint64_t block_of(struct engine_memory *memory, const void *base, size_t offset,
                         size_t length)
{
    uintptr_t start = (uintptr_t)base;
    if (memory == NULL || offset > UINTPTR_MAX - start)
        return 0;
    return syncedmem_engine_block_of(memory, (const void *)(start + offset), length);
}

static struct blocks blocks_now(const struct transfer *transfer, size_t index)
{
    const struct engine_region *region = &transfer->regions[index];
    return (struct blocks){
        .to = block_of(transfer->to_memory, transfer->to, region->to, region->length),
        .from = block_of(transfer->from_memory, transfer->from, region->from, region->length)};
}

static void count_fault(struct engine_memory *memory)
{
    atomic_fetch_add_explicit(&memory->device->faults, 1, memory_order_relaxed);
}

/* Looks whether all bytes lie in the blocks that they lay in, and counts it where they do not. */
static bool all_live(const struct transfer *transfer)
{
    if (transfer->blocks == NULL)
        return true;
    for (size_t i = 0; i < transfer->count; i++) {
        if (transfer->regions[i].length == 0)
            continue;
        const struct blocks now = blocks_now(transfer, i);
        bool to_gone = now.to != transfer->blocks[i].to;
        if (!to_gone && now.from == transfer->blocks[i].from)
            continue;
        count_fault(to_gone ? transfer->to_memory : transfer->from_memory);
        return false;
    }
    return true;
}

/* ---- Running ---- */

/* The memories that take part, each once. */
static size_t memories_of(const struct transfer *transfer, struct engine_memory *memories[3])
{
    size_t count = 0;
    memories[count++] = transfer->own;
    if (transfer->to_memory != NULL && transfer->to_memory != transfer->own)
        memories[count++] = transfer->to_memory;
    if (transfer->from_memory != NULL && transfer->from_memory != transfer->own &&
        transfer->from_memory != transfer->to_memory)
        memories[count++] = transfer->from_memory;
    return count;
}

static void leave(struct engine_memory *const memories[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        syncedmem_engine_leave_memory(memories[i]);
}

/* False when one of them is lost; its loss has then come to its end. */
static bool enter(struct engine_memory *const memories[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (syncedmem_engine_enter(memories[i]))
            continue;
        leave(memories, i);
        syncedmem_engine_await_loss(memories[i]->device);
        return false;
    }
    return true;
}

static enum engine_result run_transfer(struct engine_operation *operation)
{
    struct transfer *transfer = (struct transfer *)operation;
    struct engine_memory *memories[3];
    size_t count = memories_of(transfer, memories);
    if (!enter(memories, count))
        return ENGINE_LOST;
    enum engine_result result = transfer->fails ? ENGINE_FAILED : ENGINE_OK;
    if (all_live(transfer))
        move(transfer);
    else
        result = ENGINE_BAD_ADDRESS;
    leave(memories, count);
    return result;
}

static void release(struct engine_memory *memory)
{
    if (memory != NULL)
        syncedmem_engine_memory_release(memory);
}

static void discard_transfer(struct engine_operation *operation)
{
    struct transfer *transfer = (struct transfer *)operation;
    release(transfer->own);
    release(transfer->to_memory);
    release(transfer->from_memory);
    free(transfer->staged);
}

/* ---- Submission ---- */

/* Whether each region lies in live blocks, which are kept for the check before it runs. */
static bool find_blocks(struct transfer *transfer)
{
    for (size_t i = 0; i < transfer->count; i++) {
        struct blocks now = {0};
        if (transfer->regions[i].length != 0) {
            now = blocks_now(transfer, i);
            if ((transfer->to_memory != NULL && now.to == 0) ||
                (transfer->from_memory != NULL && now.from == 0))
                return false;
        }
        if (transfer->blocks != NULL)
            transfer->blocks[i] = now;
    }
    return true;
}

/* Sums up to the largest number there is: for costs and thresholds that is as good. */
static uint64_t total_bytes(const struct engine_region *regions, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += regions[i].length;
        if (total < regions[i].length)
            return UINT64_MAX;
    }
    return total;
}

static uint64_t copy_ns(const struct engine_settings *settings, uint64_t bytes)
{
    const double longest = 1e18; /* 30 years: keeps the sum within 64 bits */
    double ns = 0;
    if (settings->bandwidth != 0)
        ns = (double)bytes * 1e9 / (double)settings->bandwidth;
    uint64_t latency = settings->latency_ns;
    uint64_t moving = (uint64_t)(ns < longest ? ns : longest);
    return latency <= UINT64_MAX - moving ? latency + moving : UINT64_MAX;
}

/* The blocks come behind the regions, aligned. */
static struct transfer *allocate(const struct engine_region *regions, size_t count,
                                 bool with_blocks, bool with_event)
{
    struct transfer *transfer;
    size_t unit = _Alignof(struct blocks);
    size_t each = sizeof *regions + sizeof(struct blocks);
    if (count > (SIZE_MAX - sizeof *transfer - unit) / each)
        return NULL;
    size_t size = (sizeof *transfer + count * sizeof *regions + unit - 1) / unit * unit;
    size_t blocks = with_blocks ? count * sizeof(struct blocks) : 0;
    transfer = (struct transfer *)syncedmem_engine_operation_create(size + blocks, with_event);
    if (transfer == NULL)
        return NULL;
    transfer->blocks = NULL;
    if (with_blocks)
        transfer->blocks = (struct blocks *)(void *)((unsigned char *)transfer + size);
    transfer->count = count;
    if (count != 0)
        memcpy(transfer->regions, regions, count * sizeof *regions);
    return transfer;
}

static struct transfer *transfer_create(struct engine_stream *stream,
                                        const struct engine_region *regions, size_t count,
                                        bool with_event)
{
    struct transfer *transfer = allocate(regions, count, stream->scheduled, with_event);
    if (transfer == NULL)
        return NULL;
    transfer->operation.run = run_transfer;
    transfer->operation.discard = discard_transfer;
    transfer->own = syncedmem_engine_memory_of(stream->device);
    transfer->to_memory = NULL;
    transfer->from_memory = NULL;
    transfer->staged = NULL;
    return transfer;
}

/* ---- Copies that return before they have landed ---- */

/* Whether it comes from host memory that a driver would read ahead. */
static bool is_pageable(struct engine_stream *stream, const struct transfer *transfer)
{
    if (transfer->to_memory == NULL || transfer->from_memory != NULL ||
        transfer->run_region != copy_region)
        return false;
    for (size_t i = 0; i < transfer->count; i++) {
        const struct engine_region *region = &transfer->regions[i];
        const void *from = (const void *)((uintptr_t)transfer->from + region->from);
        if (region->length != 0 &&
            !syncedmem_engine_is_pinned(stream->device, from, region->length))
            return true;
    }
    return false;
}

static void read_ahead(struct transfer *transfer, unsigned char *staged)
{
    size_t offset = 0;
    for (size_t i = 0; i < transfer->count; i++) {
        struct engine_region *region = &transfer->regions[i];
        if (region->length != 0)
            memcpy(staged + offset, usable(NULL, transfer->from, region->from), region->length);
        region->from = offset;
        offset += region->length;
    }
    transfer->from = transfer->staged = staged;
}

/*
 * By the dice. One that fails is waited for: who would learn of it else? What is on the stream
 * before may still write to the source, and so comes first.
 */
static bool stage(struct engine_stream *stream, struct transfer *transfer)
{
    if (!stream->scheduled || transfer->fails || !is_pageable(stream, transfer) ||
        !syncedmem_engine_schedule_chance())
        return false;
    uint64_t bytes = total_bytes(transfer->regions, transfer->count);
    unsigned char *staged = bytes < SPARSE_FROM ? malloc((size_t)bytes) : NULL;
    if (staged == NULL)
        return false;
    if (syncedmem_engine_stream_synchronize(stream) != ENGINE_OK) {
        free(staged);
        return false;
    }
    read_ahead(transfer, staged);
    return true;
}

/* ---- Copies and fills ---- */

/* How a transfer is asked for: to be waited for, or with an event for whoever asks. */
struct manner {
    bool wait;
    struct engine_event **out_event;
};

/* Counts it for each kind of failure. */
static enum engine_result admit(struct engine_stream *stream, struct transfer *transfer)
{
    struct engine_device *device = stream->device;
    if (!find_blocks(transfer))
        return ENGINE_BAD_ADDRESS;
    if (syncedmem_engine_loses_device(device))
        return ENGINE_LOST;
    bool refused = syncedmem_engine_failure_due(device, ENGINE_FAIL_COPY);
    transfer->fails = syncedmem_engine_failure_due(device, ENGINE_FAIL_COPY_LATE);
    return refused ? ENGINE_REFUSED : ENGINE_OK;
}

/* A loss in between has taken the blocks away. */
static bool is_lost(const struct engine_memory *memory)
{
    return memory != NULL && syncedmem_engine_device_lost(memory->device);
}

static enum engine_result submit(struct engine_stream *stream, struct transfer *transfer,
                                 struct manner manner)
{
    enum engine_result result = admit(stream, transfer);
    if (result != ENGINE_OK) {
        if (is_lost(transfer->to_memory) || is_lost(transfer->from_memory))
            result = ENGINE_LOST;
        syncedmem_engine_operation_discard(&transfer->operation);
        return result;
    }
    if (manner.wait && !stage(stream, transfer))
        return syncedmem_engine_stream_do(stream, &transfer->operation);
    syncedmem_engine_stream_put(stream, &transfer->operation, manner.out_event);
    return ENGINE_OK;
}

static struct engine_memory *side(struct engine_device *device)
{
    return device != NULL ? syncedmem_engine_memory_of(device) : NULL;
}

static bool copy_is_lost(struct engine_stream *stream, const struct engine_copy *wish)
{
    return syncedmem_engine_stream_lost(stream) ||
           (wish->to_device != NULL && syncedmem_engine_device_lost(wish->to_device)) ||
           (wish->from_device != NULL && syncedmem_engine_device_lost(wish->from_device));
}

static enum engine_result copy(struct engine_stream *stream, const struct engine_copy *wish,
                               struct manner manner)
{
    if (copy_is_lost(stream, wish))
        return ENGINE_LOST;
    struct transfer *transfer =
        transfer_create(stream, wish->regions, wish->count, manner.out_event != NULL);
    if (transfer == NULL)
        return ENGINE_HOST_MEMORY;
    uint64_t bytes = total_bytes(wish->regions, wish->count);
    bool on_host = wish->to_device == NULL && wish->from_device == NULL;
    transfer->operation.least_ns = copy_ns(&stream->device->settings, bytes);
    transfer->run_region = copy_region;
    transfer->to_memory = side(wish->to_device);
    transfer->from_memory = side(wish->from_device);
    transfer->to = wish->to;
    transfer->from = wish->from;
    transfer->sparse = bytes >= SPARSE_FROM && !on_host;
    return submit(stream, transfer, manner);
}

static enum engine_result fill(struct engine_stream *stream, const struct engine_fill *wish,
                               struct manner manner)
{
    struct engine_device *device = stream->device;
    if (syncedmem_engine_stream_lost(stream))
        return ENGINE_LOST;
    struct transfer *transfer =
        transfer_create(stream, wish->regions, wish->count, manner.out_event != NULL);
    if (transfer == NULL)
        return ENGINE_HOST_MEMORY;
    transfer->operation.least_ns = device->settings.latency_ns;
    transfer->run_region = fill_region;
    transfer->to_memory = side(device);
    transfer->to = wish->to;
    transfer->sparse = total_bytes(wish->regions, wish->count) >= SPARSE_FROM;
    transfer->value = wish->value;
    return submit(stream, transfer, manner);
}

enum engine_result syncedmem_engine_copy(struct engine_stream *stream,
                                         const struct engine_copy *wish,
                                         struct engine_event **out_event)
{
    int kept = errno;
    if (out_event != NULL)
        *out_event = NULL;
    enum engine_result result = copy(stream, wish, (struct manner){.out_event = out_event});
    errno = kept;
    return result;
}

enum engine_result syncedmem_engine_copy_wait(struct engine_stream *stream,
                                              const struct engine_copy *wish)
{
    int kept = errno;
    enum engine_result result = copy(stream, wish, (struct manner){.wait = true});
    errno = kept;
    return result;
}

enum engine_result syncedmem_engine_fill(struct engine_stream *stream,
                                         const struct engine_fill *wish,
                                         struct engine_event **out_event)
{
    int kept = errno;
    if (out_event != NULL)
        *out_event = NULL;
    enum engine_result result = fill(stream, wish, (struct manner){.out_event = out_event});
    errno = kept;
    return result;
}

enum engine_result syncedmem_engine_fill_wait(struct engine_stream *stream,
                                              const struct engine_fill *wish)
{
    int kept = errno;
    enum engine_result result = fill(stream, wish, (struct manner){.wait = true});
    errno = kept;
    return result;
}
