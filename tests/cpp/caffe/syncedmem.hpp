/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program puts in the place of Caffe's header: the one of the port guide. */
#ifndef TESTS_CAFFE_SYNCEDMEM_HPP
#define TESTS_CAFFE_SYNCEDMEM_HPP

#include "caffe/common.hpp"

#define SYNCEDMEM_CAFFE_NAMESPACE caffe
#define SYNCEDMEM_CAFFE_PINNED (Caffe::mode() == Caffe::GPU)
#include <syncedmem/caffe.hpp>

#endif
