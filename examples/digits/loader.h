/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brings batches to the device while the network learns from earlier ones.
 *
 * A thread fills the batches of a small ring on the host, one after the other, and pushes each to
 * the device on a stream of its own. loader_next() hands them out in order, loader_done() gives
 * them back to be filled again. Without the thread there is one batch, which loader_next() fills;
 * then it moves when the first kernel asks for it. The batches are the same, bit for bit.
 */
#ifndef DIGITS_LOADER_H
#define DIGITS_LOADER_H

#include <pthread.h>

#include "device.h"
#include "source.h"

enum { LOADER_AHEAD_MOST = 8 };

struct loader {
    struct source *source;    /* the thread's, while there is one */
    syncedmem_stream *stream; /* NULL on the host: nothing to push */
    uint32_t ahead;           /* batches prepared beside the one in use; 0: no thread */
    uint64_t count;           /* batches to prepare in all */
    struct batch ring[LOADER_AHEAD_MOST + 1];

    pthread_t thread;
    bool has_thread;
    bool has_failed;      /* its failure was returned */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t is_prepared;
    pthread_cond_t is_done;
    uint64_t prepared; /* batches so far; the next one goes to the place `prepared % (ahead + 1)` */
    uint64_t done;     /* batches given back so far */
    bool stops;
    syncedmem_status_t status; /* the failure that ended the thread, */
    char error[256];           /* and what syncedmem_last_error() said there */
};

/* Starts the thread. The source stays the caller's. Needs its release, also after a failure. */
syncedmem_status_t loader_create(const struct device *device, struct source *source,
                                 uint32_t digits, uint32_t ahead, uint64_t count,
                                 struct loader *out_loader);

/* Ends the thread, whatever it is doing, and waits for its end. */
void loader_release(struct loader *loader);

/*
 * The next batch, to be used until loader_done(). Kernels may still be reading it on the device
 * then. A failure of the thread is returned here, behind the batches that were prepared before it.
 */
syncedmem_status_t loader_next(struct loader *loader, const struct batch **out_batch);
void loader_done(struct loader *loader);

/* One line about the latest failure here, where it was one of the thread; else NULL. */
const char *loader_error(const struct loader *loader);

#endif
