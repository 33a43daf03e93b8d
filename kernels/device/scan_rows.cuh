// What the kernels of a row scan share: reading and writing a row by a group of threads, and the sums of one step.
//
// A row is cut at 16-byte boundaries of x, so that all of it but its ends moves in whole vectors, whatever its base. A
// thread reads each element before it writes that element, and nobody else touches it. So all of this is right in
// place; for that, x is read through ordinary loads (no __restrict__).
#pragma once

#include "rowio.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int items = ROWSMITH_ITEMS;
using Storage = ROWSMITH_STORAGE;
using Pack = rowio::Pack<Storage, items>;

// One row: where it is, how many of its elements there are to take, where the first vector starts (0 or before) and
// whether x and y share vector boundaries.
struct Row {
  const Storage *source;
  Storage *target;
  long long limit;
  int origin;
  bool wide_store;
};

__device__ __forceinline__ Row row_at(const Storage *source, Storage *target, long long limit) {
  const int offset = reinterpret_cast<unsigned long long>(source) % 16 / sizeof(Storage);
  const int target_offset = reinterpret_cast<unsigned long long>(target) % 16 / sizeof(Storage);
  return Row{source, target, limit, -offset, target_offset == offset};
}

// Whether all of the `chunk` elements from `position` on lie inside the row, so that whole warps can move them.
template <int chunk> __device__ __forceinline__ bool inside(const Row &row, long long position) {
  return position >= 0 && position + chunk <= row.limit;
}

// Moves a pack whose first element is at `at`; `full` says that the whole group's chunk lies inside the row.
__device__ __forceinline__ void fetch(Pack &pack, const Row &row, long long at, bool full, int lane) {
  if (full) pack.load_warp(row.source + at, lane);
  else if (at >= row.limit) pack.clear();
  else if (at >= 0 && at + items <= row.limit) pack.load_each(row.source + at);
  else pack.load_masked(row.source, at, row.limit);
}

__device__ __forceinline__ void put(Pack &pack, const Row &row, long long at, bool full, int lane) {
  if (full && row.wide_store) pack.store_warp(row.target + at, lane);
  else if (at >= row.limit) return;
  else if (row.wide_store && at >= 0 && at + items <= row.limit) pack.store_each(row.target + at);
  else pack.store_masked(row.target, at, row.limit);
}

// Asks for the next `phases` chunks of a group, the first of which starts at `first`.
template <int chunk, int phases>
__device__ __forceinline__ void ask(Pack (&next)[phases], const Row &row, long long first, int mine, int lane) {
#pragma unroll
  for (int p = 0; p < phases; ++p) {
    const long long position = first + p * chunk;
    fetch(next[p], row, position + mine, inside<chunk>(row, position), lane);
  }
}

// Takes what was asked for, as FP32.
template <int chunk, int phases>
__device__ __forceinline__ void take(Pack (&next)[phases], float (&value)[phases][items], const Row &row,
                                     long long first, int lane) {
#pragma unroll
  for (int p = 0; p < phases; ++p) {
    if (inside<chunk>(row, first + p * chunk)) next[p].settle(lane);
    next[p].widen_to(value[p]);
  }
}

using WarpTotals = float[2][threads / 32];

// Turns the elements of `phases` chunks into running sums within each thread and returns in `before` what lies before
// them: the chunks and warps of the group that come earlier, and the carry, to which the chunks are then added.
// `totals` is where the warps of a group, of which `group_warp` is the first, leave theirs.
template <int warps, int phases>
__device__ __forceinline__ void sum(float (&value)[phases][items], float (&before)[phases], float &carry,
                                    WarpTotals &totals, int lane, int warp, int group_warp) {
  float inclusive[phases];
#pragma unroll
  for (int p = 0; p < phases; ++p) {
#pragma unroll
    for (int i = 1; i < items; ++i) value[p][i] += value[p][i - 1];
    inclusive[p] = value[p][items - 1];
  }
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      const float below = __shfl_up_sync(0xffffffffu, inclusive[p], distance);
      if (lane >= distance) inclusive[p] += below;
    }
  }
#pragma unroll
  for (int p = 0; p < phases; ++p) {
    before[p] = __shfl_up_sync(0xffffffffu, inclusive[p], 1);
    if (lane == 0) before[p] = 0.0f;
  }
  if constexpr (warps == 1) {
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      before[p] += carry;
      carry += __shfl_sync(0xffffffffu, inclusive[p], 31);
    }
  } else {
#pragma unroll
    for (int p = 0; p < phases; ++p)
      if (lane == 31) totals[p][group_warp + warp] = inclusive[p];
    __syncthreads();
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      float earlier = 0.0f, total = 0.0f;
#pragma unroll
      for (int w = 0; w < warps; ++w) {
        if (w == warp) earlier = total;
        total += totals[p][group_warp + w];
      }
      before[p] += earlier + carry;
      carry += total;
    }
  }
}

// Adds what lies before and writes `phases` chunks of a group.
template <int chunk, int phases>
__device__ __forceinline__ void give(float (&value)[phases][items], const float (&before)[phases], const Row &row,
                                     long long first, int mine, int lane) {
#pragma unroll
  for (int p = 0; p < phases; ++p) {
#pragma unroll
    for (int i = 0; i < items; ++i) value[p][i] += before[p];
    Pack out;
    out.narrow_from(value[p]);
    const long long position = first + p * chunk;
    put(out, row, position + mine, inside<chunk>(row, position), lane);
  }
}

} // namespace
