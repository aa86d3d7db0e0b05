/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls with nothing to do through the C++ classes, and the same through the C API. */
#ifndef SYNCEDMEM_BENCH_CLASS_CALLS_H
#define SYNCEDMEM_BENCH_CLASS_CALLS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum class_side { CLASS_OF_C_API, CLASS_BUFFER, CLASS_BUFFER_CODE, CLASS_CAFFE, CLASS_SIDES };

enum class_accessor {
    CLASS_CPU_DATA,
    CLASS_MUTABLE_CPU_DATA,
    CLASS_GPU_DATA,
    CLASS_MUTABLE_GPU_DATA,
    CLASS_ACCESSORS
};

struct class_objects;

/* Objects of so many bytes for all sides, with sim:0 as their home; NULL when that fails. */
struct class_objects *class_objects_create(size_t size);
void class_objects_release(struct class_objects *objects);

/* A function for struct side of measure.h that makes class_calls calls on the objects. */
typedef void (*class_calls_fn)(void *objects);
class_calls_fn class_calls_of(enum class_side side, enum class_accessor accessor);

enum { class_calls = 10000 };

#ifdef __cplusplus
}
#endif

#endif
