// <op>.cluster16x512: normalized rows of any width and base, a cluster of CTAs a row, PHASES packs of each at a step.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, and weights, on any element-aligned base
// Mapping      CLUSTER neighbouring CTAs take a row: equal runs, by rank, of the packs that 16-byte boundaries of x cut
//              it into; a CTA takes 8 T PHASES elements at a step
// Accumulator  FP32: the algebra's state of a thread's packs in turn, shuffles in a warp, over warps and over CTAs
// Legality     y is disjoint from x and from the weights; compute capability 9.0
// Determinism  the order of additions depends on the recipe, the width, and where a row lies between 16-byte boundaries
//
// The row is read twice, the second time from L2 where it stays there.
#include "norm_cluster.cuh"

extern "C" __global__ void __cluster_dims__(ROWSMITH_CLUSTER, 1, 1) __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, NORM_WEIGHTS long long rows, long long width, long long x_pitch,
                   long long y_pitch NORM_PARAMETERS) {
  cluster::begin();
  rownorm::Given given = NORM_GIVEN;
  Row row = row_at(x + blockIdx.x / ctas * x_pitch, y + blockIdx.x / ctas * y_pitch, width);
  const long long packs = (width - row.origin + items - 1) / items, part = (packs + ctas - 1) / ctas * items;
  const long long begin = row.origin + blockIdx.x % ctas * part, end = min(begin + part, width);
  const long long skipped = max(begin, 0ll);
  row = Row{row.source + skipped, row.target + skipped, max(end - skipped, 0ll), static_cast<int>(begin - skipped),
            row.wide_store};
#pragma unroll
  for (int w = 0; w < rownorm::weights; ++w) given.weight[w] += skipped;
  const Algebra::State state = all_of_cluster(state_of<threads, ROWSMITH_PHASES>(row, threadIdx.x));
  write<threads, ROWSMITH_PHASES>(row, state, width, given, threadIdx.x);
}
