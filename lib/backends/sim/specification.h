/* SPDX-License-Identifier: BSD-2-Clause */
/* The grammar of SYNCEDMEM_SIM, as the table in syncedmem/sim.h says. */
#ifndef SYNCEDMEM_BACKENDS_SIM_SPECIFICATION_H
#define SYNCEDMEM_BACKENDS_SIM_SPECIFICATION_H

#include <stddef.h>

#include "simulator/engine.h"

enum { SIM_DEVICES_MAX = 64 };

struct sim_specification {
    size_t devices;
    struct engine_settings settings;
};

struct sim_specification syncedmem_sim_default_specification(void);

enum { SIM_MESSAGE_SIZE = 256 };

/* Leaves the settings that are not named as they are. False, and a message that names the setting,
 * for a malformed text. */
bool syncedmem_sim_parse_specification(const char *text, struct sim_specification *specification,
                                       char message[SIM_MESSAGE_SIZE]);

#endif
