/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lease of a buffer that is valid on the host, or on a device, against acquire and release of
 * StarPU. It has no simulated devices, so that its side is the one in host memory always.
 */
#include "suites.h"
#include "syncedmem.h"

enum { AT_DEVICE = 8 }; /* beside the mode */

static enum outcome compare(const struct benchmark *benchmark);

#ifdef BENCH_STARPU

#include <ftw.h>
#include <starpu.h>
#include <stdlib.h>

#include "leases.h"

enum { LEASES = 1000, SIZE = 4096 };

/* ---- StarPU: one worker, no devices, no files left behind ---- */

static void set_environment(const char *folder)
{
    static const char *const settings[][2] = {
        {"STARPU_NCPU", "1"},           {"STARPU_NCUDA", "0"},     {"STARPU_NOPENCL", "0"},
        {"STARPU_SILENT", "1"},         {"STARPU_CALIBRATE", "0"}, {"STARPU_BUS_CALIBRATE", "0"},
        {"STARPU_WORKERS_NOBIND", "1"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 1);
    setenv("HOME", folder, 1);
    setenv("STARPU_HOME", folder, 1);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

/* Its folder is read at the start only, and so is gone even if the benchmark fails. */
static void start_starpu(void)
{
    char folder[] = "/tmp/syncedmem-bench-XXXXXX";
    BENCH_REQUIRE(mkdtemp(folder) != NULL);
    set_environment(folder);
    const int failure = starpu_init(NULL);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    BENCH_REQUIRE(failure == 0);
    starpu_pause(); /* the worker looks for tasks all the time */
}

static void end_starpu(void)
{
    starpu_resume();
    starpu_shutdown();
}

/* ---- The two sides ---- */

struct theirs {
    starpu_data_handle_t handle;
    enum starpu_data_access_mode mode;
};

struct ours {
    syncedmem_buffer *buffer;
    syncedmem_mode_t mode;
    syncedmem_place *place;
    syncedmem_stream *stream; /* NULL on the host */
};

static void lease_ours(void *context)
{
    const struct ours *ours = context;
    for (int i = 0; i < LEASES; i++) {
        syncedmem_token_t token;
        void *pointer;
        BENCH_REQUIRE(syncedmem_begin(ours->buffer, ours->place, ours->mode, 0, SIZE, ours->stream,
                                      &pointer, NULL, &token) == SYNCEDMEM_OK);
        bench_use(pointer);
        bench_end(ours->buffer, token);
    }
}

static void acquire_theirs(void *context)
{
    const struct theirs *theirs = context;
    for (int i = 0; i < LEASES; i++) {
        BENCH_REQUIRE(starpu_data_acquire(theirs->handle, theirs->mode) == 0);
        bench_use(starpu_data_get_local_ptr(theirs->handle));
        starpu_data_release(theirs->handle);
    }
}

static struct ours make_ours(syncedmem_mode_t mode, bool at_device)
{
    struct ours ours = {.mode = mode, .place = at_device ? bench_device() : syncedmem_host()};
    if (at_device)
        BENCH_REQUIRE(syncedmem_stream_create(ours.place, &ours.stream) == SYNCEDMEM_OK);
    BENCH_REQUIRE(syncedmem_create(SIZE, &ours.buffer) == SYNCEDMEM_OK);
    bench_lease(ours.buffer, ours.place, SYNCEDMEM_WRITE, 0, SIZE);
    return ours;
}

static starpu_data_handle_t make_theirs(char *bytes)
{
    starpu_data_handle_t handle;
    starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)bytes, SIZE);
    return handle;
}

/* ---- The comparison ---- */

static enum starpu_data_access_mode their_mode(syncedmem_mode_t mode)
{
    return mode == SYNCEDMEM_READ ? STARPU_R : mode == SYNCEDMEM_WRITE ? STARPU_W : STARPU_RW;
}

static void measure(syncedmem_mode_t mode, bool at_device, double ns[2])
{
    static char bytes[SIZE];
    struct ours ours = make_ours(mode, at_device);
    struct theirs theirs = {make_theirs(bytes), their_mode(mode)};
    const struct side sides[] = {
        {.run = lease_ours, .context = &ours},
        {.run = acquire_theirs, .context = &theirs},
    };
    bench_measure(sides, 2, ns);
    starpu_data_unregister(theirs.handle);
    syncedmem_release(ours.buffer);
    syncedmem_stream_release(ours.stream);
}

static enum outcome compare(const struct benchmark *benchmark)
{
    double ns[2];
    start_starpu();
    measure(benchmark->variant & ~AT_DEVICE, (benchmark->variant & AT_DEVICE) != 0, ns);
    end_starpu();
    return table_row(&(struct row){
        .name = benchmark->name,
        .ours = ns[0] / LEASES,
        .baseline = ns[1] / LEASES,
        .most_ratio = benchmark->goal,
    });
}

#else

static enum outcome compare(const struct benchmark *benchmark)
{
    return table_skip(benchmark->name, "StarPU (libstarpu-dev) not found");
}

#endif

static const struct benchmark benchmarks[] = {
    {"lease, READ : StarPU acquire, release", compare, .goal = 0.1, .variant = SYNCEDMEM_READ},
    {"lease, WRITE : StarPU acquire, release", compare, .goal = 0.1, .variant = SYNCEDMEM_WRITE},
    {"lease, READ_WRITE : StarPU acquire, release", compare, .goal = 0.1,
     .variant = SYNCEDMEM_READ_WRITE},
    {"lease at a device, READ : StarPU acquire, release", compare,
     .variant = AT_DEVICE | SYNCEDMEM_READ},
    {"lease at a device, READ_WRITE : StarPU acquire, release", compare,
     .variant = AT_DEVICE | SYNCEDMEM_READ_WRITE},
};

const struct suite bench_starpu = {
    .print_head = table_head,
    .benchmarks = benchmarks,
    .count = sizeof benchmarks / sizeof *benchmarks,
};
