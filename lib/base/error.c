/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/call.h"
#include "base/error.h"
#include "base/thread.h"

void syncedmem_make_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

syncedmem_status_t syncedmem_error(syncedmem_status_t status, const char *format, ...)
{
    struct thread_state *state = syncedmem_thread_get();
    if (!state) {
        syncedmem_thread_set_lost_error();
        return status;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(state->error_text, sizeof state->error_text, format, arguments);
    va_end(arguments);
    syncedmem_make_one_line(state->error_text);
    syncedmem_log(SYNCEDMEM_LOG_DEBUG, "%s: %s", syncedmem_status_name(status), state->error_text);
    return status;
}

syncedmem_status_t syncedmem_error_no_host_memory(const char *what, size_t size)
{
    return syncedmem_error(SYNCEDMEM_OUT_OF_HOST_MEMORY, "no host memory for %s of %zu bytes", what,
                           size);
}

void syncedmem_error_keep(struct kept_error *kept)
{
    const struct thread_state *state = syncedmem_thread_peek();
    memcpy(kept->text, state ? state->error_text : "", state ? sizeof kept->text : 1);
}

void syncedmem_error_put_back(const struct kept_error *kept)
{
    struct thread_state *state = syncedmem_thread_peek();
    if (state)
        memcpy(state->error_text, kept->text, strlen(kept->text) + 1);
}

const char *syncedmem_error_text(void)
{
    const struct thread_state *state = syncedmem_thread_peek();
    if (state)
        return state->error_text;
    return syncedmem_thread_has_lost_error()
               ? "a call failed, and there was no memory to keep its message"
               : "";
}

const char *syncedmem_last_error(void)
{
    PUBLIC_CALL;
    return syncedmem_error_text();
}
