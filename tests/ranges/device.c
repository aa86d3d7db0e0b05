/* SPDX-License-Identifier: BSD-2-Clause */
/* Work on the simulated devices: kernels that write, read and dawdle. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

struct job {
    unsigned char *host;
    size_t length;
};

static void kernel_read(void *arguments, void *const *addresses, size_t count)
{
    const struct job *job = arguments;
    (void)count;
    memcpy(job->host, addresses[0], job->length);
}

struct small_write {
    size_t length;
    unsigned char bytes[]; /* copied with the arguments, so the caller's may go */
};

static void kernel_write(void *arguments, void *const *addresses, size_t count)
{
    const struct small_write *write = arguments;
    (void)count;
    memcpy(addresses[0], write->bytes, write->length);
}

static void kernel_slow(void *arguments, void *const *addresses, size_t count)
{
    const struct timespec time = {0, *(long *)arguments * 1000};
    (void)addresses;
    (void)count;
    nanosleep(&time, NULL);
}

bool device_write(int place, unsigned stream, void *address, const void *bytes, size_t length)
{
    const void *addresses[] = {address};
    if (length == 0) {
        return true;
    }
    struct small_write *write = malloc(sizeof *write + length);
    if (write == NULL) {
        return false;
    }
    write->length = length;
    memcpy(write->bytes, bytes, length);
    const syncedmem_status_t status = syncedmem_sim_launch(
        world.stream[place][stream], kernel_write, write, sizeof *write + length, addresses, 1);
    free(write);
    return status == SYNCEDMEM_OK;
}

bool device_read(int place, unsigned stream, const void *address, void *bytes, size_t length)
{
    const struct job job = {bytes, length};
    return length == 0 || syncedmem_sim_launch(world.stream[place][stream], kernel_read, &job,
                                               sizeof job, &address, 1) == SYNCEDMEM_OK;
}

void device_slow(int place, unsigned stream, unsigned microseconds)
{
    const long time = (long)microseconds;
    EXPECT(syncedmem_sim_launch(world.stream[place][stream], kernel_slow, &time, sizeof time, NULL,
                                0) == SYNCEDMEM_OK,
           "a slow kernel: %s", syncedmem_last_error());
}

void device_wait(int place, unsigned stream)
{
    const syncedmem_status_t status = syncedmem_stream_wait(world.stream[place][stream]);
    EXPECT(status == SYNCEDMEM_OK, "stream_wait: %s", syncedmem_last_error());
}

void device_wait_all(void)
{
    for (int place = 1; place < world.places; place++) {
        for (unsigned stream = 0; stream < STREAMS; stream++) {
            device_wait(place, stream);
        }
    }
}
