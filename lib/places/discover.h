/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding devices: by name, and the one to use when none is named. */
#ifndef SYNCEDMEM_PLACES_DISCOVER_H
#define SYNCEDMEM_PLACES_DISCOVER_H

#include "places/place.h"

/* Lists the devices of every driver that is there and of every backend the user asked for. */
void syncedmem_discover_all(void);

syncedmem_status_t syncedmem_discover_name(const char *name, syncedmem_place **out_place);

/* What this thread chose, else the process's default. */
syncedmem_status_t syncedmem_discover_current(syncedmem_place **out_place);

#endif
