// Rows of a normalization that some lanes take step by step, twice: for the state, and again for the results.
#pragma once

#include "norm.cuh"
#include "scan_rows.cuh"

namespace {

using rownorm::Algebra;

// The state of what this one of `lanes` lanes has of a row, `phases` packs of it at a step.
template <int lanes, int phases> __device__ __forceinline__ Algebra::State state_of(const Row &row, int lane) {
  constexpr int chunk = lanes * items;
  const long long begin = row.origin + lane * items, mine = begin < 0 ? 0 : begin;
  Algebra::State state = Algebra::nothing(mine < row.limit ? rowio::widen(row.source[mine]) : 0.0f);
  for (long long first = row.origin; first < row.limit; first += phases * chunk) {
    Pack next[phases];
    float value[phases][items];
    ask<chunk>(next, row, first, lane * items, lane % 32);
    take<chunk>(next, value, row, first, lane % 32);
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      const long long at = first + p * chunk + lane * items;
      Algebra::take(state, value[p], Pack::first_inside(at), Pack::end_inside(at, row.limit));
    }
  }
  return state;
}

// Applies the weights to the results from position `at` on. A weight is read in vectors where it lies so: rows of x may
// begin off a boundary on which it does, and the other way round.
__device__ __forceinline__ void weigh(float (&value)[items], const rownorm::Given &given, long long at,
                                      long long limit) {
  if constexpr (rownorm::weights > 0) {
    const bool inside = at >= 0 && at + items <= limit;
    Pack pack[rownorm::room];
#pragma unroll
    for (int w = 0; w < rownorm::weights; ++w) {
      const Storage *source = given.weight[w];
      if (inside && reinterpret_cast<unsigned long long>(source + at) % 16 == 0) pack[w].load_each(source + at);
      else pack[w].load_masked(source, at, limit);
    }
    rownorm::weigh(value, pack);
  }
}

// Writes the results of what this lane has of a row; of the whole row, `count` elements long, is the state.
template <int lanes, int phases>
__device__ __forceinline__ void write(const Row &row, Algebra::State state, long long count,
                                      const rownorm::Given &given, int lane) {
  constexpr int chunk = lanes * items;
  const Algebra::Result result(state, static_cast<float>(count), given.eps);
  for (long long first = row.origin; first < row.limit; first += phases * chunk) {
    Pack next[phases];
    float value[phases][items];
    ask<chunk>(next, row, first, lane * items, lane % 32);
    take<chunk>(next, value, row, first, lane % 32);
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      const long long position = first + p * chunk, at = position + lane * items;
#pragma unroll
      for (int i = 0; i < items; ++i) value[p][i] = result(value[p][i]);
      weigh(value[p], given, at, row.limit);
      Pack out;
      out.narrow_from(value[p]);
      put(out, row, at, inside<chunk>(row, position), lane % 32);
    }
  }
}

// Every group of `lanes` threads takes rows in turn; more than a warp are all of the CTA's.
template <int lanes, int phases>
__device__ __forceinline__ void rows_by(const Storage *x, Storage *y, const rownorm::Given &given, long long rows,
                                        long long width, long long x_pitch, long long y_pitch) {
  constexpr int warps = lanes / 32;
  __shared__ Algebra::State totals[2][warps];
  constexpr int rows_at_once = threads / lanes;
  const int lane = threadIdx.x % lanes;
  int turn = 0;
  for (long long base = blockIdx.x * static_cast<long long>(rows_at_once); base < rows;
       base += gridDim.x * static_cast<long long>(rows_at_once)) {
    const long long number = base + threadIdx.x / lanes;
    const Row row = row_at(x + number * x_pitch, y + number * y_pitch, number < rows ? width : 0);
    Algebra::State state = Algebra::across<32>(state_of<lanes, phases>(row, lane));
    if constexpr (warps > 1) {
      if (threadIdx.x % 32 == 0) totals[turn][threadIdx.x / 32] = state;
      __syncthreads();
      state = Algebra::across<warps>(totals[turn][threadIdx.x % warps]);
      turn ^= 1;
    }
    write<lanes, phases>(row, state, row.limit, given, lane);
  }
}

} // namespace
