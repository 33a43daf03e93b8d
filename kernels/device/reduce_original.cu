// <op>.original and <op>.aligned: one number from each row, of any number of rows, any width and any element alignment.
//
// Layout       rows of adjacent elements, x_pitch elements apart, any element-aligned base; results y_pitch apart
// Mapping      256 threads; by `form` a thread takes four rows alone; 2, 4 or 8 lanes take a row (128, 64 or 32 rows a
//              CTA), a warp does (8 rows), two warps do (4 rows), or the whole CTA takes its 4 rows in turn. Up to a warp
//              takes the vectors that cover a row, more cut it at 16-byte boundaries. More rows than a grid has CTAs for
//              are taken by 8 lanes each, in rounds: a loop around every form would cost 16 registers
// Accumulator  FP32: a tree over eight elements alone; else a tree in a vector, one accumulator a step and one a lane, shuffles
//              in a warp, one thread over the warps
// Legality     original: every legal workload; y is x (one element a row) or disjoint from it
//              aligned: every row starts on a 16-byte boundary and is a whole number of vectors
// Determinism  the order depends on rows and width, on the row's offset from a 16-byte boundary, and for one warp or less on
//              whether the CTA is one of the first or last. Where rows are whole vectors at offset 0, all of this gives one
//              order, which `aligned` has too: their results are equal bit for bit
//
// x is read through ordinary loads (no __restrict__): in place, a lane reads each element before the row's result is
// written, and no other row lets that element enter.
#include "reduce_groups.cuh"

namespace {

using namespace reduce;

constexpr bool aligned = ROWSMITH_ALIGNED;
constexpr int rows_in_turn = 4;
constexpr int rows_alone = 4;
constexpr int alone_most = 8;

template <int unroll, int places>
__device__ __forceinline__ void in_turn(const Rows &all, Totals<places> &totals, long long base) {
#pragma unroll 1
  for (int r = 0; r < rows_in_turn && base + r < all.rows; ++r) {
    State state = nothing();
    gather<threads, unroll, aligned>(state, all.at<aligned>(base + r), threadIdx.x);
    totals.leave(r * warps + threadIdx.x / 32, across<32>(state));
  }
  finish<warps, rows_in_turn>(all, totals, base);
}

} // namespace

// `form` is chosen by the launch from rows and width: kernels/reductions.py holds the table.
extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch, long long y_pitch,
                   int form) {
  __shared__ Totals<warps * rows_in_turn> totals;
  const Rows all{x, y, rows, width, x_pitch, y_pitch};
  const long long cta = blockIdx.x;
  switch (form) {
  case 0: return alone<rows_alone, alone_most>(all, cta * threads * rows_alone);
  case 1: return at_once<2, 4, aligned>(all, totals, cta * 128);
  case 2: return at_once<4, 4, aligned>(all, totals, cta * 64);
  case 3:
    for (long long base = cta * 32; base < rows; base += gridDim.x * 32ll) at_once<8, 4, aligned>(all, totals, base);
    return;
  case 4: return at_once<32, 4, aligned>(all, totals, cta * 8);
  case 5: return at_once<64, 8, aligned>(all, totals, cta * 4);
  default: return in_turn<8>(all, totals, cta * rows_in_turn);
  }
}
