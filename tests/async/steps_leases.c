/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps: leases, open for several steps, with kernels on their streams. */
#include "world.h"

static const char *const mode_names[] = {"", "READ", "WRITE", "READ_WRITE"};

static struct lease *lease_where(bool open)
{
    struct lease *found = NULL;
    size_t count = 0;
    for (struct lease *lease = world.leases; lease < world.leases + LEASES; lease++) {
        if ((lease->buffer != NULL) == open && below(++count) == 0) {
            found = lease;
        }
    }
    return found;
}

/* ---- What the holder does ---- */

static void work_on_host(struct lease *lease)
{
    struct buffer *buffer = lease->buffer;
    if (lease->mode != SYNCEDMEM_WRITE || lease->written) {
        read_host(buffer, lease->pointer, lease->from, lease->to, "lease");
    }
    if (lease->mode != SYNCEDMEM_READ) {
        write_host(buffer, lease->pointer, lease->from, lease->to);
    }
}

static void work(struct lease *lease)
{
    const bool told = lease->epoch != world.epochs[lease->buffer->identity];
    if (lease->place == HOST) {
        work_on_host(lease);
    } else {
        const struct kernel kernel = {.buffer = lease->buffer,
                                      .from = lease->from,
                                      .to = lease->to,
                                      .reads = lease->mode != SYNCEDMEM_WRITE || lease->written,
                                      .writes = lease->mode != SYNCEDMEM_READ,
                                      .keeps = lease->mode != SYNCEDMEM_WRITE,
                                      .blurred = told && lease->mode != SYNCEDMEM_WRITE};
        put_kernel(&kernel, lease->place, lease->stream ? lease->stream->handle : NULL,
                   lease->pointer);
    }
    lease->written = lease->mode != SYNCEDMEM_READ;
}

void step_work(void)
{
    struct lease *lease = lease_where(true);
    if (lease != NULL) {
        say("work in lease %td", lease - world.leases);
        work(lease);
    }
}

/* ---- From begin to end ---- */

void end_lease(struct lease *lease)
{
    say("end lease %td", lease - world.leases);
    if (lease->mode == SYNCEDMEM_WRITE && !lease->written) {
        work(lease); /* bytes that are left unwritten are unspecified */
    }
    EXPECT_OK(syncedmem_end(lease->buffer->handle, lease->token));
    lease->buffer = NULL;
}

void end_leases_of(const struct buffer *buffer)
{
    for (struct lease *lease = world.leases; lease < world.leases + LEASES; lease++) {
        if (lease->buffer == buffer) {
            end_lease(lease);
        }
    }
}

void step_end(void)
{
    struct lease *lease = lease_where(true);
    if (lease != NULL) {
        end_lease(lease);
    }
}

/* Mostly work is done at once, and mostly the lease is ended then. */
void step_begin(void)
{
    struct lease *lease = lease_where(false);
    if (lease == NULL) {
        end_lease(&world.leases[below(LEASES)]);
        return;
    }
    const struct range range = some_range(some_buffer());
    struct lease made = {.mode = 1 + (syncedmem_mode_t)below(3),
                         .place = chance(15) ? HOST : 1 + (int)below(2),
                         .from = range.from,
                         .to = range.to};
    made.stream = made.place == HOST ? NULL : some_stream(made.place);
    say("begin lease %td %s buffer %d [%zu, %zu) at %s on stream %td", lease - world.leases,
        mode_names[made.mode], range.buffer->identity, made.from, made.to, place_name(made.place),
        made.stream ? made.stream - world.streams : -1);
    const bool busy = is_busy(range.buffer, made.from, made.to, made.mode != SYNCEDMEM_READ);
    const syncedmem_status_t status =
        syncedmem_begin(range.handle, world.places[made.place], made.mode, made.from - range.base,
                        made.to - made.from, made.stream ? made.stream->handle : NULL,
                        &made.pointer, NULL, &made.token);
    if (!took(range.buffer, "begin", status, busy)) {
        return;
    }
    made.buffer = range.buffer;
    made.epoch = world.epochs[range.buffer->identity];
    *lease = made;
    for (size_t i = made.from; made.mode == SYNCEDMEM_READ_WRITE && i < made.to; i++) {
        model_bring(&made.buffer->bytes[i]);
    }
    if (chance(80)) {
        work(lease);
    }
    if (chance(70)) {
        end_lease(lease);
    }
}
