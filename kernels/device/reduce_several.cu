// <op>.several2x1 .. several4x2: one number from each of very many short rows of whole vectors, several rows a lane.
//
// Layout       rows of whole 16-byte vectors on 16-byte boundaries, x_pitch elements apart; results y_pitch apart
// Mapping      LANES neighbouring lanes hold a row, lane l of it vectors l, l + LANES, ...; they hold EACH rows at once, as
//              many apart as the CTA has such groups; CTA b takes EACH T / LANES rows
// Accumulator  FP32: a tree in a vector, one accumulator a lane, shuffles
// Legality     rows are independent, of at most LANES x PHASES vectors, fewer than 2^31; x and y are disjoint
// Determinism  the order depends on the recipe and the width alone
//
// One row a group of lanes makes CTAs that read 4 KiB: 1000000 x 16 in FP16 takes 12.0 us that way, 6.07 by torch.compile
// (H200, 2026-11-30).
#include "reduce_held.cuh"

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const reduce::Storage *x, reduce::Storage *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  reduce::hold<reduce::Whole, ROWSMITH_LANES, ROWSMITH_PHASES, ROWSMITH_EACH>(
      reduce::Rows{x, y, rows, width, x_pitch, y_pitch});
}
