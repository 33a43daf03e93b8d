// scan.original: inclusive FP32 sum of rows of any number, width and element alignment; right in place.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, any element-aligned base
// Mapping      CTA b works on rows b, b + gridDim.x, ..; a row is cut at 16-byte boundaries of x, so every full vector is
//              one 16-byte access and only the first and last of a row are masked
// Accumulator  FP32: eight serial additions a thread, shuffles in a warp, every warp sums the warp totals before it,
//              a carry between steps
// Legality     every legal workload; y is x or disjoint from it
// Determinism  the order of additions depends on T, the width and the row's offset from a 16-byte boundary
//
// x is read through ordinary loads (no __restrict__): in place, a thread reads each element before it writes that
// element, and nobody else touches it.
#include "rowio.cuh"

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const ROWSMITH_STORAGE *x, ROWSMITH_STORAGE *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  constexpr int threads = ROWSMITH_THREADS;
  constexpr int items = ROWSMITH_ITEMS;
  constexpr int warps = threads / 32;
  constexpr long long chunk = static_cast<long long>(threads) * items;
  constexpr int vector_elements = 16 / sizeof(ROWSMITH_STORAGE);
  using Pack = rowio::Pack<ROWSMITH_STORAGE, items>;
  __shared__ float warp_total[2][warps];

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  int turn = 0;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const ROWSMITH_STORAGE *source = x + row * x_pitch;
    ROWSMITH_STORAGE *target = y + row * y_pitch;
    const int x_offset = reinterpret_cast<unsigned long long>(source) % 16 / sizeof(ROWSMITH_STORAGE);
    const int y_offset = reinterpret_cast<unsigned long long>(target) % 16 / sizeof(ROWSMITH_STORAGE);
    const bool wide_store = x_offset == y_offset;
    const long long steps = (width + x_offset + chunk - 1) / chunk;

    long long first = static_cast<long long>(threadIdx.x) * items - x_offset;
    const auto fetch = [&](Pack &pack, long long at) {
      if (at >= 0 && at + items <= width) pack.load(source + at);
      else pack.load_masked(source, at, width);
    };
    Pack next;
    fetch(next, first);
    float carry = 0.0f;
    for (long long step = 0; step < steps; ++step) {
      float value[items];
      next.widen_to(value);
      if (step + 1 < steps) fetch(next, first + chunk);

#pragma unroll
      for (int i = 1; i < items; ++i) value[i] += value[i - 1];

      float inclusive = value[items - 1];
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const float below = __shfl_up_sync(0xffffffffu, inclusive, distance);
        if (lane >= distance) inclusive += below;
      }
      float before = __shfl_up_sync(0xffffffffu, inclusive, 1);
      if (lane == 0) before = 0.0f;
      if (lane == 31) warp_total[turn][warp] = inclusive;
      __syncthreads();
      float earlier = 0.0f, total = 0.0f;
#pragma unroll
      for (int w = 0; w < warps; ++w) {
        if (w == warp) earlier = total;
        total += warp_total[turn][w];
      }
      turn ^= 1;
      before += earlier;
      before += carry;
      carry += total;

#pragma unroll
      for (int i = 0; i < items; ++i) value[i] += before;
      Pack out;
      out.narrow_from(value);
      if (wide_store && first >= 0 && first + items <= width) out.store(target + first);
      else out.store_masked(target, first, width);
      first += chunk;
    }
  }
}
