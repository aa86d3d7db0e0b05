/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs of streams and events, and the order in which a device ran them.
 *
 * A program is made from a number alone. Each step is a kernel that notes its turn, or a copy of
 * how many kernels have run so far. The steps that must come before a step are known: those of
 * its stream, and what an event brings with it.
 */
#ifndef SYNCEDMEM_TESTS_SIMULATOR_PROGRAMS_H
#define SYNCEDMEM_TESTS_SIMULATOR_PROGRAMS_H

#include "support.h"

enum { PROGRAM_STREAMS = 5, PROGRAM_STEPS = 60, PROGRAM_EVENTS = 8 };

struct program {
    struct engine_device *devices[2];
    struct engine_stream *streams[PROGRAM_STREAMS];
    uint64_t done[PROGRAM_STREAMS]; /* the steps on a stream and before them, as bits */
    struct engine_event *events[PROGRAM_EVENTS];
    uint64_t brings[PROGRAM_EVENTS];
    uint64_t before[PROGRAM_STEPS]; /* the steps that come before each, as bits */
    bool is_kernel[PROGRAM_STEPS];
    int turn[PROGRAM_STEPS]; /* kernel: from 1; copy: so many kernels came before it */
    int turns;
    uint32_t random;
};

struct program_note {
    struct program *program;
    int step;
};

static inline void kernel_note_turn(void *arguments, void *const *addresses, size_t count)
{
    const struct program_note *note = arguments;
    (void)addresses;
    (void)count;
    note->program->turn[note->step] = ++note->program->turns;
}

static inline void program_kernel(struct program *program, int step, int where)
{
    struct program_note note = {program, step};
    cr_assert_eq(syncedmem_engine_launch(program->streams[where], kernel_note_turn, &note,
                                         sizeof note, NULL, 0, NULL),
                 ENGINE_OK);
}

static inline void program_copy(struct program *program, int step, int where)
{
    struct engine_region region = {.length = sizeof(int)};
    struct engine_copy copy = {
        .to = &program->turn[step], .from = &program->turns, .regions = &region, .count = 1};
    cr_assert_eq(syncedmem_engine_copy(program->streams[where], &copy, NULL), ENGINE_OK);
}

static inline int program_draw(struct program *program, int below)
{
    return (int)(next_random(&program->random) % (uint32_t)below);
}

static inline void program_record(struct program *program, int where)
{
    int which = program_draw(program, PROGRAM_EVENTS);
    if (program->events[which] != NULL)
        syncedmem_engine_event_release(program->events[which]);
    cr_assert_eq(syncedmem_engine_record(program->streams[where], &program->events[which]),
                 ENGINE_OK);
    program->brings[which] = program->done[where];
}

static inline void program_await(struct program *program, int where)
{
    int which = program_draw(program, PROGRAM_EVENTS);
    if (program->events[which] == NULL)
        return;
    cr_assert_eq(
        syncedmem_engine_stream_wait_event(program->streams[where], program->events[which]),
        ENGINE_OK);
    program->done[where] |= program->brings[which];
}

static inline void program_step(struct program *program, int step)
{
    int where = program_draw(program, PROGRAM_STREAMS);
    program->is_kernel[step] = program_draw(program, 3) != 0;
    if (program->is_kernel[step])
        program_kernel(program, step, where);
    else
        program_copy(program, step, where);
    program->before[step] = program->done[where];
    program->done[where] |= (uint64_t)1 << step;
    if (program_draw(program, 2) == 0)
        program_record(program, program_draw(program, PROGRAM_STREAMS));
    if (program_draw(program, 2) == 0)
        program_await(program, program_draw(program, PROGRAM_STREAMS));
}

/* Everything is waited for, stream after stream, and the devices are gone afterwards. */
static inline void program_run(struct program *program, uint32_t number, uint64_t seed)
{
    struct engine_settings settings = {.memory = MIB, .seed = seed};
    *program = (struct program){.random = number * 2654435761u + 1};
    for (int i = 0; i < 2; i++)
        program->devices[i] = device_from(&settings);
    for (int i = 0; i < PROGRAM_STREAMS; i++)
        program->streams[i] = stream_of(program->devices[i % 2]);
    for (int i = 0; i < PROGRAM_STEPS; i++)
        program_step(program, i);
    for (int i = 0; i < PROGRAM_STREAMS; i++)
        cr_assert_eq(syncedmem_engine_stream_synchronize(program->streams[i]), ENGINE_OK);
    for (int i = 0; i < PROGRAM_EVENTS; i++)
        if (program->events[i] != NULL)
            syncedmem_engine_event_release(program->events[i]);
    for (int i = 0; i < 2; i++)
        syncedmem_engine_device_destroy(program->devices[i]);
}

/* Whether two steps, the first of which comes before the second, ran so. */
static inline bool program_in_order(const struct program *program, int first, int second)
{
    int one = program->turn[first], other = program->turn[second];
    if (program->is_kernel[first] && program->is_kernel[second])
        return one < other;
    return program->is_kernel[second] ? one < other : one <= other;
}

static inline int program_faults(const struct program *program)
{
    int faults = 0;
    for (int second = 0; second < PROGRAM_STEPS; second++)
        for (int first = 0; first < second; first++)
            if (program->before[second] >> first & 1 && !program_in_order(program, first, second))
                faults++;
    return faults;
}

#endif
