/* SPDX-License-Identifier: BSD-2-Clause */
/* The backends of this build, each opened when first needed, with the reason why one cannot be
 * used. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/none/none.h"
#include "backends/sim/sim.h"
#include "base/call.h"
#include "base/error.h"
#include "places/place.h"

/* In the order of preference. */
static const struct backend *const backends[] = {
    &syncedmem_backend_none,
    &syncedmem_backend_sim,
};

enum { BACKENDS = sizeof backends / sizeof *backends };

enum { NOT_TRIED, OPEN, UNUSABLE };

struct opening {
    atomic_int state;
    uint32_t era;
    syncedmem_status_t status;
    char reason[256];
};

static struct opening openings[BACKENDS];
static struct lock lock = LOCK_INITIALIZER;

const struct backend *syncedmem_backend_at(size_t index)
{
    return index < BACKENDS ? backends[index] : NULL;
}

static int state_of(const struct opening *opening)
{
    return atomic_load_explicit(&opening->state, memory_order_acquire);
}

/* ---- Opening ---- */

static void leave_all(void)
{
    for (size_t i = 0; i < BACKENDS; i++)
        if (state_of(&openings[i]) == OPEN)
            backends[i]->leave();
}

/* After the driver has registered what it does at exit, so that ours comes before. */
static void watch_exit(void)
{
    static bool watched;
    if (!watched)
        syncedmem_watch_exit(leave_all);
    watched = true;
}

/* A shortage of memory is no reason for ever: the next call tries again. */
static void try_open(const struct backend *backend, struct opening *opening)
{
    opening->status = backend->open();
    if (opening->status == SYNCEDMEM_OUT_OF_HOST_MEMORY)
        return;
    if (opening->status != SYNCEDMEM_OK)
        snprintf(opening->reason, sizeof opening->reason, "%s", syncedmem_error_text());
    syncedmem_log(SYNCEDMEM_LOG_INFO, "backend %s: %s", backend->name,
                  opening->status == SYNCEDMEM_OK ? "opened" : opening->reason);
    opening->era = era_now();
    if (opening->status == SYNCEDMEM_OK)
        watch_exit();
    atomic_store_explicit(&opening->state, opening->status == SYNCEDMEM_OK ? OPEN : UNUSABLE,
                          memory_order_release);
}

syncedmem_status_t syncedmem_backend_open(size_t index)
{
    struct opening *opening = &openings[index];
    if (state_of(opening) == OPEN)
        return SYNCEDMEM_OK;
    syncedmem_status_t status = syncedmem_lock(&lock);
    if (status != SYNCEDMEM_OK)
        return status;
    if (state_of(opening) == NOT_TRIED)
        try_open(backends[index], opening);
    status = opening->status;
    syncedmem_unlock(&lock);
    if (state_of(opening) == UNUSABLE)
        return syncedmem_error(status, "%s", opening->reason);
    return status;
}

bool syncedmem_backend_is_open(size_t index)
{
    return state_of(&openings[index]) == OPEN;
}

static const char *reason_at(size_t index)
{
    struct kept_error kept;
    syncedmem_error_keep(&kept);
    const syncedmem_status_t status = syncedmem_backend_open(index);
    syncedmem_error_put_back(&kept);
    if (status == SYNCEDMEM_OUT_OF_HOST_MEMORY)
        return "there was no host memory to open it";
    return openings[index].reason;
}

const char *syncedmem_backend_reason(const char *name)
{
    PUBLIC_CALL;
    for (size_t i = 0; name && i < BACKENDS; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return reason_at(i);
    return "this build has no backend of that name";
}

void syncedmem_classify(const void *address, struct memory_facts *out_facts)
{
    *out_facts = (struct memory_facts){.kind = MEMORY_UNKNOWN};
    for (size_t i = 0; i < BACKENDS && out_facts->kind == MEMORY_UNKNOWN; i++)
        if (syncedmem_backend_is_open(i) && openings[i].era == era_now())
            backends[i]->classify(address, out_facts);
}
