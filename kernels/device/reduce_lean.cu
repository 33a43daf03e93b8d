// <op>.lean8 .. lean1024: one number from each row that is whole vectors, with as little code as that takes.
//
// Layout       rows of whole 16-byte vectors on 16-byte boundaries, x_pitch elements apart; results y_pitch apart
// Mapping      T / ROWS neighbouring lanes take a row, PHASES vectors of it a lane at a step; CTA b takes rows from b ROWS on
// Accumulator  FP32: a tree in a vector, one accumulator a step and one a lane, shuffles in a warp, one thread over warps
// Legality     rows are independent; x and y are disjoint; fewer than 2^31 rows, and elements a row
// Determinism  the order depends on the lanes a row and on the width alone
//
// What a small shape takes is the way to the first load and from the last one: no ends, and one multiplication of 64 bits.
// FP32 17 x 1024 took 1.64 us with rows cut at boundaries and 1.35 without (H200, 2026-11-30).
#include "reduce_groups.cuh"

using namespace reduce;

constexpr int rows_at_once = ROWSMITH_ROWS;
constexpr int lanes = threads / rows_at_once;
constexpr int unroll = ROWSMITH_PHASES;
constexpr int row_warps = lanes / 32;
constexpr int step = lanes * unroll;

// Takes `left` vectors, every `lanes`-th, as reduce::gather does and for the same reason under branches.
__device__ __forceinline__ State take(const Storage *at, int left) {
  State state = nothing();
  for (; left > 0; left -= step, at += step * per_vector) {
    Vector next[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (u * lanes < left) next[u].load_each(at + u * lanes * per_vector);
    float part = Algebra::identity();
    int nans = 0;
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      if (u * lanes >= left) break;
      part = combine(part, inside(next[u], nans));
    }
    state = combine(state, State{part, nans});
  }
  return state;
}

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  const int lane = threadIdx.x % lanes;
  const unsigned int row = blockIdx.x * rows_at_once + threadIdx.x / lanes;
  const bool is_there = rows_at_once == 1 || row < static_cast<unsigned int>(rows);
  const int vectors = static_cast<unsigned int>(width) / per_vector;
  State state = take(x + row * x_pitch + lane * per_vector, is_there ? vectors - lane : 0);
  state = across<(lanes < 32 ? lanes : 32)>(state);
  if constexpr (row_warps <= 1) {
    if (lane == 0 && is_there) put(y + row * y_pitch, state, width);
  } else {
    __shared__ Totals<warps> totals;
    totals.leave(threadIdx.x / 32, state);
    const Rows all{x, y, rows, width, x_pitch, y_pitch};
    finish<row_warps, rows_at_once>(all, totals, static_cast<long long>(blockIdx.x) * rows_at_once);
  }
}
