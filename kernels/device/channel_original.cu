// channel_<norm>.original: channel norms of any number of images, channels and positions; right in place.
//
// Layout       images x channels x positions without gaps, any element-aligned base
// Mapping      a thread takes one position after the other, in steps of all threads of the launch
// Accumulator  FP32, from the first channel to the last
// Legality     every legal workload; y is x or disjoint from it. Places are 64-bit numbers; below 2^31 elements are tested
// Determinism  the order of additions is that of the channels
//
// Neighbouring threads read neighbouring positions. Channels are read twice, PHASES of them asked for at once.
#include "channel_twice.cuh"

using namespace channel;

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long, long long,
                   long long inner CHANNEL_PARAMETERS) {
  const long long at_once = static_cast<long long>(gridDim.x) * threads;
  for (long long row = static_cast<long long>(blockIdx.x) * threads + threadIdx.x; row < rows; row += at_once) {
    const long long place = place_of(row, width, inner);
    const Channels mine{x + place, y + place, inner, width};
    float sum[positions] = {};
    mine.sum<ROWSMITH_PHASES>(sum);
    mine.divide<ROWSMITH_PHASES>(Divisors(sum, static_cast<float>(width), CHANNEL_EPS));
  }
}
