// <op>.rows4 .. rows1 and <op>.short2 .. short8: one number from each row, ROWSMITH_ROWS rows a CTA.
//
// Layout       rows of adjacent elements, x_pitch elements apart, any element-aligned base; results y_pitch apart
// Mapping      T / ROWS neighbouring lanes take a row; CTA b takes rows from b ROWS on. Lanes of several warps cut it at
//              16-byte boundaries; up to a warp takes the vectors that cover it
// Accumulator  FP32: a tree in a vector, one accumulator a step and one a lane, shuffles in a warp, one thread over warps
// Legality     rows are independent; x and y are disjoint; up to a warp counts a row's elements in 32 bits
// Determinism  the order depends on the lanes a row, on the row's offset from a 16-byte boundary, and up to a warp on whether
//              the CTA is one of the first or last, whose rows the tensor does not surround
#include "reduce_groups.cuh"

constexpr int lanes = ROWSMITH_THREADS / ROWSMITH_ROWS;

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const reduce::Storage *x, reduce::Storage *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  __shared__ reduce::Totals<reduce::warps> totals;
  const reduce::Rows all{x, y, rows, width, x_pitch, y_pitch};
  reduce::at_once<lanes, ROWSMITH_PHASES, false>(all, totals, static_cast<long long>(blockIdx.x) * ROWSMITH_ROWS);
}
