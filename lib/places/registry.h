/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of known devices, in the order of discovery. */
#ifndef SYNCEDMEM_PLACES_REGISTRY_H
#define SYNCEDMEM_PLACES_REGISTRY_H

#include "places/place.h"

/* Interns all devices of a backend that is open. */
syncedmem_status_t syncedmem_registry_add_backend(const struct backend *backend);

size_t syncedmem_registry_count(void);

/* NULL past the end. */
syncedmem_place *syncedmem_registry_at(size_t index);

/* The place of a device, NULL when it has not been interned. */
syncedmem_place *syncedmem_registry_find(const char *name);

#endif
