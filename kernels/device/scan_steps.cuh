// Rows taken step by step by groups of warps: the loop of scan_original.cu and of scan_any.cu.
#pragma once

#include "scan_rows.cuh"

namespace {

// `warps` warps take a row; `phases` chunks share one combination, whose latency is most of a step's time. All groups of
// a CTA take the steps of its longest row. Two areas for totals are used in turn: whoever writes one again has passed
// the barrier that follows everybody's reading of it.
template <int warps, int phases>
__device__ __forceinline__ void scan_rows(const Storage *x, Storage *y, long long rows, long long width,
                                          long long x_pitch, long long y_pitch, WarpTotals (&totals)[2]) {
  constexpr int group = warps * 32;
  constexpr int chunk = group * items;
  constexpr long long rows_at_once = threads / group;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 % warps;
  const int group_warp = threadIdx.x / 32 - warp;
  const int mine = threadIdx.x % group * items;
  // The same for every row of a CTA: 0, or one element short of a vector.
  const bool aligned = reinterpret_cast<unsigned long long>(x) % 16 == 0 && x_pitch * sizeof(Storage) % 16 == 0;
  const long long longest = width + (aligned ? 0 : 16 / sizeof(Storage) - 1);
  int turn = 0;

  for (long long base = blockIdx.x * rows_at_once; base < rows; base += gridDim.x * rows_at_once) {
    const long long number = base + threadIdx.x / group;
    const Row row = row_at(x + number * x_pitch, y + number * y_pitch, number < rows ? width : 0);
    long long first = row.origin;
    float carry = 0.0f;
    Pack next[phases];
    ask<chunk>(next, row, first, mine, lane);
    for (long long left = longest; left > 0; turn ^= 1) {
      float value[phases][items], before[phases];
      take<chunk>(next, value, row, first, lane);
      const long long taken = first;
      first += phases * chunk;
      left -= phases * chunk;
      if (left > 0) ask<chunk>(next, row, first, mine, lane);
      sum<warps>(value, before, carry, totals[turn], lane, warp, group_warp);
      give<chunk>(value, before, row, taken, mine, lane);
    }
  }
}

} // namespace
