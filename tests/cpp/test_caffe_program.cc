/* SPDX-License-Identifier: BSD-2-Clause */
/* A program in Caffe's style compiles against this library unchanged, and copies as seldom. */
#include "caffe/blob.hpp"

#include <cmath>
#include <initializer_list>
#include <vector>

#include "support.hpp"

using caffe::Blob;
using caffe::Caffe;
using caffe::SyncedMemory;

/* ---- The program's kernels, for simulated devices ---- */

namespace
{

struct Numbers {
    int n;
    float factor;
};

void kernel_subtract(void *arguments, void *const *addresses, std::size_t)
{
    const float *const x = static_cast<const float *>(addresses[0]);
    float *const y = static_cast<float *>(addresses[1]);
    for (int i = 0; i < static_cast<const Numbers *>(arguments)->n; i++)
        y[i] -= x[i];
}

void kernel_scale(void *arguments, void *const *addresses, std::size_t)
{
    const Numbers *const numbers = static_cast<const Numbers *>(arguments);
    const float *const x = static_cast<const float *>(addresses[0]);
    float *const y = static_cast<float *>(addresses[1]);
    for (int i = 0; i < numbers->n; i++)
        y[i] = numbers->factor * x[i];
}

/* On the default stream, not waited for: as kernels were launched. */
void launch(syncedmem_sim_kernel_fn kernel, const Numbers &numbers, const float *x, float *y)
{
    const void *const addresses[] = {x, y};
    const syncedmem::Stream stream = syncedmem::Stream::default_of(syncedmem::Place(sim(0)));
    REQUIRE(syncedmem_sim_launch(stream.get(), kernel, &numbers, sizeof numbers, addresses, 2) ==
            SYNCEDMEM_OK);
}

} // namespace

void caffe::gpu_subtract(int n, const float *x, float *y)
{
    launch(kernel_subtract, Numbers{n, 0}, x, y);
}

void caffe::gpu_scale(int n, float factor, const float *x, float *y)
{
    launch(kernel_scale, Numbers{n, factor}, x, y);
}

/* ---- The program ---- */

enum { COUNT = 1000 };

static bool are(const float *numbers, float wanted)
{
    for (int i = 0; i < COUNT; i++)
        if (std::fabs(numbers[i] - wanted) > 0)
            return false;
    return true;
}

static void fill(float *numbers, float value)
{
    for (int i = 0; i < COUNT; i++)
        numbers[i] = value;
}

static uint64_t transfers()
{
    uint64_t figure;
    REQUIRE(syncedmem_stat(nullptr, SYNCEDMEM_STAT_TRANSFERS, &figure) == SYNCEDMEM_OK);
    return figure;
}

static void forward_twice(Blob<float> &top)
{
    Blob<float> bottom(COUNT);
    Blob<float> middle;
    const caffe::ScaleLayer<float> by_two(2), by_three(3);
    fill(bottom.mutable_cpu_data(), 1);
    by_two.Forward(bottom, &middle);
    by_three.Forward(middle, &top);
}

TEST(on_the_cpu)
{
    Blob<float> top;
    forward_twice(top);
    REQUIRE(are(top.cpu_data(), 6) && transfers() == 0);
    fill(top.mutable_cpu_diff(), 2);
    top.Update();
    REQUIRE(are(top.cpu_data(), 4));
}

/* Up once, down once: the middle stays on the device. */
TEST(on_the_gpu)
{
    sim_setup();
    Caffe::set_mode(Caffe::GPU);
    Blob<float> top;
    forward_twice(top);
    REQUIRE(transfers() == 1);
    fill(top.mutable_cpu_diff(), 2);
    top.Update();
    REQUIRE(transfers() == 2 && are(top.cpu_data(), 4) && transfers() == 3);
    REQUIRE(top.data()->head() == SyncedMemory::SYNCED);
}

TEST(blobs_share_memory)
{
    sim_setup();
    Blob<float> one(COUNT), other(COUNT);
    other.ShareData(one);
    fill(one.mutable_cpu_data(), 5);
    {
        const Blob<float> gone(std::move(one));
    }
    REQUIRE(are(other.cpu_data(), 5));
}

TEST(the_callers_memory)
{
    sim_setup();
    std::vector<float> numbers(COUNT, 3.0F);
    {
        Blob<float> blob(2 * COUNT);
        blob.Reshape(COUNT);
        blob.set_cpu_data(numbers.data());
        REQUIRE(blob.cpu_data() == numbers.data());
        caffe::gpu_scale(COUNT, 2, blob.gpu_data(), blob.mutable_gpu_data());
        REQUIRE(are(blob.cpu_data(), 6));
    }
    REQUIRE(are(numbers.data(), 6));
}

TEST(host_blocks)
{
    for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 1000, 100000}) {
        void *block;
        bool use_cuda = true;
        caffe::CaffeMallocHost(&block, size, &use_cuda);
        REQUIRE(block && !use_cuda && reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
        Caffe::set_mode(Caffe::GPU);
        pattern_write(block, size, 1);
        caffe::CaffeFreeHost(block, use_cuda);
        Caffe::set_mode(Caffe::CPU);
    }
    caffe::CaffeFreeHost(nullptr, false);
}
