// channel_<norm>.reread32 .. reread128: channel norms of as many channels as are compiled in, read twice, all unrolled.
//
// Layout       images x channels x positions without gaps, any element-aligned base
// Mapping      thread t of CTA b takes position b T + t
// Accumulator  FP32, from the first channel to the last
// Legality     PHASES channels; x and y are disjoint
// Determinism  the order of additions is that of the channels, and so the original's
//
// The counterpart of retained recipes: they differ from these in that nothing is kept between the passes. y may be x for all
// that the compiler knows, so it has to read again; it may keep the addresses instead, and then runs out of registers.
#include "channel.cuh"

using namespace channel;

constexpr int channels = ROWSMITH_PHASES;

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long, long long, long long,
                   long long inner CHANNEL_PARAMETERS) {
  const long long row = static_cast<long long>(blockIdx.x) * threads + threadIdx.x;
  if (row >= rows) return;
  const long long place = place_of(row, channels, inner);
  Adjacent value;
  float sum[positions] = {};
#pragma unroll
  for (int c = 0; c < channels; ++c) {
    value.load(x + (place + c * inner));
    value.enter(sum);
  }
  const Divisors by(sum, static_cast<float>(channels), CHANNEL_EPS);
#pragma unroll
  for (int c = 0; c < channels; ++c) {
    value.load(x + (place + c * inner));
    value.divide(by);
    value.store(y + (place + c * inner));
  }
}
