/* SPDX-License-Identifier: BSD-2-Clause */
/* Transfers that were started and not waited for: who has to wait for which, and what failed. */
#include <stdlib.h>

#include "base/error.h"
#include "core/root.h"

/* Bytes that did not arrive are not the newest there; their source still has them. */
static void take_back(struct root *root, const struct work *work)
{
    syncedmem_map_remove(&root->body->map, work->from, work->to, (place_set)1 << work->writes);
}

/* Unlinks work that has ended. */
static void forget(struct root *root, struct work **link, syncedmem_status_t outcome)
{
    struct work *work = *link;
    *link = work->next;
    if (outcome != SYNCEDMEM_OK)
        take_back(root, work);
    work->backend->event_release(work->event);
    free(work);
    syncedmem_root_changed(root);
}

static syncedmem_status_t first_failure(syncedmem_status_t earlier, syncedmem_status_t later)
{
    return earlier != SYNCEDMEM_OK ? earlier : later;
}

syncedmem_status_t syncedmem_work_reap(struct root *root)
{
    syncedmem_status_t failure = SYNCEDMEM_OK;
    struct work **link = &root->body->works;
    while (*link) {
        syncedmem_status_t outcome;
        if ((*link)->backend->event_done((*link)->event, &outcome)) {
            failure = first_failure(failure, outcome);
            forget(root, link, outcome);
        } else {
            link = &(*link)->next;
        }
    }
    return failure;
}

static bool conflicts(const struct work *work, unsigned slot, size_t from, size_t to, bool writing)
{
    if (to <= work->from || work->to <= from)
        return false;
    return work->writes == slot || (writing && work->reads == slot);
}

static syncedmem_status_t wait_for(struct root *root, const struct work *work)
{
    syncedmem_status_t outcome;
    if (work->backend->event_done(work->event, &outcome))
        return outcome;
    syncedmem_count(&root->body->counters, SYNCEDMEM_STAT_WAITS, 1);
    return work->backend->event_wait(work->event);
}

syncedmem_status_t syncedmem_work_settle(struct root *root, unsigned slot, size_t from, size_t to,
                                         bool writing)
{
    syncedmem_status_t failure = SYNCEDMEM_OK;
    struct work **link = &root->body->works;
    while (*link) {
        if (conflicts(*link, slot, from, to, writing)) {
            const syncedmem_status_t outcome = wait_for(root, *link);
            failure = first_failure(failure, outcome);
            forget(root, link, outcome);
        } else {
            link = &(*link)->next;
        }
    }
    return failure;
}

syncedmem_status_t syncedmem_work_settle_all(struct root *root)
{
    syncedmem_status_t failure = SYNCEDMEM_OK;
    while (root->body->works) {
        const syncedmem_status_t outcome = wait_for(root, root->body->works);
        failure = first_failure(failure, outcome);
        forget(root, &root->body->works, outcome);
    }
    return failure;
}
