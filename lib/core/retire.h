/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of the library that no buffer has any more, and that unfinished work still uses.
 *
 * No one waits for that work: a block is freed when it has ended and an allocation, or another
 * block that retires, has a look.
 */
#ifndef SYNCEDMEM_CORE_RETIRE_H
#define SYNCEDMEM_CORE_RETIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct copy;
struct root;
struct syncedmem_place;

/* Takes over the block of a slot, with the work that uses it. False: there is no memory for the
 * record, or no work; the caller waits for what there is, and frees the block. Under the root's lock.
 */
bool syncedmem_retire(struct root *root, unsigned slot);

/* Frees a block that nothing uses, counts that for the process and traces it with the number of the
 * buffer that had it. */
void syncedmem_retired_free(const struct copy *copy, size_t size, uint64_t buffer);

/* Frees what is not in use any more. Waits for nothing. */
void syncedmem_retired_visit(void);

/* Waits until a place's retired blocks are free. False: there was none. */
bool syncedmem_retired_wait(const struct syncedmem_place *place);

#endif
