/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Caffe's header of that name: as much of it as the memory class needs. */
#ifndef TESTS_CAFFE_COMMON_HPP
#define TESTS_CAFFE_COMMON_HPP

namespace caffe
{

class Caffe
{
  public:
    enum Brew { CPU, GPU };

    /* A thread starts in CPU mode, whatever the others are in; so it was. */
    static Brew mode()
    {
        return current();
    }

    static void set_mode(Brew mode)
    {
        current() = mode;
    }

  private:
    static Brew &current()
    {
        static thread_local Brew mode = CPU;
        return mode;
    }
};

} // namespace caffe

#endif
