/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that uses the installed library: bytes go to a simulated device and come back. */
#include <stdio.h>
#include <string.h>
#include <syncedmem.h>
#include <syncedmem/sim.h>

static void kernel_write(void *arguments, void *const *addresses, size_t count)
{
    (void)arguments;
    (void)count;
    memcpy(addresses[0], "DEVICE", 6);
}

static int fail(void)
{
    fprintf(stderr, "%s\n", syncedmem_last_error());
    return 1;
}

int main(void)
{
    syncedmem_place *device;
    syncedmem_stream *stream;
    syncedmem_buffer *buffer;
    void *host, *address;
    const void *bytes;
    if (syncedmem_device_find("sim:0", &device) || syncedmem_stream_default(device, &stream))
        return fail();
    if (syncedmem_create(10, &buffer) || syncedmem_set_home(buffer, device))
        return fail();
    if (syncedmem_mutable_cpu_data(buffer, &host))
        return fail();
    strcpy((char *)host, "host");
    if (syncedmem_mutable_gpu_data(buffer, &address) || !address)
        return fail();
    const void *const addresses[] = {address};
    if (syncedmem_sim_launch(stream, kernel_write, NULL, 0, addresses, 1))
        return fail();
    if (syncedmem_stream_wait(stream) || syncedmem_cpu_data(buffer, &bytes))
        return fail();
    printf("%d %s\n", syncedmem_version() >= SYNCEDMEM_VERSION, (const char *)bytes);
    syncedmem_stream_release(stream);
    syncedmem_release(buffer);
    return 0;
}
