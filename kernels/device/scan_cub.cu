// scan.cub128 .. scan.cub1024: inclusive FP32 sum of one complete row a CTA.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, every row on a 16-byte boundary
// Mapping      CTA b works on row b; in chunk j, thread t owns elements [8 (j T + t), 8 (j T + t) + 8)
// Accumulator  FP32: eight serial additions a thread, a CUB block scan over the thread totals, a carry between chunks
// Legality     width is a multiple of 8 T; x and y are 16-byte aligned and disjoint
// Determinism  the order of additions depends on T alone, so results repeat bit for bit
//
// Where ROWSMITH_PHASES is 2, two chunks share one block scan, whose latency is most of a chunk's time; an odd last chunk
// has one to itself. The chunks of the next step are loaded before it. Two scratch areas used in turn save the barrier
// that would guard the reuse of one.
#include <cub/block/block_scan.cuh>

#include "rowio.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int items = ROWSMITH_ITEMS;
constexpr int chunk = threads * items;
constexpr int phases = ROWSMITH_PHASES;
using Storage = ROWSMITH_STORAGE;
using Pack = rowio::Pack<Storage, items>;

template <int count> struct Totals {
  float of[count];
};

struct Add {
  template <int count>
  __device__ __forceinline__ Totals<count> operator()(const Totals<count> &a, const Totals<count> &b) const {
    Totals<count> sum;
#pragma unroll
    for (int p = 0; p < count; ++p) sum.of[p] = a.of[p] + b.of[p];
    return sum;
  }
};

template <int count> using BlockScan = cub::BlockScan<Totals<count>, threads, cub::BLOCK_SCAN_WARP_SCANS>;

union Scratch {
  typename BlockScan<phases>::TempStorage step;
  typename BlockScan<1>::TempStorage last;
  __device__ typename BlockScan<phases>::TempStorage &of(Totals<phases>) { return step; }
  template <int count> __device__ typename BlockScan<1>::TempStorage &of(Totals<count>) { return last; }
};

// The row as one thread sees it: where its elements of the current step lie, and how many chunks are left.
struct Cursor {
  const Storage *source;
  Storage *target;
  int left;
  float carry;
  int lane;
};

__device__ __forceinline__ void fetch(Pack (&next)[phases], const Cursor &at) {
#pragma unroll
  for (int p = 0; p < phases; ++p)
    if (p < at.left) next[p].load_warp(at.source + p * chunk, at.lane);
}

// Scans `count` chunks, which the cursor has left, after asking for those of the next step.
template <int count>
__device__ __forceinline__ void step(Cursor &at, Pack (&next)[phases], Scratch &scratch) {
  float value[count][items];
#pragma unroll
  for (int p = 0; p < count; ++p) {
    next[p].settle(at.lane);
    next[p].widen_to(value[p]);
  }
  at.source += count * chunk;
  at.left -= count;
  fetch(next, at);

  Totals<count> mine, before, total;
#pragma unroll
  for (int p = 0; p < count; ++p) {
#pragma unroll
    for (int i = 1; i < items; ++i) value[p][i] += value[p][i - 1];
    mine.of[p] = value[p][items - 1];
  }
  BlockScan<count>(scratch.of(mine)).ExclusiveScan(mine, before, Totals<count>{}, Add{}, total);

#pragma unroll
  for (int p = 0; p < count; ++p) {
    const float offset = before.of[p] + at.carry;
    at.carry += total.of[p];
#pragma unroll
    for (int i = 0; i < items; ++i) value[p][i] += offset;
    Pack out;
    out.narrow_from(value[p]);
    out.store_warp(at.target + p * chunk, at.lane);
  }
  at.target += count * chunk;
}

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *__restrict__ x, Storage *__restrict__ y, long long rows, long long width,
                   long long x_pitch, long long y_pitch) {
  __shared__ Scratch scratch[2];

  const long long row = blockIdx.x;
  const int first = threadIdx.x * items;
  Cursor at{x + row * x_pitch + first, y + row * y_pitch + first, static_cast<int>(width / chunk), 0.0f,
            static_cast<int>(threadIdx.x % 32)};
  Pack next[phases];
  fetch(next, at);
  int turn = 0;
  for (; at.left >= phases; turn ^= 1) step<phases>(at, next, scratch[turn]);
  if (phases > 1 && at.left > 0) step<1>(at, next, scratch[turn]);
}
