/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program in Caffe's style, as it was written against Caffe's class: a blob that shares its
 * memories, and says where to compute by looking at the head.
 */
#ifndef TESTS_CAFFE_BLOB_HPP
#define TESTS_CAFFE_BLOB_HPP

#include <memory>

#include "caffe/common.hpp"
#include "caffe/syncedmem.hpp"

namespace caffe
{

template <typename Dtype> class Blob
{
  public:
    Blob() : data_(), diff_(), count_(0), capacity_(0)
    {
    }

    explicit Blob(int count) : Blob()
    {
        Reshape(count);
    }

    void Reshape(int count)
    {
        count_ = count;
        if (count_ > capacity_) {
            capacity_ = count_;
            data_.reset(new SyncedMemory(bytes()));
            diff_.reset(new SyncedMemory(bytes()));
        }
    }

    int count() const
    {
        return count_;
    }

    const Dtype *cpu_data() const
    {
        return static_cast<const Dtype *>(data_->cpu_data());
    }

    const Dtype *gpu_data() const
    {
        return static_cast<const Dtype *>(data_->gpu_data());
    }

    Dtype *mutable_cpu_data()
    {
        return static_cast<Dtype *>(data_->mutable_cpu_data());
    }

    Dtype *mutable_gpu_data()
    {
        return static_cast<Dtype *>(data_->mutable_gpu_data());
    }

    Dtype *mutable_cpu_diff()
    {
        return static_cast<Dtype *>(diff_->mutable_cpu_data());
    }

    const Dtype *cpu_diff() const
    {
        return static_cast<const Dtype *>(diff_->cpu_data());
    }

    const Dtype *gpu_diff() const
    {
        return static_cast<const Dtype *>(diff_->gpu_data());
    }

    /* The caller's memory, which must have count() elements. */
    void set_cpu_data(Dtype *data)
    {
        if (data_->size() != bytes()) {
            data_.reset(new SyncedMemory(bytes()));
            diff_.reset(new SyncedMemory(bytes()));
        }
        data_->set_cpu_data(data);
    }

    const std::shared_ptr<SyncedMemory> &data() const
    {
        return data_;
    }

    void ShareData(const Blob &other)
    {
        data_ = other.data();
    }

    /* data -= diff, where the data is. */
    void Update();

  private:
    std::size_t bytes() const
    {
        return static_cast<std::size_t>(count_) * sizeof(Dtype);
    }

    std::shared_ptr<SyncedMemory> data_;
    std::shared_ptr<SyncedMemory> diff_;
    int count_;
    int capacity_;
};

void gpu_subtract(int n, const float *x, float *y);
void gpu_scale(int n, float factor, const float *x, float *y);

template <> inline void Blob<float>::Update()
{
    switch (data_->head()) {
    case SyncedMemory::HEAD_AT_CPU:
        for (int i = 0; i < count_; i++)
            mutable_cpu_data()[i] -= cpu_diff()[i];
        break;
    case SyncedMemory::HEAD_AT_GPU:
    case SyncedMemory::SYNCED:
        gpu_subtract(count_, gpu_diff(), mutable_gpu_data());
        break;
    case SyncedMemory::UNINITIALIZED:
        break;
    }
}

/* Multiplies by a number, on the side that the mode names. */
template <typename Dtype> class ScaleLayer
{
  public:
    explicit ScaleLayer(Dtype factor) : factor_(factor)
    {
    }

    void Forward(const Blob<Dtype> &bottom, Blob<Dtype> *top) const
    {
        top->Reshape(bottom.count());
        switch (Caffe::mode()) {
        case Caffe::CPU:
            for (int i = 0; i < bottom.count(); i++)
                top->mutable_cpu_data()[i] = factor_ * bottom.cpu_data()[i];
            break;
        case Caffe::GPU:
            gpu_scale(bottom.count(), factor_, bottom.gpu_data(), top->mutable_gpu_data());
            break;
        }
    }

  private:
    Dtype factor_;
};

} // namespace caffe

#endif
