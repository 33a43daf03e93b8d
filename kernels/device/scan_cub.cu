// scan.cub128 .. scan.cub1024: inclusive FP32 sum of one complete row a CTA.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, every row on a 16-byte boundary
// Mapping      CTA b works on row b; in chunk j, thread t owns elements [8 (j T + t), 8 (j T + t) + 8)
// Accumulator  FP32: eight serial additions a thread, a CUB block scan over the thread totals, a carry between chunks
// Legality     width is a multiple of 8 T; x and y are 16-byte aligned and disjoint
// Determinism  the order of additions depends on T alone, so results repeat bit for bit
//
// Two chunks share one block scan, whose latency is most of a chunk's time, and the next two are loaded before it. Two
// scratch areas used in turn save the barrier that would guard the reuse of one.
#include <cub/block/block_scan.cuh>

#include "rowio.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int items = ROWSMITH_ITEMS;
constexpr int chunk = threads * items;
constexpr int phases = ROWSMITH_PHASES;
using Pack = rowio::Pack<ROWSMITH_STORAGE, items>;

struct Totals {
  float of[phases];
};

struct Add {
  __device__ __forceinline__ Totals operator()(const Totals &a, const Totals &b) const {
    Totals sum;
#pragma unroll
    for (int p = 0; p < phases; ++p) sum.of[p] = a.of[p] + b.of[p];
    return sum;
  }
};

using BlockScan = cub::BlockScan<Totals, threads, cub::BLOCK_SCAN_WARP_SCANS>;

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const ROWSMITH_STORAGE *__restrict__ x, ROWSMITH_STORAGE *__restrict__ y, long long rows,
                   long long width, long long x_pitch, long long y_pitch) {
  __shared__ typename BlockScan::TempStorage scratch[2];

  const long long row = blockIdx.x;
  const int lane = threadIdx.x % 32;
  const ROWSMITH_STORAGE *source = x + row * x_pitch + threadIdx.x * items;
  ROWSMITH_STORAGE *target = y + row * y_pitch + threadIdx.x * items;
  const int chunks = static_cast<int>(width / chunk);

  Pack next[phases];
#pragma unroll
  for (int p = 0; p < phases; ++p)
    if (p < chunks) next[p].load_warp(source + p * chunk, lane);
  float carry = 0.0f;
  int turn = 0;
  for (int first = 0; first < chunks; first += phases) {
    float value[phases][items];
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      next[p].settle(lane);
      next[p].widen_to(value[p]);
    }
    source += phases * chunk;
#pragma unroll
    for (int p = 0; p < phases; ++p)
      if (first + phases + p < chunks) next[p].load_warp(source + p * chunk, lane);

    Totals mine, before, total;
#pragma unroll
    for (int p = 0; p < phases; ++p) {
#pragma unroll
      for (int i = 1; i < items; ++i) value[p][i] += value[p][i - 1];
      mine.of[p] = first + p < chunks ? value[p][items - 1] : 0.0f;
    }
    BlockScan(scratch[turn]).ExclusiveScan(mine, before, Totals{}, Add{}, total);
    turn ^= 1;

#pragma unroll
    for (int p = 0; p < phases; ++p) {
      if (first + p < chunks) {
        const float offset = before.of[p] + carry;
        carry += total.of[p];
#pragma unroll
        for (int i = 0; i < items; ++i) value[p][i] += offset;
        Pack out;
        out.narrow_from(value[p]);
        out.store_warp(target + p * chunk, lane);
      }
    }
    target += phases * chunk;
  }
}
