/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzing of streams of operations against the model, by libFuzzer: see fuzz in this folder.
 *
 * A difference aborts, so libFuzzer keeps the stream; ranges.drive --shrink makes it shorter.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops.h"
#include "run.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t size_most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *difference = run_stream(bytes, size, (struct run_options){0});
    if (difference != NULL) {
        fprintf(stderr, "%s\n", difference);
        abort();
    }
    return 0;
}

/* Half of the changes are of libFuzzer's own; the others keep records whole: one is put in or left
 * out, or two change places. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_most, unsigned seed)
{
    const size_t count = size / OP_BYTES;
    uint8_t *record = bytes + (count == 0 ? 0 : seed / 8 % count) * OP_BYTES;
    if (seed % 2 == 0 || count < 2) {
        return LLVMFuzzerMutate(bytes, size, size_most);
    }
    if (seed % 8 < 4 && (count + 1) * OP_BYTES <= size_most) {
        for (uint8_t *at = bytes + count * OP_BYTES; at-- > record;) {
            at[OP_BYTES] = *at;
        }
        ops_generate(seed, true, record, 1);
        return (count + 1) * OP_BYTES;
    }
    const uint8_t *last = bytes + (count - 1) * OP_BYTES;
    for (size_t i = 0; i < OP_BYTES; i++) {
        const uint8_t byte = record[i];
        record[i] = last[i];
        bytes[(count - 1) * OP_BYTES + i] = byte;
    }
    return seed % 8 < 6 ? count * OP_BYTES : (count - 1) * OP_BYTES;
}
