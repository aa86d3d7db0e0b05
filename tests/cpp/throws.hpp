/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYNCEDMEM_TESTS_THROWS_HPP
#define SYNCEDMEM_TESTS_THROWS_HPP

#include <syncedmem.hpp>

/* The call throws that code, with a line. */
template <class Call> bool throws(syncedmem::errc code, Call call)
{
    try {
        call();
    } catch (const syncedmem::error &error) {
        return error.code() == code && error.what()[0] != '\0';
    }
    return false;
}

#endif
