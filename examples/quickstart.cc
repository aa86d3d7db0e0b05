/* SPDX-License-Identifier: BSD-2-Clause */
/* c++ quickstart.cc $(pkg-config --cflags --libs syncedmem) -o quickstart */
#include <cstdio>
#include <syncedmem.hpp>

/* The best GPU, or the simulated one where there is none. */
static syncedmem::Place best_device()
{
    std::error_code none;
    const syncedmem::Place device = syncedmem::device_current(none);
    return none ? syncedmem::device_find("sim:0") : device;
}

static void print_transfers(const syncedmem::Buffer &buffer)
{
    std::printf("head: %d, transfers: %d\n", static_cast<int>(buffer.head()),
                static_cast<int>(buffer.stat(SYNCEDMEM_STAT_TRANSFERS)));
}

int main()
{
    try {
        syncedmem::Buffer buffer(10 * sizeof(float)); /* allocates nothing */
        buffer.set_home(best_device());
        for (float &x : buffer.mutable_cpu_span<float>()) /* zeroes on the host */
            x = 1;
        buffer.gpu_data<float>(); /* one transfer; kernels may read it now */
        buffer.gpu_data<float>(); /* nothing to do */
        print_transfers(buffer);
        {
            const auto row = buffer.write(syncedmem::host(), syncedmem::Range::of<float>(2, 3));
            row.span<float>()[0] = 2;
        }                         /* the lease ends */
        buffer.gpu_data<float>(); /* three of the ten go over */
        print_transfers(buffer);
    } catch (const syncedmem::error &error) {
        return std::fprintf(stderr, "%s\n", error.what()), 1;
    }
    return 0;
}
