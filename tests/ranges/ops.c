/* SPDX-License-Identifier: BSD-2-Clause */
#include "ops.h"

/* Names, and how often each comes in generated streams. */
static const struct {
    const char *name;
    unsigned weight;
} kinds[OP_KINDS] = {
    [OP_CREATE] = {"create", 4},
    [OP_VIEW] = {"view", 8},
    [OP_RETAIN] = {"retain", 1},
    [OP_RELEASE] = {"release", 6},
    [OP_CPU_DATA] = {"cpu_data", 7},
    [OP_MUTABLE_CPU_DATA] = {"mutable_cpu_data", 8},
    [OP_GPU_DATA] = {"gpu_data", 7},
    [OP_MUTABLE_GPU_DATA] = {"mutable_gpu_data", 8},
    [OP_SET_CPU_DATA] = {"set_cpu_data", 2},
    [OP_SET_GPU_DATA] = {"set_gpu_data", 2},
    [OP_ADOPT] = {"adopt", 6},
    [OP_PUSH] = {"async_gpu_push", 5},
    [OP_BEGIN] = {"begin", 24},
    [OP_WRITE] = {"write", 12},
    [OP_END] = {"end", 20},
    [OP_PREFETCH] = {"prefetch", 7},
    [OP_MARK] = {"mark_modified", 6},
    [OP_COPY] = {"copy", 10},
    [OP_FILL] = {"fill", 6},
    [OP_DROP] = {"drop", 5},
    [OP_WAIT] = {"wait", 2},
    [OP_LOOK] = {"look", 4},
    [OP_REFUSED] = {"refused", 2},
    [OP_SLOW] = {"slow kernel", 3},
    [OP_STREAM] = {"stream", 2},
    [OP_SCATTER] = {"scatter", 1},
    [OP_CHECK] = {"check", 4},
    [OP_FAULT] = {"fault", 60},
};

const char *op_name(enum op_kind kind)
{
    return kinds[kind].name;
}

static size_t number_of(const unsigned char *bytes)
{
    return (size_t)bytes[0] | (size_t)bytes[1] << 8;
}

struct op op_read(const unsigned char *record)
{
    return (struct op){
        .kind = (enum op_kind)(record[0] % OP_KINDS),
        .handle = record[1],
        .other = record[2],
        .place = record[3] & 7,
        .stream = record[3] >> 3 & 3,
        .mode = record[3] >> 5,
        .variant = record[4],
        .seed = record[5],
        .a = number_of(record + 6),
        .b = number_of(record + 8),
        .c = number_of(record + 10),
    };
}

/* ---- Generated streams ---- */

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 8;
}

static unsigned char kind_for(uint64_t number, bool with_faults)
{
    const unsigned last = with_faults ? OP_KINDS : OP_FAULT;
    unsigned sum = 0;
    for (unsigned kind = 0; kind < last; kind++) {
        sum += kinds[kind].weight;
    }
    unsigned left = (unsigned)(number % sum);
    unsigned kind = 0;
    while (left >= kinds[kind].weight) {
        left -= kinds[kind].weight;
        kind++;
    }
    return (unsigned char)kind;
}

/* Large buffers, more segments than the map holds apart, and short leases among them. */
static void crowd(unsigned char *record, uint64_t number)
{
    if (record[0] == OP_CREATE) {
        record[4] = 2;  /* the variant: large */
        record[7] = 11; /* at least so many times 256 bytes */
    } else if (number % 16 == 0) {
        record[0] = OP_SCATTER;
        record[4] = 0; /* as many as can be */
        record[7] = 0; /* from the start */
    } else if (number % 16 < 3) {
        record[0] = OP_BEGIN;
        record[4] = 0x74; /* short and without an error */
    }
}

/* What moves bytes, to come after a fault. */
static void strike(unsigned char *record, uint64_t number)
{
    static const enum op_kind moving[] = {
        OP_COPY,
        OP_COPY,
        OP_COPY,
        OP_COPY,
        OP_FILL,
        OP_FILL,
        OP_GPU_DATA,
        OP_PUSH,
        OP_DROP,
        OP_DROP,
        OP_BEGIN,
        OP_PREFETCH,
        OP_CPU_DATA,
        OP_MUTABLE_GPU_DATA,
        OP_MUTABLE_CPU_DATA,
        OP_MARK,
    };
    if (number % 4 != 0) {
        record[0] = (unsigned char)moving[number / 4 % (sizeof moving / sizeof moving[0])];
    }
}

void ops_generate(uint64_t seed, bool with_faults, unsigned char *stream, size_t count)
{
    const bool crowded = seed % 16 == 15;
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (int i = 0; i < 8; i++) {
        next(&state);
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char *record = stream + i * OP_BYTES;
        for (int byte = 0; byte < OP_BYTES; byte++) {
            record[byte] = (unsigned char)next(&state);
        }
        record[0] = kind_for(next(&state), with_faults);
        if (crowded) {
            crowd(record, next(&state));
        }
        if (i > 0 && record[-OP_BYTES] == OP_FAULT) {
            strike(record, next(&state));
        }
    }
}

/* ---- Parts ---- */

static struct part outside(size_t size, size_t b)
{
    const struct part parts[] = {
        {size + 1, 0, false},
        {0, size + 1, false},
        {1, SIZE_MAX, false},
        {SIZE_MAX, 2, false},
    };
    return parts[b % 4];
}

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

struct part part_pick(size_t size, size_t a, size_t b, unsigned variant)
{
    const size_t offset = a % (size + 1);
    const size_t rest = size - offset;
    switch (variant % 16) {
    case 0:
        return outside(size, b);
    case 1:
    case 2:
        return (struct part){0, size, true};
    case 3:
        return (struct part){offset, 0, true};
    case 4:
    case 5:
    case 6:
    case 7:
        return (struct part){offset, least(1 + b % 16, rest), true};
    case 8:
        return (struct part){offset, rest, true};
    default:
        return (struct part){offset, b % (rest + 1), true};
    }
}
