// softmax.original, rmsnorm.original, layernorm_gamma_beta.original, …: normalized rows of any number, width and
// element alignment; right in place.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, and weights, on any element-aligned base
// Mapping      256 threads; by `form` a warp takes a row (8 a CTA) or the CTA does; grid-stride over more rows than
//              CTAs
// Accumulator  FP32: the algebra's state of a thread's vectors in turn, shuffles in a warp and over warps
// Legality     every legal workload; y is x or disjoint from it, and disjoint from the weights
// Determinism  the order of additions depends on the form and on the row's offset from a 16-byte boundary
//
// The row is read twice: for the state, and again for the results. A thread reads what it writes itself, after the
// row's state is known to all, so that x may be y.
#include "norm_rows.cuh"

// `form` is chosen by the launch: 0 is a warp a row, 1 the CTA.
extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, NORM_WEIGHTS long long rows, long long width, long long x_pitch,
                   long long y_pitch NORM_PARAMETERS, int form) {
  if (form == 0) rows_by<32, 1>(x, y, NORM_GIVEN, rows, width, x_pitch, y_pitch);
  else rows_by<threads, 1>(x, y, NORM_GIVEN, rows, width, x_pitch, y_pitch);
}
