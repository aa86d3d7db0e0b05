/* SPDX-License-Identifier: BSD-2-Clause */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct world world;

/* ---- Dice (splitmix64) ---- */

uint64_t throw_dice(void)
{
    uint64_t z = world.dice += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

size_t below(size_t limit)
{
    return (size_t)(throw_dice() % limit);
}

bool chance(unsigned percent)
{
    return below(100) < percent;
}

/* ---- Faults and the trace ---- */

void fail(const char *format, ...)
{
    va_list arguments;
    const int used = snprintf(world.message, sizeof world.message, "step %u: ", world.step);
    va_start(arguments, format);
    vsnprintf(world.message + used, sizeof world.message - (size_t)used, format, arguments);
    va_end(arguments);
    longjmp(world.out, 1);
}

void say(const char *format, ...)
{
    va_list arguments;
    if (!world.trace) {
        return;
    }
    printf("%4u  ", world.step);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* ---- What may be expected of calls ---- */

bool is_busy(const struct buffer *buffer, size_t from, size_t to, bool writing)
{
    for (const struct lease *lease = world.leases; lease < world.leases + LEASES; lease++) {
        if (lease->buffer == buffer && from < lease->to && lease->from < to &&
            (writing || lease->mode != SYNCEDMEM_READ)) {
            return true;
        }
    }
    return false;
}

bool is_leased_at(const struct buffer *buffer, int place)
{
    for (const struct lease *lease = world.leases; lease < world.leases + LEASES; lease++) {
        if (lease->buffer == buffer && (place < 0 || lease->place == place)) {
            return true;
        }
    }
    return false;
}

bool is_leased(const struct buffer *buffer)
{
    return is_leased_at(buffer, -1);
}

/* Read-only memory that is leased cannot be left behind. */
static bool may_be_stuck(const struct buffer *buffer)
{
    for (int place = 0; place < PLACES; place++) {
        const struct block *block = buffer->blocks[place];
        if (block != NULL && block->read_only && is_leased_at(buffer, place)) {
            return true;
        }
    }
    return false;
}

static bool is_unsure(const struct buffer *buffer)
{
    for (size_t i = 0; i < buffer->size; i++) {
        if (buffer->bytes[i].unsure) {
            return true;
        }
    }
    return false;
}

void forget_failures(const struct buffer *buffer)
{
    world.epochs[buffer->identity]++;
}

static void report(struct buffer *buffer)
{
    world.epochs[buffer->identity]++;
    model_report(buffer->bytes, buffer->size);
}

bool took_both(struct buffer *one, struct buffer *other, const char *what,
               syncedmem_status_t status, bool busy)
{
    const char *name = syncedmem_status_name(status);
    if (status == SYNCEDMEM_OK) {
        EXPECT(!busy, "%s: should be BUSY", what);
        return true;
    }
    say("    %s: %s", name, syncedmem_last_error());
    if (status == SYNCEDMEM_BUSY) {
        EXPECT(busy || may_be_stuck(one) || may_be_stuck(other), "%s: %s", what,
               syncedmem_last_error());
        return false;
    }
    EXPECT(world.fails && (status == SYNCEDMEM_DEVICE_ERROR || status == SYNCEDMEM_DATA_LOST),
           "%s: %s: %s", what, name, syncedmem_last_error());
    report(one);
    if (other != one) {
        report(other);
    }
    world.told += status == SYNCEDMEM_DEVICE_ERROR;
    EXPECT(world.told <= world.armed, "%s: %s returned more often than it happened: %s", what, name,
           syncedmem_last_error());
    EXPECT(status == SYNCEDMEM_DEVICE_ERROR || is_unsure(one) || is_unsure(other),
           "%s: bytes are said to be lost that cannot be: %s", what, syncedmem_last_error());
    return false;
}

bool took(struct buffer *buffer, const char *what, syncedmem_status_t status, bool busy)
{
    return took_both(buffer, buffer, what, status, busy);
}

/* ---- Bytes on the host ---- */

void read_host(struct buffer *buffer, const void *pointer, size_t from, size_t to, const char *what)
{
    const unsigned char *bytes = pointer;
    for (size_t i = from; i < to; i++) {
        const unsigned wanted = buffer->bytes[i].latest;
        EXPECT(model_read(&buffer->bytes[i], bytes[i - from]),
               "%s: byte %zu of buffer %d is %u, and not %u", what, i, buffer->identity,
               bytes[i - from], wanted);
    }
}

void write_host(struct buffer *buffer, void *pointer, size_t from, size_t to)
{
    unsigned char *bytes = pointer;
    for (size_t i = from; i < to; i++) {
        bytes[i - from] = (unsigned char)throw_dice();
        model_set(&buffer->bytes[i], bytes[i - from]);
    }
}

/* ---- Kernels ---- */

struct kernel_arguments {
    unsigned step;
    int identity;
    unsigned epoch;
    bool writes;
    size_t length;
    unsigned char expected[SIZE_MOST];
    bool checked[SIZE_MOST];
    unsigned char fresh[SIZE_MOST];
};

static struct mismatch {
    unsigned step;
    int identity;
    unsigned epoch;
    size_t byte;
    unsigned found;
    unsigned expected;
} mismatches[64];
static size_t mismatch_count;

static void run_kernel(void *arguments, void *const *addresses, size_t count)
{
    const struct kernel_arguments *given = arguments;
    unsigned char *bytes = addresses[0];
    (void)count;
    for (size_t i = 0; i < given->length; i++) {
        if (given->checked[i] && bytes[i] != given->expected[i] && mismatch_count < 64) {
            mismatches[mismatch_count++] = (struct mismatch){
                given->step, given->identity, given->epoch, i, bytes[i], given->expected[i]};
            break;
        }
    }
    if (given->writes) {
        memcpy(bytes, given->fresh, given->length);
    }
}

static void launch(int place, syncedmem_stream *stream, syncedmem_sim_kernel_fn function,
                   const void *arguments, size_t size, const void *pointer)
{
    syncedmem_stream *used = stream;
    if (stream == NULL) {
        EXPECT_OK(syncedmem_stream_default(world.places[place], &used));
    }
    EXPECT_OK(syncedmem_sim_launch(used, function, arguments, size, &pointer, 1));
    if (stream == NULL) {
        syncedmem_stream_release(used);
    }
}

static void write_in_model(const struct kernel *kernel, struct model_byte *byte, uint8_t value)
{
    if (kernel->blurred) {
        model_blur(byte, value);
    } else if (kernel->keeps) {
        model_add(byte, value);
    } else {
        model_set(byte, value);
    }
}

void put_kernel(const struct kernel *kernel, int place, syncedmem_stream *stream,
                const void *pointer)
{
    struct buffer *buffer = kernel->buffer;
    struct kernel_arguments given = {.step = world.step,
                                     .identity = buffer->identity,
                                     .epoch = world.epochs[buffer->identity],
                                     .writes = kernel->writes,
                                     .length = kernel->to - kernel->from};
    for (size_t i = 0; i < given.length; i++) {
        struct model_byte *byte = &buffer->bytes[kernel->from + i];
        given.expected[i] = byte->latest;
        given.checked[i] = kernel->reads && !kernel->blurred && !byte->unsure;
        given.fresh[i] = (unsigned char)throw_dice();
        if (kernel->writes) {
            write_in_model(kernel, byte, given.fresh[i]);
        }
    }
    say("    kernel%s%s", kernel->reads ? " reads" : "", kernel->writes ? " writes" : "");
    launch(place, stream, run_kernel, &given, sizeof given, pointer);
}

/* A failure that was told afterwards explains what a kernel saw. */
void check_kernels(void)
{
    for (size_t i = 0; i < mismatch_count; i++) {
        const struct mismatch *seen = &mismatches[i];
        EXPECT(world.fails && world.epochs[seen->identity] > seen->epoch,
               "the kernel of step %u found byte %zu of its range of buffer %d to be %u, and not "
               "%u",
               seen->step, seen->byte, seen->identity, seen->found, seen->expected);
    }
}

/* ---- Bytes of a device's memory as such ---- */

struct bytes_arguments {
    size_t size;
    bool *answer;
    unsigned char bytes[SIZE_MOST + 2 * GUARD];
};

static void run_write(void *arguments, void *const *addresses, size_t count)
{
    const struct bytes_arguments *given = arguments;
    (void)count;
    memcpy(addresses[0], given->bytes, given->size);
}

static void run_compare(void *arguments, void *const *addresses, size_t count)
{
    const struct bytes_arguments *given = arguments;
    (void)count;
    *given->answer = memcmp(addresses[0], given->bytes, given->size) == 0;
}

void put_bytes(syncedmem_stream *stream, void *pointer, const unsigned char *bytes, size_t size)
{
    struct bytes_arguments given = {.size = size};
    memcpy(given.bytes, bytes, size);
    launch(HOST, stream, run_write, &given, sizeof given, pointer);
}

bool has_bytes(int place, const void *pointer, const unsigned char *bytes, size_t size)
{
    bool answer = false;
    syncedmem_stream *stream;
    struct bytes_arguments given = {.size = size, .answer = &answer};
    memcpy(given.bytes, bytes, size);
    EXPECT_OK(syncedmem_stream_create(world.places[place], &stream));
    launch(place, stream, run_compare, &given, sizeof given, pointer);
    syncedmem_stream_wait(stream);
    syncedmem_stream_release(stream);
    return answer;
}
