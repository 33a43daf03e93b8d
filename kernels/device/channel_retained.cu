// channel_<norm>.retained32 .. retained128x2: channel norms of as many channels as are compiled in, held in registers.
//
// Layout       images x channels x positions without gaps; where POSITIONS is not 1, images of whole vectors of positions
//              and bases on boundaries of them
// Mapping      thread t of CTA b takes the positions from (b T + t) POSITIONS on
// Accumulator  FP32, from the first channel to the last
// Legality     PHASES channels; positions of an image are a multiple of POSITIONS; x and y are disjoint
// Determinism  the order of additions is that of the channels, and so the original's
//
// All of a thread's channels are asked for before the first is used, and x is read once.
#include "channel.cuh"

using namespace channel;

constexpr int channels = ROWSMITH_PHASES;

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long, long long, long long,
                   long long inner CHANNEL_PARAMETERS) {
  const long long row = (static_cast<long long>(blockIdx.x) * threads + threadIdx.x) * positions;
  if (row >= rows) return;
  const long long place = place_of(row, channels, inner);
  const Storage *from = x + place;
  Adjacent held[channels];
#pragma unroll
  for (int c = 0; c < channels; ++c, from += inner) held[c].load(from);
  float sum[positions] = {};
#pragma unroll
  for (int c = 0; c < channels; ++c) held[c].enter(sum);
  const Divisors by(sum, static_cast<float>(channels), CHANNEL_EPS);
  Storage *to = y + place;
#pragma unroll
  for (int c = 0; c < channels; ++c, to += inner) {
    held[c].stay_packed();
    held[c].divide(by);
    held[c].store(to);
  }
}
