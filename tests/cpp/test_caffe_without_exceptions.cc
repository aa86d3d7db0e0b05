/* SPDX-License-Identifier: BSD-2-Clause */
/* Caffe's class without exceptions: the default handler says a line and aborts, as Caffe did. */
/* flags: -fno-exceptions -fno-rtti */
#include "caffe/syncedmem.hpp"

#include <csignal>

#include "support.hpp"

using caffe::SyncedMemory;

PROGRAM(fails)
{
    SyncedMemory memory(10);
    memory.gpu_data();
    return 0;
}

TEST(the_default_handler_aborts)
{
    const check::Outcome outcome = check::run_program("fails");
    REQUIRE(outcome.status == 128 + SIGABRT);
    REQUIRE(outcome.said.find("SyncedMemory::gpu_data: NO_DEVICE: ") == 0);
    REQUIRE(outcome.said.find('\n') == outcome.said.size() - 1);
}

static int failures;

static void count(syncedmem_status_t, const char *, const char *)
{
    failures++;
}

TEST(a_handler_that_returns)
{
    SyncedMemory::set_failure_handler(count);
    SyncedMemory memory(10);
    REQUIRE(memory.gpu_data() == nullptr && failures == 1);
    REQUIRE(memory.mutable_cpu_data() != nullptr && failures == 1);
    memory.set_cpu_data(nullptr);
    memory.async_gpu_push(nullptr);
    REQUIRE(failures == 3 && memory.head() == SyncedMemory::HEAD_AT_CPU);
    REQUIRE(memory.handle() != nullptr && memory.size() == 10);
}
