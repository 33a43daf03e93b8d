// channel_<norm>.vector4, vector8: channel norms of any number of channels; a thread takes POSITIONS adjacent positions.
//
// Layout       images x channels x positions without gaps; images of whole vectors of positions, bases on boundaries of them
// Mapping      thread t of CTA b takes the positions from (b T + t) POSITIONS on
// Accumulator  FP32, from the first channel to the last
// Legality     positions of an image are a multiple of POSITIONS; x and y are disjoint
// Determinism  the order of additions is that of the channels, and so the original's
#include "channel_twice.cuh"

using namespace channel;

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long, long long,
                   long long inner CHANNEL_PARAMETERS) {
  const long long row = (static_cast<long long>(blockIdx.x) * threads + threadIdx.x) * positions;
  if (row >= rows) return;
  const long long place = place_of(row, width, inner);
  const Channels mine{x + place, y + place, inner, width};
  float sum[positions] = {};
  mine.sum<ROWSMITH_PHASES>(sum);
  mine.divide<ROWSMITH_PHASES>(Divisors(sum, static_cast<float>(width), CHANNEL_EPS));
}
