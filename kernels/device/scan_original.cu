// scan.original: inclusive FP32 sum of rows of any number, width and element alignment; right in place.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, any element-aligned base
// Mapping      a group of 32, 64, 128 or 256 threads takes a row, a CTA as many rows as it has groups
// Accumulator  FP32: eight serial additions a thread, shuffles in a warp, every warp sums the warp totals before it,
//              a carry between steps
// Legality     every legal workload; y is x or disjoint from it
// Determinism  the order of additions depends on the form and the row's offset from a 16-byte boundary
#include "scan_steps.cuh"

// `form` is chosen by the launch from rows, width and SMs: kernels/launch.py holds the table.
extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch, long long y_pitch,
                   int form) {
  __shared__ WarpTotals totals[2];
  switch (form) {
  case 0: return scan_rows<1, 1>(x, y, rows, width, x_pitch, y_pitch, totals);
  case 1: return scan_rows<2, 1>(x, y, rows, width, x_pitch, y_pitch, totals);
  case 2: return scan_rows<4, 1>(x, y, rows, width, x_pitch, y_pitch, totals);
  case 3: return scan_rows<4, 2>(x, y, rows, width, x_pitch, y_pitch, totals);
  default: return scan_rows<8, 2>(x, y, rows, width, x_pitch, y_pitch, totals);
  }
}
