// Channels of a thread's positions that are read twice: for their sum, and again to be divided.
//
// A thread reads an element the second time before it writes it, and nobody else touches it, so that x may be y.
#pragma once

#include "channel.cuh"

namespace channel {

// Every `step`-th element from a place on, `count` of them; `at_once` are asked for before the first is used.
struct Channels {
  const Storage *source;
  Storage *target;
  long long step, count;

  template <int at_once> __device__ __forceinline__ void sum(float (&into)[positions]) const {
    const Storage *from = source;
    for (long long left = count; left > 0;) {
      const int taken = left >= at_once ? at_once : 1;
      if (taken == at_once) add<at_once>(into, from);
      else add<1>(into, from);
      from += taken * step;
      left -= taken;
    }
  }

  template <int at_once> __device__ __forceinline__ void divide(const Divisors &by) const {
    const Storage *from = source;
    Storage *to = target;
    for (long long left = count; left > 0;) {
      const int taken = left >= at_once ? at_once : 1;
      if (taken == at_once) write<at_once>(by, from, to);
      else write<1>(by, from, to);
      from += taken * step;
      to += taken * step;
      left -= taken;
    }
  }

private:
  template <int n> __device__ __forceinline__ void add(float (&into)[positions], const Storage *from) const {
    Adjacent held[n];
#pragma unroll
    for (int c = 0; c < n; ++c) held[c].load(from + c * step);
#pragma unroll
    for (int c = 0; c < n; ++c) held[c].enter(into);
  }

  template <int n> __device__ __forceinline__ void write(const Divisors &by, const Storage *from, Storage *to) const {
    Adjacent held[n];
#pragma unroll
    for (int c = 0; c < n; ++c) held[c].load(from + c * step);
#pragma unroll
    for (int c = 0; c < n; ++c) {
      held[c].divide(by);
      held[c].store(to + c * step);
    }
  }
};

} // namespace channel
