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

/* The addresses are the callers'; each region's are translated when it is its turn. */
struct transfer {
    struct engine_operation operation;
    region_fn run_region;
    const struct engine_device *to_device;   /* NULL: host memory */
    const struct engine_device *from_device; /* NULL: host memory */
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
static unsigned char *usable(const struct engine_device *device, const void *base, size_t offset)
{
    void *address = (void *)((uintptr_t)base + offset);
    return device != NULL ? syncedmem_engine_translate(device, address) : address;
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
    return transfer->from_device != NULL
               ? bytes_are_hole(&transfer->from_device->memory, from, length)
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

static void clear(const struct engine_device *device, unsigned char *to, size_t length)
{
    if (device != NULL)
        syncedmem_engine_clear(&device->memory, to, length);
    else
        clear_host(to, length);
}

static size_t offset_in(const struct engine_device *device, const unsigned char *bytes)
{
    return (size_t)(bytes - device->memory.usable);
}

/*
 * Chunks are whole pages of the source where that is device memory: else copying one would
 * allocate the page where the next begins, and so make that one look like data as well.
 */
static size_t bytes_to_chunk(const struct transfer *transfer, const unsigned char *to,
                             const unsigned char *from)
{
    size_t offset = transfer->from_device != NULL ? offset_in(transfer->from_device, from)
                                                  : offset_in(transfer->to_device, to);
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
            clear(transfer->to_device, to, run);
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
    unsigned char *to = usable(transfer->to_device, transfer->to, region->to);
    const unsigned char *from = usable(transfer->from_device, transfer->from, region->from);
    /* Within overlapping ranges the order matters, and chunks are not taken in memmove's. */
    if (transfer->sparse && !ranges_overlap(to, from, region->length))
        copy_sparse(transfer, to, from, region->length);
    else
        memmove(to, from, region->length);
}

static void fill_region(const struct transfer *transfer, const struct engine_region *region)
{
    unsigned char *to = usable(transfer->to_device, transfer->to, region->to);
    if (transfer->sparse && transfer->value == 0)
        clear(transfer->to_device, to, region->length);
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

static enum engine_result run_transfer(struct engine_operation *operation)
{
    struct transfer *transfer = (struct transfer *)operation;
    region_fn run_region = transfer->fails ? run_half : transfer->run_region;
    for (size_t i = 0; i < transfer->count; i++)
        if (transfer->regions[i].length != 0)
            run_region(transfer, &transfer->regions[i]);
    return transfer->fails ? ENGINE_FAILED : ENGINE_OK;
}

/* ---- Submission ---- */

static bool region_valid(struct engine_device *device, const void *base, size_t offset,
                         size_t length)
{
    uintptr_t start = (uintptr_t)base;
    if (device == NULL || length == 0)
        return true;
    return offset <= UINTPTR_MAX - start &&
           syncedmem_engine_holds(device, (const void *)(start + offset), length);
}

static bool copy_valid(const struct engine_copy *copy)
{
    for (size_t i = 0; i < copy->count; i++) {
        const struct engine_region *region = &copy->regions[i];
        if (!region_valid(copy->to_device, copy->to, region->to, region->length) ||
            !region_valid(copy->from_device, copy->from, region->from, region->length))
            return false;
    }
    return true;
}

static bool fill_valid(struct engine_device *device, const struct engine_fill *fill)
{
    for (size_t i = 0; i < fill->count; i++)
        if (!region_valid(device, fill->to, fill->regions[i].to, fill->regions[i].length))
            return false;
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

static struct transfer *transfer_create(const struct engine_region *regions, size_t count,
                                        bool with_event)
{
    struct transfer *transfer;
    if (count > (SIZE_MAX - sizeof *transfer) / sizeof *regions)
        return NULL;
    size_t size = sizeof *transfer + count * sizeof *regions;
    transfer = (struct transfer *)syncedmem_engine_operation_create(size, with_event);
    if (transfer == NULL)
        return NULL;
    transfer->operation.run = run_transfer;
    transfer->count = count;
    if (count != 0)
        memcpy(transfer->regions, regions, count * sizeof *regions);
    return transfer;
}

/* How a transfer is asked for: to be waited for, or with an event for whoever asks. */
struct manner {
    bool wait;
    struct engine_event **out_event;
};

/* Counts it for both kinds of failure, then puts it on the stream unless it is refused. */
static enum engine_result submit(struct engine_stream *stream, struct transfer *transfer,
                                 struct manner manner)
{
    bool refused = syncedmem_engine_failure_due(stream->device, ENGINE_FAIL_COPY);
    transfer->fails = syncedmem_engine_failure_due(stream->device, ENGINE_FAIL_COPY_LATE);
    if (refused) {
        syncedmem_engine_operation_discard(&transfer->operation);
        return ENGINE_REFUSED;
    }
    if (manner.wait)
        return syncedmem_engine_stream_do(stream, &transfer->operation);
    syncedmem_engine_stream_put(stream, &transfer->operation, manner.out_event);
    return ENGINE_OK;
}

static enum engine_result copy(struct engine_stream *stream, const struct engine_copy *wish,
                               struct manner manner)
{
    if (!copy_valid(wish))
        return ENGINE_BAD_ADDRESS;
    struct transfer *transfer =
        transfer_create(wish->regions, wish->count, manner.out_event != NULL);
    if (transfer == NULL)
        return ENGINE_HOST_MEMORY;
    uint64_t bytes = total_bytes(wish->regions, wish->count);
    bool on_host = wish->to_device == NULL && wish->from_device == NULL;
    transfer->operation.least_ns = copy_ns(&stream->device->settings, bytes);
    transfer->run_region = copy_region;
    transfer->to_device = wish->to_device;
    transfer->from_device = wish->from_device;
    transfer->to = wish->to;
    transfer->from = wish->from;
    transfer->sparse = bytes >= SPARSE_FROM && !on_host;
    return submit(stream, transfer, manner);
}

static enum engine_result fill(struct engine_stream *stream, const struct engine_fill *wish,
                               struct manner manner)
{
    struct engine_device *device = stream->device;
    if (!fill_valid(device, wish))
        return ENGINE_BAD_ADDRESS;
    struct transfer *transfer =
        transfer_create(wish->regions, wish->count, manner.out_event != NULL);
    if (transfer == NULL)
        return ENGINE_HOST_MEMORY;
    transfer->operation.least_ns = device->settings.latency_ns;
    transfer->run_region = fill_region;
    transfer->to_device = device;
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
