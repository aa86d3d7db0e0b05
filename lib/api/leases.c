/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/check.h"
#include "api/range.h"
#include "core/access.h"

/* ---- Begin ---- */

struct request {
    struct access access;
    syncedmem_stream *stream;
    size_t length;
};

static syncedmem_status_t read_mode(syncedmem_mode_t mode, enum access_mode *out_mode)
{
    static const enum access_mode modes[] = {[SYNCEDMEM_READ] = ACCESS_READ,
                                             [SYNCEDMEM_WRITE] = ACCESS_WRITE,
                                             [SYNCEDMEM_READ_WRITE] = ACCESS_READ_WRITE};
    if (mode < SYNCEDMEM_READ || mode > SYNCEDMEM_READ_WRITE)
        return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "%d is no mode", (int)mode);
    *out_mode = modes[mode];
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_require_stream_at(const syncedmem_stream *stream,
                                               const syncedmem_place *place)
{
    if (!stream || stream->place == place)
        return SYNCEDMEM_OK;
    return syncedmem_error(SYNCEDMEM_INVALID_ARGUMENT, "the stream is on %s and the place is %s",
                           stream->place->name, place->name);
}

/* The stream that the holder's work is on; none on the host. */
static syncedmem_status_t choose_stream(struct request *request)
{
    syncedmem_place *place = request->access.place;
    struct stream_choice *choice = &request->access.choice;
    if (place_is_host(place)) {
        choice->own = true;
        return SYNCEDMEM_OK;
    }
    choice->place = place;
    request->access.ordered = true;
    return syncedmem_stream_ref(request->stream, place, &choice->ref);
}

/* What there will be to wait for when the lease has ended; nothing on the host, or of no bytes. */
static syncedmem_status_t make_work(struct lease *lease, const struct request *request)
{
    if (place_is_host(request->access.place) || request->length == 0)
        return SYNCEDMEM_OK;
    lease->work = syncedmem_work_alloc(0);
    if (!lease->work)
        return syncedmem_error_no_host_memory("the record of a lease's work", sizeof(struct work));
    return SYNCEDMEM_OK;
}

static void describe_lease(struct lease *lease, const struct request *request, unsigned slot,
                           uint64_t started)
{
    lease->slot = slot;
    lease->writes = request->access.mode != ACCESS_READ;
    lease->from = request->access.from;
    lease->to = request->access.from + request->length; /* of size 0: empty, and in no one's way */
    lease->stream = request->access.choice.ref;
    if (lease->work)
        lease->work->begun = started + 1;
}

/* Everything but the lease itself; the range may be empty. */
static syncedmem_status_t begin_access(struct root *root, const struct request *request,
                                       unsigned *out_slot)
{
    if (request->access.from == request->access.to)
        return syncedmem_copy_slot(root, request->access.place, out_slot);
    return syncedmem_access(root, &request->access, out_slot);
}

/* Under the lock. */
static syncedmem_status_t begin(struct root *root, const struct request *request,
                                struct lease **out_lease)
{
    unsigned slot;
    *out_lease = NULL;
    syncedmem_status_t status = syncedmem_root_touch(root);
    if (status != SYNCEDMEM_OK)
        return status;
    struct lease *lease = syncedmem_lease_alloc(root);
    if (!lease)
        return syncedmem_error_no_host_memory("a lease", sizeof *lease);
    status = make_work(lease, request);
    if (status == SYNCEDMEM_OK)
        status = begin_access(root, request, &slot);
    if (status != SYNCEDMEM_OK) {
        syncedmem_lease_free(root, lease);
        return status;
    }
    describe_lease(lease, request, slot, root->body->works.started);
    syncedmem_lease_open(root, lease);
    syncedmem_root_changed(root); /* plain calls have to look at the lease */
    *out_lease = lease;
    return SYNCEDMEM_OK;
}

