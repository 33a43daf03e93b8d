// scan.any1 .. scan.any16p: inclusive FP32 sum of rows of any width by one form of the original's loop, compiled alone.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, any element-aligned base
// Mapping      WARPS warps take a row, a CTA as many rows as it has such groups
// Accumulator  FP32: eight serial additions a thread, shuffles in a warp, every warp sums the warp totals before it,
//              a carry between steps
// Legality     y is x or disjoint from it
// Determinism  the order of additions depends on WARPS and the row's offset from a 16-byte boundary
//
// Alone a form needs 32 to 54 registers in FP16 and 56 to 72 in FP32, and rows of up to four warps lie in CTAs of 128
// threads: a row that is done holds no seven others back.
#include "scan_steps.cuh"

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch, long long y_pitch) {
  __shared__ WarpTotals totals[2];
  scan_rows<ROWSMITH_WARPS, ROWSMITH_PHASES>(x, y, rows, width, x_pitch, y_pitch, totals);
}
