/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file sim.h
 * @brief Simulated devices, for tests and for continuous integration without a GPU.
 *
 * A simulated device ("sim:0") has memory that the host cannot dereference, streams
 * that work in threads of their own, and failures on demand. The address it hands
 * out faults when the host touches it, as a GPU's does; kernels are C functions
 * that are given addresses which work.
 *
 * The simulator is used when it is named, never otherwise. Before its first use it can be
 * configured: by syncedmem_sim_configure(), or by the environment variable
 * SYNCEDMEM_SIM. Both take the same specification, a list of settings with commas
 * between them, each a name, '=' and a value:
 *
 * | setting        | value                             | default                          |
 * |----------------|-----------------------------------|----------------------------------|
 * | devices        | 1 to 64                           | 1                                |
 * | memory         | bytes of each device              | 4g (64m where pointers have 32 bits) |
 * | latency        | time every transfer takes at least | 0                               |
 * | bandwidth      | bytes a second of transfers, 0: no limit | 0                         |
 * | launch         | time every kernel takes at least  | 0                                |
 * | fail_alloc     | the n-th allocation fails, 0: none | 0                               |
 * | fail_copy      | the n-th copy or fill is refused, 0: none | 0                        |
 * | fail_copy_late | the n-th copy or fill fails when it runs, 0: none | 0                |
 * | fail_pin       | the n-th registration of host memory is refused, 0: none | 0         |
 * | fail_device    | the n-th allocation, copy, fill or kernel loses the device, 0: none | 0 |
 * | seed           | a number: the adversarial mode, see below; 0: off | 0                |
 *
 * Bytes may end in k, m or g (powers of 1024), times in ns, us or ms (a bare number
 * is nanoseconds). The failures count on each device from its first use, and each happens once.
 * Example: SYNCEDMEM_SIM=devices=2,memory=256m,latency=10us
 *
 * Device memory is not cleared: a fresh block holds arbitrary bytes.
 *
 * @par The adversarial mode
 * A GPU does what it is told at some time; a simulated device mostly does it at once, and so a
 * missing wait goes unnoticed. With a seed there are no threads: what is put on a stream stays there
 * until the program waits for something, and is then run in an order thrown by dice, streams of all
 * devices mixed. Copies land as late as can be, their sources are read at the last moment, a stream
 * overtakes another wherever no event forbids it; now and then something is early. latency,
 * bandwidth and launch cost nothing. Work that touches memory freed meanwhile is found and counted:
 * syncedmem_sim_faults().
 *
 * @par
 * A program with one thread runs in the same order each time with the same seed. So in continuous
 * integration run the tests with many seeds, and print the seed of one that fails:
 * @code
 *     for seed in $(seq 1 50); do
 *         SYNCEDMEM_SIM=devices=2,seed=$seed ./test || { echo "failed: seed=$seed"; exit 1; }
 *     done
 * @endcode
 * with SYNCEDMEM_LOG=warning in the environment, which names a setting that is not understood:
 * without the log it is ignored in silence.
 *
 * @par
 * Kernels then run in whichever thread waits, or asks whether something has ended. They must
 * not wait for anything that the program does.
 *
 * The rules of syncedmem.h hold here too.
 */
#ifndef SYNCEDMEM_SIM_H
#define SYNCEDMEM_SIM_H

#include "../syncedmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Configures the simulator by a specification as above.
 *
 * Settings that are left out have their defaults; the environment variable is
 * then not read. INVALID_ARGUMENT, naming the setting, for a malformed
 * specification; WRONG_STATE once the simulator is open: by a device's name,
 * the list of devices, or syncedmem_backend_reason().
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_configure(const char *specification);

/**
 * A kernel: runs in a thread of its stream; with a seed, in one of the program's that waits.
 *
 * `arguments` are what syncedmem_sim_launch() was given, `addresses` the device addresses made
 * usable: a kernel may read and write them. It may not call this library.
 */
typedef void (*syncedmem_sim_kernel_fn)(void *arguments, void *const *addresses, size_t count);

/**
 * Puts a kernel on a stream of a simulated device, and returns. The default stream is had from
 * syncedmem_stream_default().
 *
 *     const void *addresses[] = {input, output};
 *     syncedmem_sim_launch(stream, kernel, &arguments, sizeof arguments, addresses, 2);
 *
 * `arguments` of `arguments_size` bytes are copied, so they may go after this returns; with
 * size 0 the pointer itself is passed on. Each of the `count` addresses must lie inside a live
 * block of the stream's device (any offset is fine) or be NULL, which stays NULL; else
 * WRONG_MEMORY.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_launch(syncedmem_stream *stream,
                                                      syncedmem_sim_kernel_fn kernel,
                                                      const void *arguments, size_t arguments_size,
                                                      const void *const *addresses, size_t count);

/**
 * Allocates memory on a simulated device, as a program does that has memory of its own
 * and hands it to syncedmem_set_gpu_data(). Owned by the caller: syncedmem_sim_free().
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_alloc(syncedmem_place *place, size_t size,
                                                     void **out_pointer);

/**
 * Frees what syncedmem_sim_alloc() returned, after the work that was put on the device's
 * default stream. NULL is fine. Another address is INVALID_ARGUMENT.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_free(syncedmem_place *place, void *pointer);

/** What can be made to fail, for syncedmem_sim_fail(). Fixed numbers. */
enum {
    /** An allocation of device memory: OUT_OF_DEVICE_MEMORY. */
    SYNCEDMEM_SIM_FAIL_ALLOC = 1,
    /** A copy or fill, refused when it is asked for: DEVICE_ERROR. */
    SYNCEDMEM_SIM_FAIL_COPY = 2,
    /** A copy or fill, accepted and failed when it runs, with part of its bytes written:
     * DEVICE_ERROR. */
    SYNCEDMEM_SIM_FAIL_COPY_LATE = 3,
    /** A registration of host memory, for the policy PINNED. */
    SYNCEDMEM_SIM_FAIL_PIN = 4,
    /** The device itself, by an allocation, copy, fill or kernel: DEVICE_LOST, see
     * syncedmem_sim_lose(). */
    SYNCEDMEM_SIM_FAIL_DEVICE = 5
};

/**
 * Makes the n-th next operation of that kind on a device fail, once. 1 is the very next; 0
 * takes the failure back.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_fail(syncedmem_place *place, int32_t what,
                                                    uint64_t nth);

/**
 * Loses the device, as a driver does after a fault or when a GPU falls off the bus.
 *
 * What is queued on its streams never runs; what runs finishes. From then on every call that
 * needs the device is DEVICE_LOST, and what it held alone is lost: see DATA_LOST. Blocks of
 * syncedmem_sim_alloc() are gone with it; freeing them is fine. Losing a lost device does
 * nothing.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_lose(syncedmem_place *place);

/**
 * Brings a lost device back, with empty memory. Streams made before the loss stay lost.
 * WRONG_STATE when it is not lost.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_restore(syncedmem_place *place);

/**
 * How many copies, fills and kernels of the device touched memory that had been freed after
 * they were put on their stream. They do not run, and fail as WRONG_MEMORY. Looked for with a
 * seed only; else 0.
 */
SYNCEDMEM_API syncedmem_status_t syncedmem_sim_faults(syncedmem_place *place, uint64_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
