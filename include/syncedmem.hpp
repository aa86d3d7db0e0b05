/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file syncedmem.hpp
 * @brief The library in C++11 and later: buffers, places, streams, leases as objects.
 *
 *     #include <syncedmem.hpp>
 *
 *     syncedmem::Buffer buffer(4096);                       // allocates nothing
 *     for (float &x : buffer.mutable_cpu_span<float>())     // zero bytes, newest on the host
 *         x = 1;
 *     use(buffer.gpu_data<float>());                        // one transfer, same on both
 *     buffer.gpu_data();                                    // nothing to do
 *     {
 *         auto row = buffer.write(syncedmem::host(), syncedmem::Range(0, 64));
 *         row.span<float>()[0] = 2;
 *     }                                                     // the lease ends
 *
 * Header only, over syncedmem.h, with nothing beyond the standard library. Everything said in
 * that header holds here; these say what C++ adds:
 *
 * | header             | what is in it                                                     |
 * |--------------------|-------------------------------------------------------------------|
 * | cpp/buffer.hpp     | Buffer, copy(), policies, figures                                 |
 * | cpp/lease.hpp      | ReadLease, WriteLease                                             |
 * | cpp/place.hpp      | Place, host(), device_find() and the like, Stream, StreamRef      |
 * | cpp/span.hpp       | Span, Range                                                       |
 * | cpp/error.hpp      | error, errc, category()                                           |
 * | caffe.hpp          | SyncedMemory, as Caffe had it; not included by this header        |
 *
 * Rules that hold for all of them:
 *
 * - Errors, two ways, as in std::filesystem. What can fail throws syncedmem::error, a
 *   std::system_error whose what() is the library's own line about the failure. Or it is given a
 *   std::error_code as its last argument: then nothing is thrown, the code says what happened
 *   and is cleared on success, and what is returned after a failure is empty, zero or NULL;
 *   syncedmem_last_error() has the library's line in both cases.
 *   That form takes every argument; `{}` stands for what the other form leaves out:
 *   `buffer.read(host(), {}, {}, ec)`.
 * - Without exceptions (-fno-exceptions) the first form is not declared, and using it is an error
 *   of the compiler: nothing aborts behind a program's back. Parts of one program may be
 *   built either way. -fno-rtti is fine.
 * - Ownership: Buffer, Stream and leases are moved, not copied, and give back what they hold in
 *   their destructor. A moved-from object may be assigned to and destroyed.
 * - Threads: as in C for the bytes and the library. One and the same object (not the buffer
 *   it refers to) may not be assigned to while another thread uses it, as ever in C++.
 * - The C API is there too: get() is the handle, take() and release() pass a reference in and out.
 */
#ifndef SYNCEDMEM_HPP
#define SYNCEDMEM_HPP

#include "syncedmem/cpp/buffer.hpp"

#endif
