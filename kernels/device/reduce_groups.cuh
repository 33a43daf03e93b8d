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
  // Whether what lies within a vector of `count` rows from `base` on is the tensor's: a row has an element or more.
  __device__ __forceinline__ bool surround(long long base, int count) const {
    return base >= per_vector && base + count + per_vector <= rows && width > 0;
  }
  __device__ __forceinline__ void put(long long row, State state) const {
    reduce::put(y + row * y_pitch, state, width);
  }
};

// What the warps of a CTA leave for the last combination.
template <int places> struct Totals {
  alignas(16) float value[places];
  long long nans[counts ? places : 1];

  // A warp's state, of which all of its lanes have the same.
  __device__ __forceinline__ void leave(int place, State state) {
    if (threadIdx.x % 32 != 0) return;
    value[place] = state.value;
    if constexpr (counts) nans[place] = state.nans;
  }

  __device__ __forceinline__ State of_warp(int place) const { return State{value[place], counts ? nans[place] : 0}; }

  // Combines `of` adjacent states in one thread, by halves as shuffles would: a few loads and additions instead of a
  // shuffle, which takes as long as five additions, for each halving.
  template <int of> __device__ __forceinline__ State of_row(int row) const {
    float part[of];
    State state = nothing();
#pragma unroll
    for (int w = 0; w < of; ++w) part[w] = value[row * of + w];
    if constexpr (counts)
#pragma unroll
      for (int w = 0; w < of; ++w) state.nans += nans[row * of + w];
    state.value = tree(part);
    return state;
  }
};

// Writes the rows from `base` on, of each of which `of` warps left what they know.
template <int of, int rows_at_once, int places>
__device__ __forceinline__ void finish(const Rows &all, const Totals<places> &totals, long long base) {
  __syncthreads();
  if constexpr (of > 8) {
    // So many would be put into local memory by one thread.
    static_assert(rows_at_once == 1, "the warps of more than one row are few");
    if (threadIdx.x >= 32) return;
    const State state = across<of>(totals.of_warp(threadIdx.x % of));
    if (threadIdx.x == 0) all.put(base, state);
  } else {
    const long long row = base + threadIdx.x;
    if (threadIdx.x < rows_at_once && row < all.rows) all.put(row, totals.template of_row<of>(threadIdx.x));
  }
}

// A CTA takes as many rows from `base` on as it has groups of `lanes`. Whether the tensor surrounds them is one answer for
// all of a CTA's, since a warp that did both would wait twice.
template <int lanes, int unroll, bool aligned, int places>
__device__ __forceinline__ void at_once(const Rows &all, Totals<places> &totals, long long base) {
  constexpr int rows_at_once = threads / lanes;
  constexpr int in_warp = lanes < 32 ? lanes : 32;
  const int lane = threadIdx.x % lanes;
  const long long row = base + threadIdx.x / lanes;
  State state = nothing();
  if (row < all.rows) {
    if constexpr (lanes <= 32 && !aligned) {
      const bool surrounded = all.surround(base, rows_at_once);
      cover<lanes, unroll>(state, all.x + row * all.x_pitch, static_cast<int>(all.width), surrounded, lane);
    } else {
      gather<lanes, unroll, aligned>(state, all.at<aligned>(row), lane);
    }
  }
  state = across<in_warp>(state);
  if constexpr (lanes <= 32) {
    if (lane == 0 && row < all.rows) all.put(row, state);
  } else {
    totals.leave(threadIdx.x / 32, state);
    finish<lanes / 32, rows_at_once>(all, totals, base);
  }
}

// A thread takes `rows_each` rows of at most `most` elements, every T-th from its own place on. Elements are asked for one
// by one, those of all rows before the first is used: a warp's rows are a few lines, and each line is fetched once.
template <int rows_each, int most>
__device__ __forceinline__ void alone(const Rows &all, long long base) {
  const int width = static_cast<int>(all.width);
  const long long row = base + threadIdx.x;
  const Storage *first = all.x + row * all.x_pitch;
  Storage element[rows_each][most];
#pragma unroll
  for (int r = 0; r < rows_each; ++r)
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (row + r * threads < all.rows && i < width) element[r][i] = first[r * threads * all.x_pitch + i];
#pragma unroll
  for (int r = 0; r < rows_each; ++r) {
    float value[most];
    int nans = 0;
#pragma unroll
    for (int i = 0; i < most; ++i) value[i] = enter(element[r][i], nans, i < width);
    const State state = combine(nothing(), State{tree(value), nans}); // of NaN alone, the identity is left
    if (row + r * threads < all.rows) all.put(row + r * threads, state);
  }
}

} // namespace reduce
