/* SPDX-License-Identifier: BSD-2-Clause */
/* A buffer in words, for a person. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/check.h"
#include "api/range.h"

/* ---- A text that may not fit ---- */

struct writer {
    char *text;
    size_t capacity;
    size_t length; /* of the whole text */
};

static __attribute__((format(printf, 2, 3))) void put(struct writer *writer, const char *format,
                                                      ...)
{
    const bool fits = writer->length < writer->capacity;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(fits ? writer->text + writer->length : NULL,
                                 fits ? writer->capacity - writer->length : 0, format, arguments);
    va_end(arguments);
    writer->length += length > 0 ? (size_t)length : 0;
}

/* ---- Its parts ---- */

static void put_handle(struct writer *writer, const syncedmem_buffer *buffer)
{
    const struct root *root = buffer->root;
    put(writer, "%s of %zu bytes", handle_is_view(buffer) ? "view" : "buffer", buffer->length);
    if (handle_is_view(buffer))
        put(writer, " from %zu on, of a buffer of %zu", buffer->offset, root->size);
    put(writer, "\nhead: %s\nhome: %s%s\n",
        syncedmem_head_name(syncedmem_root_head(root, handle_from(buffer), handle_to(buffer))),
        root->home ? root->home->name : "none yet", root->home_fixed ? ", fixed" : "");
}

static void put_copy(struct writer *writer, const struct root *root, unsigned slot)
{
    const struct copy *copy = &root->body->copies.slots[slot];
    put(writer, "%s: ", copy->place->name);
    if (!copy->present) {
        put(writer, "no memory\n");
        return;
    }
    put(writer, "%zu valid bytes of the whole in %s memory at %p%s%s%s\n",
        root->size > 0 ? syncedmem_map_valid_bytes(&root->body->map, 0, root->size, slot_bit(slot))
                       : 0,
        copy->owned ? "own" : "adopted", copy->memory, copy->read_only ? ", read-only" : "",
        copy->pin == PIN_DONE ? ", pinned" : "", copy->exposed ? ", pointer given out" : "");
}

enum { SEGMENTS_SHOWN = 16 };

static void put_segment(struct writer *writer, const struct root *root, size_t index)
{
    const struct map *map = &root->body->map;
    const place_set valid = map->segments[index].valid;
    put(writer, "  [%zu, %zu)%s%s", map->segments[index].start, syncedmem_map_end(map, index),
        valid ? "" : " zero", valid & LOST ? " lost" : "");
    for (unsigned slot = 0; slot < root->body->copies.count; slot++)
        if (valid & slot_bit(slot))
            put(writer, " %s", root->body->copies.slots[slot].place->name);
    put(writer, "\n");
}

static void put_map(struct writer *writer, const struct root *root)
{
    const size_t count = root->body->map.count;
    put(writer, "newest bytes of the whole in %zu segment%s:\n", count, count > 1 ? "s" : "");
    for (size_t i = 0; i < count && i < SEGMENTS_SHOWN; i++)
        put_segment(writer, root, i);
    if (count > SEGMENTS_SHOWN)
        put(writer, "  and %zu more\n", count - SEGMENTS_SHOWN);
}

static void put_leases(struct writer *writer, const struct root *root)
{
    for (const struct lease *lease = root->body->leases.open; lease; lease = lease->next)
        put(writer, "lease %" PRIu64 ": [%zu, %zu) for %s at %s\n", lease->token, lease->from,
            lease->to, lease->writes ? "writing" : "reading",
            root->body->copies.slots[lease->slot].place->name);
}

static void put_works(struct writer *writer, const struct root *root)
{
    size_t count = 0;
    for (const struct work *work = root->body->works.first; work; work = work->next)
        count++;
    put(writer, "unfinished transfers and kernels: %zu\n", count);
}

static void put_all(struct writer *writer, const syncedmem_buffer *buffer)
{
    const struct root *root = buffer->root;
    put_handle(writer, buffer);
    if (!root->body)
        return;
    for (unsigned slot = 0; slot < root->body->copies.count; slot++)
        put_copy(writer, root, slot);
    if (root->size > 0)
        put_map(writer, root);
    put_leases(writer, root);
    put_works(writer, root);
}

syncedmem_status_t syncedmem_describe(const syncedmem_buffer *buffer, char *text, size_t capacity,
                                      size_t *out_needed)
{
    PUBLIC_CALL;
    REQUIRE_OUT(out_needed);
    if (capacity > 0)
        REQUIRE_OUT(text);
    REQUIRE_ARGUMENT(buffer);
    struct writer writer = {.text = text, .capacity = capacity};
    const syncedmem_status_t status = syncedmem_root_lock(buffer->root);
    if (status != SYNCEDMEM_OK)
        return status;
    put_all(&writer, buffer);
    syncedmem_root_unlock(buffer->root);
    *out_needed = writer.length + 1;
    return SYNCEDMEM_OK;
}
