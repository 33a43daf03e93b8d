// scan.flat: inclusive FP32 sum of many short rows that lie one after the other without gaps; right in place.
//
// Layout       rows x width adjacent elements (pitches equal the width), any element-aligned base
// Mapping      a CTA takes as many whole rows as fit its threads x items elements, as one run of adjacent elements cut at
//              16-byte boundaries: all of it but its ends moves in whole vectors, whatever the width
// Accumulator  FP32: serial additions in a thread, shuffles in a warp, warp totals one after the other; each starts
//              again where a row starts
// Legality     widths below threads x items less a vector; y is x or disjoint from it
// Determinism  the order of additions depends on where a row lies in its CTA's run
#include "scan_rows.cuh"

namespace {

constexpr int warps = threads / 32;

// The sum of a run of elements since the last row start in it, and whether there is one.
struct Tail {
  float sum;
  bool cut;
};

// What `later` makes of a run that `earlier` precedes.
__device__ __forceinline__ Tail join(Tail earlier, Tail later) {
  return Tail{later.cut ? later.sum : earlier.sum + later.sum, later.cut || earlier.cut};
}

} // namespace

// `at_once` rows a CTA.
extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long, long long, int at_once) {
  __shared__ float sums[warps];
  __shared__ bool cuts[warps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const long long from = static_cast<long long>(blockIdx.x) * at_once;
  const long long count = min(static_cast<long long>(at_once), rows - from);
  const Row run = row_at(x + from * width, y + from * width, count * width);
  const int mine = threadIdx.x * items;
  const int first = run.origin + mine;
  const bool full = inside<32 * items>(run, run.origin + warp * 32 * items); // the warp's part of the run

  Pack pack;
  fetch(pack, run, first, full, lane);
  if (full) pack.settle(lane);
  float value[items];
  pack.widen_to(value);

  // Elements until the next row start, counted from this thread's first: 0 where it is one itself. Those before the run
  // read as zero and add nothing.
  const int extent = static_cast<int>(width);
  const int place = first < 0 ? first : first % extent;
  int starts = place <= 0 ? -place : extent - place;
  const int next_start = starts;
  Tail tail{0.0f, false};
#pragma unroll
  for (int i = 0; i < items; ++i) {
    const bool start = i == starts;
    if (start) starts += extent;
    tail = start ? Tail{value[i], true} : Tail{tail.sum + value[i], tail.cut};
    value[i] = tail.sum;
  }
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Tail below{__shfl_up_sync(0xffffffffu, tail.sum, distance),
                     static_cast<bool>(__shfl_up_sync(0xffffffffu, static_cast<int>(tail.cut), distance))};
    if (lane >= distance) tail = join(below, tail);
  }
  if (lane == 31) {
    sums[warp] = tail.sum;
    cuts[warp] = tail.cut;
  }
  Tail before{__shfl_up_sync(0xffffffffu, tail.sum, 1),
              static_cast<bool>(__shfl_up_sync(0xffffffffu, static_cast<int>(tail.cut), 1))};
  if (lane == 0) before = Tail{0.0f, false};
  __syncthreads();
  Tail earlier{0.0f, false};
#pragma unroll
  for (int w = 0; w < warps; ++w)
    if (w < warp) earlier = join(earlier, Tail{sums[w], cuts[w]});
  const float carried = join(earlier, before).sum;
#pragma unroll
  for (int i = 0; i < items; ++i)
    if (i < next_start) value[i] += carried;
  pack.narrow_from(value);
  put(pack, run, first, full, lane);
}
