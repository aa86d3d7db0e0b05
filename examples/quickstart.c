/* SPDX-License-Identifier: BSD-2-Clause */
/* cc quickstart.c $(pkg-config --cflags --libs syncedmem) -o quickstart */
#include <stdio.h>
#include <syncedmem.h>

int main(void)
{
    syncedmem_place *device; /* the first GPU, or the simulated one where there is none */
    syncedmem_status_t status = syncedmem_device_current(&device);
    if (status == SYNCEDMEM_NO_DEVICE)
        status = syncedmem_device_find("sim:0", &device);

    syncedmem_buffer *buffer;
    void *host;
    const void *there;
    uint64_t transfers;
    if (status || syncedmem_create(10, &buffer)      /* allocates nothing */
        || syncedmem_set_home(buffer, device)        /* the device that gpu_data means */
        || syncedmem_mutable_cpu_data(buffer, &host) /* ten zero bytes on the host */
        || snprintf(host, 10, "hello") < 0           /* the newest bytes are there now */
        || syncedmem_gpu_data(buffer, &there)        /* one transfer; kernels may read it now */
        || syncedmem_gpu_data(buffer, &there)        /* nothing to do */
        || syncedmem_stat(buffer, SYNCEDMEM_STAT_TRANSFERS, &transfers))
        return fprintf(stderr, "%s\n", syncedmem_last_error()), 1;

    printf("head: %d (synced), transfers: %d\n", (int)syncedmem_head(buffer), (int)transfers);
    syncedmem_release(buffer);
    return 0;
}
