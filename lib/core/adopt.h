/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking the caller's memory in. Under the root's lock. */
#ifndef SYNCEDMEM_CORE_ADOPT_H
#define SYNCEDMEM_CORE_ADOPT_H

#include <stdbool.h>

#include "places/place.h"

struct root;

struct adopt {
    syncedmem_place *place;
    void *memory;
    size_t length;
    bool read_only;
    bool expose;
    struct stream_ref stream;     /* whose work the bytes come from; NULL: they are there */
    syncedmem_release_fn release; /* or NULL */
    void *user;
};

syncedmem_status_t syncedmem_adopt_memory(struct root *root, const struct adopt *adopt);

#endif
