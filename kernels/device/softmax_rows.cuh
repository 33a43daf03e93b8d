// Rows of a softmax that some lanes take step by step, twice: for the state, and again for the results.
#pragma once

#include "scan_rows.cuh"
#include "softmax.cuh"

namespace {

// The state of what this one of `lanes` lanes has of a row, `phases` packs of it at a step.
template <int lanes, int phases> __device__ __forceinline__ softmax::State state_of(const Row &row, int lane) {
  constexpr int chunk = lanes * items;
  softmax::State state = softmax::nothing();
  for (long long first = row.origin; first < row.limit; first += phases * chunk) {
    Pack next[phases];
    float value[phases][items];
    ask<chunk>(next, row, first, lane * items, lane % 32);
    take<chunk>(next, value, row, first, lane % 32);
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      const long long at = first + p * chunk + lane * items;
      const int low = Pack::first_inside(at), high = Pack::end_inside(at, row.limit);
#pragma unroll
      for (int i = 0; i < items; ++i)
        if (i < low || i >= high) value[p][i] = softmax::lowest();
      softmax::take(state, value[p]);
    }
  }
  return state;
}

template <int lanes, int phases>
__device__ __forceinline__ void write(const Row &row, softmax::State state, int lane) {
  constexpr int chunk = lanes * items;
  const float base = softmax::base_of(state.most), share = 1.0f / state.sum;
  for (long long first = row.origin; first < row.limit; first += phases * chunk) {
    Pack next[phases];
    float value[phases][items];
    ask<chunk>(next, row, first, lane * items, lane % 32);
    take<chunk>(next, value, row, first, lane % 32);
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      const long long position = first + p * chunk;
#pragma unroll
      for (int i = 0; i < items; ++i) value[p][i] = softmax::relative(value[p][i], base) * share;
      Pack out;
      out.narrow_from(value[p]);
      put(out, row, position + lane * items, inside<chunk>(row, position), lane % 32);
    }
  }
}

// Every group of `lanes` threads takes rows in turn; more than a warp are all of the CTA's.
template <int lanes, int phases>
__device__ __forceinline__ void rows_by(const Storage *x, Storage *y, long long rows, long long width,
                                        long long x_pitch, long long y_pitch) {
  constexpr int warps = lanes / 32;
  __shared__ softmax::State totals[2][warps];
  constexpr int rows_at_once = threads / lanes;
  const int lane = threadIdx.x % lanes;
  int turn = 0;
  for (long long base = blockIdx.x * static_cast<long long>(rows_at_once); base < rows;
       base += gridDim.x * static_cast<long long>(rows_at_once)) {
    const long long number = base + threadIdx.x / lanes;
    const Row row = row_at(x + number * x_pitch, y + number * y_pitch, number < rows ? width : 0);
    softmax::State state = softmax::across<32>(state_of<lanes, phases>(row, lane));
    if constexpr (warps > 1) {
      if (threadIdx.x % 32 == 0) totals[turn][threadIdx.x / 32] = state;
      __syncthreads();
      state = softmax::across<warps>(totals[turn][threadIdx.x % warps]);
      turn ^= 1;
    }
    write<lanes, phases>(row, state, lane);
  }
}

} // namespace
