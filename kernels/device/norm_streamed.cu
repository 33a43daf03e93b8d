// <op>.streamed256 .. streamed1024: normalized rows of any width and base, a CTA a row, PHASES packs of it at a step.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, and weights, on any element-aligned base
// Mapping      the CTA takes a row, cut at 16-byte boundaries of x, 8 T PHASES elements at a step
// Accumulator  FP32: the algebra's state of a thread's packs in turn, shuffles in a warp and over warps
// Legality     fewer than 2^31 rows; y is x or disjoint from it, and disjoint from the weights
// Determinism  the order of additions depends on the recipe and on the row's offset from a 16-byte boundary
//
// The row is read twice, the second time from L2 where it stays there: few live values instead of half the reads.
#include "norm_rows.cuh"

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, NORM_WEIGHTS long long rows, long long width, long long x_pitch,
                   long long y_pitch NORM_PARAMETERS) {
  rows_by<threads, ROWSMITH_PHASES>(x, y, NORM_GIVEN, rows, width, x_pitch, y_pitch);
}
