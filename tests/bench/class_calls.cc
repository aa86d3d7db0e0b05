/* SPDX-License-Identifier: BSD-2-Clause */
#include "class_calls.h"

#include <cstdlib>

#include <syncedmem.hpp>
#include <syncedmem/caffe.hpp>

extern "C" {
#include "measure.h"
}

struct class_objects {
    explicit class_objects(std::size_t size) : buffer(size), memory(size)
    {
        const syncedmem::Place device = syncedmem::device_find("sim:0");
        syncedmem::device_set_current(device);
        buffer.set_home(device);
    }

    syncedmem::Buffer buffer;
    syncedmem::SyncedMemory memory;
};

namespace
{

/* As a C program looks for a failure: by a test after every call. */
void require(syncedmem_status_t status)
{
    if (status != SYNCEDMEM_OK)
        std::abort();
}

/* Several calls a turn: where the code of one happens to lie makes a difference of a cycle, which
 * is a fifth of a call. */
template <class Call> void repeat(void *context, Call call)
{
    class_objects &objects = *static_cast<class_objects *>(context);
    for (int i = 0; i < class_calls; i += 8) {
        bench_use(call(objects));
        bench_use(call(objects));
        bench_use(call(objects));
        bench_use(call(objects));
        bench_use(call(objects));
        bench_use(call(objects));
        bench_use(call(objects));
        bench_use(call(objects));
    }
}

/* One accessor through each side, in the order of enum class_side. */
#define CALLS_OF(type, accessor)                                                                   \
    {                                                                                              \
        [](void *context) {                                                                        \
            syncedmem_buffer *const handle = static_cast<class_objects *>(context)->buffer.get();  \
            repeat(context, [handle](class_objects &) {                                            \
                type pointer;                                                                      \
                require(syncedmem_##accessor(handle, &pointer));                                   \
                return pointer;                                                                    \
            });                                                                                    \
        },                                                                                         \
            [](void *context) {                                                                    \
                repeat(context, [](class_objects &objects) { return objects.buffer.accessor(); }); \
            },                                                                                     \
            [](void *context) {                                                                    \
                std::error_code ec;                                                                \
                repeat(context, [&](class_objects &objects) {                                      \
                    type const pointer = objects.buffer.accessor(ec);                              \
                    if (ec)                                                                        \
                        std::abort();                                                              \
                    return pointer;                                                                \
                });                                                                                \
            },                                                                                     \
            [](void *context) {                                                                    \
                repeat(context, [](class_objects &objects) { return objects.memory.accessor(); }); \
            },                                                                                     \
    }

/* In the order of enum class_accessor. */
const class_calls_fn calls[CLASS_ACCESSORS][CLASS_SIDES] = {
    CALLS_OF(const void *, cpu_data),
    CALLS_OF(void *, mutable_cpu_data),
    CALLS_OF(const void *, gpu_data),
    CALLS_OF(void *, mutable_gpu_data),
};

} // namespace

class_objects *class_objects_create(std::size_t size)
{
    try {
        return new class_objects(size);
    } catch (const std::exception &) {
        return nullptr;
    }
}

void class_objects_release(class_objects *objects)
{
    delete objects;
}

class_calls_fn class_calls_of(class_side side, class_accessor accessor)
{
    return calls[accessor][side];
}
