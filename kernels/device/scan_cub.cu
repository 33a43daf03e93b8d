// scan.cub128 .. scan.cub1024: inclusive FP32 sum of one complete row a CTA.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, every row on a 16-byte boundary
// Mapping      CTA b works on row b; in step j, thread t owns elements [8 (j T + t), 8 (j T + t) + 8)
// Accumulator  FP32: eight serial additions a thread, a CUB block scan over the thread totals, a carry between steps
// Legality     width is a multiple of 8 T; x and y are 16-byte aligned and disjoint
// Determinism  the order of additions depends on T alone, so results repeat bit for bit
//
// The next step's 16-byte loads are issued before the current block scan, which hides one memory latency a step. Two
// scratch areas used in turn save the barrier that would guard the reuse of one.
#include <cub/block/block_scan.cuh>

#include "rowio.cuh"

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const ROWSMITH_STORAGE *__restrict__ x, ROWSMITH_STORAGE *__restrict__ y, long long rows,
                   long long width, long long x_pitch, long long y_pitch) {
  constexpr int threads = ROWSMITH_THREADS;
  constexpr int items = ROWSMITH_ITEMS;
  using Pack = rowio::Pack<ROWSMITH_STORAGE, items>;
  using BlockScan = cub::BlockScan<float, threads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename BlockScan::TempStorage scratch[2];

  const long long row = blockIdx.x;
  const ROWSMITH_STORAGE *source = x + row * x_pitch + threadIdx.x * items;
  ROWSMITH_STORAGE *target = y + row * y_pitch + threadIdx.x * items;
  const int steps = static_cast<int>(width / (threads * items));

  Pack next;
  next.load(source);
  float carry = 0.0f;
  for (int step = 0; step < steps; ++step) {
    float value[items];
    next.widen_to(value);
    source += threads * items;
    if (step + 1 < steps) next.load(source);

#pragma unroll
    for (int i = 1; i < items; ++i) value[i] += value[i - 1];
    float before, total;
    BlockScan(scratch[step & 1]).ExclusiveSum(value[items - 1], before, total);
    before += carry;
    carry += total;

#pragma unroll
    for (int i = 0; i < items; ++i) value[i] += before;
    Pack out;
    out.narrow_from(value);
    out.store(target);
    target += threads * items;
  }
}
