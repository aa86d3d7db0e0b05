/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/error.h"
#include "core/root.h"

/* ---- Conflicts ---- */

static bool is_empty(const struct lease *lease)
{
    return lease->from == lease->to;
}

/* An empty range overlaps nothing. */
static const struct lease *find_conflict(const struct root *root, size_t from, size_t to,
                                         bool writing)
{
    const struct lease *lease = root->body->leases.open;
    for (; lease; lease = lease->next)
        if (from < lease->to && lease->from < to && !is_empty(lease) && (writing || lease->writes))
            return lease;
    return NULL;
}

static syncedmem_status_t busy(const struct root *root, const struct lease *lease)
{
    return syncedmem_error(SYNCEDMEM_BUSY, "bytes %zu to %zu are leased for %s at %s", lease->from,
                           lease->to, lease->writes ? "writing" : "reading",
                           root->body->copies.slots[lease->slot].place->name);
}

syncedmem_status_t syncedmem_lease_check(const struct root *root, size_t from, size_t to,
                                         bool writing)
{
    const struct lease *lease = find_conflict(root, from, to, writing);
    return lease ? busy(root, lease) : SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_lease_check_at(const struct root *root, unsigned slot, size_t from,
                                            size_t to)
{
    for (const struct lease *lease = root->body->leases.open; lease; lease = lease->next)
        if (lease->slot == slot && from < lease->to && lease->from < to && !is_empty(lease))
            return busy(root, lease);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_lease_check_slot(const struct root *root, unsigned slot)
{
    return syncedmem_lease_check_at(root, slot, 0, SIZE_MAX);
}

bool syncedmem_lease_overlaps(const struct root *root, size_t from, size_t to)
{
    return find_conflict(root, from, to, true) != NULL;
}

/* ---- Tokens: each root takes a row of numbers from the process, so that no two roots share
 * one ---- */

enum { TOKENS_PER_ROW = 1 << 20 };

static syncedmem_token_t next_token(struct leases *leases)
{
    static _Atomic(uint64_t) rows;
    if (leases->next_token == leases->last_token) {
        leases->next_token =
            atomic_fetch_add_explicit(&rows, 1, memory_order_relaxed) * TOKENS_PER_ROW;
        leases->last_token = leases->next_token + TOKENS_PER_ROW - 1;
    }
    return ++leases->next_token;
}

/* ---- Life ---- */

static struct lease *take_spare(struct leases *leases)
{
    if (leases->spare_used)
        return NULL;
    leases->spare_used = true;
    return &leases->spare;
}

struct lease *syncedmem_lease_alloc(struct root *root)
{
    struct lease *lease = take_spare(&root->body->leases);
    if (!lease)
        lease = malloc(sizeof *lease);
    if (lease)
        lease->work = NULL;
    return lease;
}

void syncedmem_lease_free(struct root *root, struct lease *lease)
{
    syncedmem_work_release(lease->work);
    if (lease == &root->body->leases.spare)
        root->body->leases.spare_used = false;
    else
        free(lease);
}

void syncedmem_lease_open(struct root *root, struct lease *lease)
{
    struct leases *leases = &root->body->leases;
    lease->token = next_token(leases);
    lease->next = leases->open;
    leases->open = lease;
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_LEASES, 1);
}

struct lease **syncedmem_lease_find(struct root *root, syncedmem_token_t token)
{
    struct lease **link = &root->body->leases.open;
    while (*link && (*link)->token != token)
        link = &(*link)->next;
    return *link ? link : NULL;
}

void syncedmem_lease_close(struct root *root, struct lease **link)
{
    struct lease *lease = *link;
    *link = lease->next;
    syncedmem_lease_free(root, lease);
    syncedmem_uncount(&root->body->counters, SYNCEDMEM_STAT_LEASES, 1);
}
