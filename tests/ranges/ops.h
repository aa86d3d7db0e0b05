/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of operations, read from bytes: from a seed, a file, or a fuzzer.
 *
 * Each operation is a record of a fixed length, so that a stream without some of its records is
 * a stream. Any bytes are: numbers are taken modulo what there is to choose from.
 */
#ifndef SYNCEDMEM_TESTS_RANGES_OPS_H
#define SYNCEDMEM_TESTS_RANGES_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op_kind {
    OP_CREATE,
    OP_VIEW,
    OP_RETAIN,
    OP_RELEASE,
    OP_CPU_DATA,
    OP_MUTABLE_CPU_DATA,
    OP_GPU_DATA,
    OP_MUTABLE_GPU_DATA,
    OP_SET_CPU_DATA,
    OP_SET_GPU_DATA,
    OP_ADOPT,
    OP_PUSH,
    OP_BEGIN,
    OP_WRITE,
    OP_END,
    OP_PREFETCH,
    OP_MARK,
    OP_COPY,
    OP_FILL,
    OP_DROP,
    OP_WAIT,
    OP_LOOK,
    OP_REFUSED,
    OP_SLOW,
    OP_STREAM,
    OP_SCATTER,
    OP_CHECK,
    OP_FAULT,
    OP_KINDS
};

enum { OP_BYTES = 12 };

struct op {
    enum op_kind kind;
    unsigned handle, other;
    unsigned place, stream, mode; /* numbers to be taken modulo what there is */
    unsigned variant, seed;
    size_t a, b, c;
};

/* Reads one record of OP_BYTES. */
struct op op_read(const unsigned char *record);
const char *op_name(enum op_kind kind);

/* A stream of so many operations from a seed; with or without OP_FAULT among them. */
void ops_generate(uint64_t seed, bool with_faults, unsigned char *stream, size_t count);

/* A part of something of a size, mostly inside, now and then not. */
struct part {
    size_t offset, length;
    bool inside;
};
struct part part_pick(size_t size, size_t a, size_t b, unsigned variant);

#endif