static syncedmem_status_t make_request(const syncedmem_buffer *buffer, syncedmem_place *place,
                                       syncedmem_mode_t mode, size_t offset, size_t length,
                                       syncedmem_stream *stream, struct request *request)
{
    *request = (struct request){.access.place = place, .stream = stream, .length = length};
    syncedmem_status_t status = read_mode(mode, &request->access.mode);
    if (status == SYNCEDMEM_OK)
        status = range_in_root(buffer, &offset, length);
    if (status == SYNCEDMEM_OK)
        status = syncedmem_require_stream_at(stream, place);
    if (status == SYNCEDMEM_OK)
        status = choose_stream(request);
    request->access.from = offset;
    request->access.to = range_end(buffer, offset, length);
    return status;
}

syncedmem_status_t syncedmem_begin(syncedmem_buffer *buffer, syncedmem_place *place,
                                   syncedmem_mode_t mode, size_t offset, size_t length,
                                   syncedmem_stream *stream, void **out_pointer, size_t *out_offset,
                                   syncedmem_token_t *out_token)
{
    PUBLIC_CALL;
    if (out_offset)
        *out_offset = 0;
    if (out_token)
        *out_token = 0;
    REQUIRE_OUT(out_pointer);
    REQUIRE_ARGUMENT(out_token);
    REQUIRE_ARGUMENT(buffer);
    REQUIRE_ARGUMENT(place);
    struct request request;
    syncedmem_status_t status = make_request(buffer, place, mode, offset, length, stream, &request);
    if (status != SYNCEDMEM_OK)
        return status;
    struct root *root = buffer->root;
    struct lease *lease;
    status = syncedmem_root_lock(root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = begin(root, &request, &lease);
    if (lease) {
        *out_token = lease->token;
        *out_pointer = syncedmem_copy_address(root, lease->slot, request.access.from, length);
    }
    syncedmem_root_unlock(root);
    return status;
}

/* ---- End ---- */

static void describe_work(struct work *work, const struct root *root, const struct lease *lease)
{
    work->place = root->body->copies.slots[lease->slot].place;
    work->stream = lease->stream.number;
    work->reads = lease->writes ? NO_SLOT : (int)lease->slot;
    work->writes = lease->writes ? (int)lease->slot : NO_SLOT;
    work->from = lease->from;
    work->to = lease->to;
}

/* What the holder put on the stream goes on: later calls on the bytes come after it. Where no event
 * can be had it is waited for here, so that a lease can always be ended. */
static void list_work_of(struct root *root, struct lease *lease)
{
    struct work *work = lease->work;
    if (!work)
        return;
    struct kept_error kept;
    describe_work(work, root, lease);
    if (!place_in_reach(work->place))
        return;
    syncedmem_error_keep(&kept);
    if (work->place->backend->record(lease->stream.stream, &work->event) == SYNCEDMEM_OK) {
        lease->work = NULL;
        syncedmem_work_add(root, work);
        return;
    }
    work->event = NULL;
    work->place->backend->stream_wait(lease->stream.stream);
    syncedmem_error_put_back(&kept);
}

/* Under the lock. */
static syncedmem_status_t end(struct root *root, syncedmem_token_t token)
{
    struct lease **link = root->body ? syncedmem_lease_find(root, token) : NULL;
    if (!link)
        return syncedmem_error(SYNCEDMEM_INVALID_LEASE,
                               "no open lease of this buffer has the token %llu",
                               (unsigned long long)token);
    list_work_of(root, *link);
    syncedmem_lease_close(root, link);
    return SYNCEDMEM_OK;
}

syncedmem_status_t syncedmem_end(syncedmem_buffer *buffer, syncedmem_token_t token)
{
    PUBLIC_CALL;
    REQUIRE_ARGUMENT(buffer);
    struct root *root = buffer->root;
    syncedmem_status_t status = syncedmem_root_lock(root);
    if (status != SYNCEDMEM_OK)
        return status;
    status = end(root, token);
    const bool is_left = syncedmem_root_is_left(root);
    syncedmem_root_unlock(root);
    if (is_left)
        syncedmem_root_destroy(root);
    return status;
}
