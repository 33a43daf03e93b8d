// Groups of lanes that take a row each, and the last combination of what warps know of the rows of a CTA.
#pragma once

#include "reduce.cuh"

namespace reduce {

constexpr int threads = ROWSMITH_THREADS;
constexpr int warps = threads / 32;

struct Rows {
  const Storage *x;
  Storage *y;
  long long rows, width, x_pitch, y_pitch;

  template <bool aligned> __device__ __forceinline__ Row at(long long row) const {
    return cut<aligned>(x + row * x_pitch, width);
  }
  __device__ __forceinline__ void put(long long row, State state) const {
    reduce::put(y + row * y_pitch, state, width);
  }
};

// Combines the states that `of` warps left of each of `rows_at_once` rows, and writes the rows from `base` on. Warp 0
// does it for all rows: there are no more states than lanes.
template <int of, int rows_at_once>
__device__ __forceinline__ void finish(const Rows &all, const State *totals, long long base) {
  constexpr int states = of * rows_at_once;
  static_assert(states <= 32, "one warp finishes all rows of a CTA");
  if (threadIdx.x >= 32) return;
  const State state = across<of>(totals[threadIdx.x % states]);
  const long long row = base + threadIdx.x / of;
  if (threadIdx.x < states && threadIdx.x % of == 0 && row < all.rows) all.put(row, state);
}

// A CTA takes as many rows from `base` on as it has groups of `lanes`.
template <int lanes, int unroll, bool aligned>
__device__ __forceinline__ void at_once(const Rows &all, State *totals, long long base) {
  constexpr int rows_at_once = threads / lanes;
  constexpr int in_warp = lanes < 32 ? lanes : 32;
  const int lane = threadIdx.x % lanes;
  const long long row = base + threadIdx.x / lanes;
  State state = nothing();
  if (row < all.rows) gather<lanes, unroll, aligned>(state, all.at<aligned>(row), lane);
  state = across<in_warp>(state);
  if constexpr (lanes <= 32) {
    if (lane == 0 && row < all.rows) all.put(row, state);
  } else {
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = state;
    __syncthreads();
    finish<lanes / 32, rows_at_once>(all, totals, base);
  }
}

} // namespace reduce
