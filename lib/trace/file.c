/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "trace/file.h"

/* After a crash, at most so many elements are missing at the end of the file. */
enum { ELEMENTS_A_WRITE = 64, BUFFER_SIZE = 16 * TRACE_LINE_SIZE };

static const char array_end[] = "\n]\n";

enum { ARRAY_END_SIZE = sizeof array_end - 1 };

static struct {
    int descriptor; /* -1: not open */
    dev_t device;
    ino_t inode;
    uint64_t written;
    size_t length; /* of what is not yet written */
    unsigned elements;
    char buffer[BUFFER_SIZE];
} file = {.descriptor = -1};

bool syncedmem_trace_file_is_open(void)
{
    return file.descriptor >= 0;
}

/* ---- Name ---- */

bool syncedmem_trace_pattern_has_pid(const char *pattern)
{
    for (const char *at = strchr(pattern, '%'); at && at[1]; at = strchr(at + 2, '%'))
        if (at[1] == 'p')
            return true;
    return false;
}

/* NULL, or what is wrong with the pattern. */
static const char *expand(const char *pattern, char path[PATH_MAX])
{
    size_t length = 0;
    for (const char *at = pattern; *at; at++) {
        const size_t room = PATH_MAX - length;
        int added = 1;
        if (*at != '%' || *++at == '%')
            path[length] = *at;
        else if (*at == 'p')
            added = snprintf(path + length, room, "%ld", (long)getpid());
        else
            return "after % comes p, for the process id, or another %";
        if ((size_t)added >= room)
            return strerror(ENAMETOOLONG);
        length += (size_t)added;
    }
    path[length] = '\0';
    return NULL;
}

/* ---- Opening ---- */

/* Not one of the standard descriptors: where those are closed, a program would print to it. */
static int open_path(const char *path)
{
    const int opened = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (opened < 0 || opened > STDERR_FILENO)
        return opened;
    const int moved = fcntl(opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(opened);
    errno = error;
    return moved;
}

/* Two programs of one environment would write over each other. The lock is the process's own: it
 * is neither inherited by a child nor does it outlive the process. */
static bool is_taken(int descriptor)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES);
}

/* NULL, or why it cannot be used. A pipe could block, or end the process by a signal. */
static const char *claim(int descriptor)
{
    struct stat facts;
    if (fstat(descriptor, &facts) != 0)
        return strerror(errno);
    if (!S_ISREG(facts.st_mode) && !S_ISCHR(facts.st_mode))
        return "it is not a file";
    if (is_taken(descriptor))
        return "another process is writing it";
    if (S_ISREG(facts.st_mode) && ftruncate(descriptor, 0) != 0)
        return strerror(errno);
    file.device = facts.st_dev;
    file.inode = facts.st_ino;
    return NULL;
}

/* NULL, or why not. */
static const char *open_file(const char *path)
{
    const int descriptor = open_path(path);
    if (descriptor < 0)
        return strerror(errno);
    const char *reason = claim(descriptor);
    if (reason) {
        close(descriptor);
        return reason;
    }
    file.descriptor = descriptor;
    file.written = 0;
    file.length = 0;
    file.elements = 0;
    return NULL;
}

bool syncedmem_trace_file_open(const char *pattern)
{
    char path[PATH_MAX];
    const char *reason = expand(pattern, path);
    if (!reason)
        reason = open_file(path);
    if (reason)
        syncedmem_log(SYNCEDMEM_LOG_WARNING, "SYNCEDMEM_TRACE is \"%.200s\": %s: no trace", pattern,
                      reason);
    return !reason;
}

/* ---- Writing ---- */

/* A program that closes every descriptor may have given this number to a file of its own. */
static bool is_still_ours(void)
{
    struct stat facts;
    return fstat(file.descriptor, &facts) == 0 && facts.st_dev == file.device &&
           facts.st_ino == file.inode;
}

/* Beyond the limit there would be a signal. The array's end fits too. */
static bool is_within_limit(size_t length)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           file.written + length + ARRAY_END_SIZE <= limit.rlim_cur;
}

static bool write_all(const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(file.descriptor, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}

/* What was written of an element goes, so that there is still an array to look at. */
static void give_up(const char *reason, bool is_ours)
{
    if (is_ours) {
        if (file.written > 0 && ftruncate(file.descriptor, (off_t)file.written) == 0 &&
            lseek(file.descriptor, 0, SEEK_END) >= 0)
            (void)write_all(array_end, ARRAY_END_SIZE);
        close(file.descriptor);
    }
    file.descriptor = -1;
    syncedmem_log(SYNCEDMEM_LOG_WARNING, "the trace ends here: %s", reason);
}

static bool write_buffer(void)
{
    if (!is_still_ours()) {
        give_up("its file was closed by the program", false);
        return false;
    }
    const bool is_within = is_within_limit(file.length);
    if (!is_within || !write_all(file.buffer, file.length)) {
        give_up(strerror(is_within ? errno : EFBIG), true);
        return false;
    }
    file.written += file.length;
    file.length = 0;
    file.elements = 0;
    return true;
}

/* A thread that is cancelled in a write would leave the lock behind. */
bool syncedmem_trace_file_flush(void)
{
    int cancellation;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
    const bool is_written = write_buffer();
    pthread_setcancelstate(cancellation, NULL);
    return is_written;
}

static void put(const char *text, size_t length)
{
    memcpy(file.buffer + file.length, text, length);
    file.length += length;
}

bool syncedmem_trace_file_add(const char *element, size_t length)
{
    put(file.written + file.length > 0 ? ",\n" : "[\n", 2);
    put(element, length);
    file.elements++;
    if (file.elements < ELEMENTS_A_WRITE && file.length < BUFFER_SIZE - 2 * TRACE_LINE_SIZE)
        return true;
    return syncedmem_trace_file_flush();
}

void syncedmem_trace_file_close(void)
{
    if (!syncedmem_trace_file_is_open())
        return;
    put(array_end, ARRAY_END_SIZE);
    if (syncedmem_trace_file_flush())
        close(file.descriptor);
    file.descriptor = -1;
}

void syncedmem_trace_file_forget(void)
{
    if (syncedmem_trace_file_is_open() && is_still_ours())
        close(file.descriptor);
    file.descriptor = -1;
}
