// channel_<norm>.steps32x8x4 .. steps1x256x4: channel norms of any number of channels that the threads of a CTA read twice.
//
// Layout       images x channels x positions without gaps; where POSITIONS is not 1, images of whole vectors of positions
//              and bases on boundaries of them
// Mapping      a CTA takes LANES x POSITIONS adjacent positions: LANES adjacent threads take POSITIONS each, of every G-th
//              channel, G = T / LANES, PHASES of them asked for at once
// Accumulator  FP32: a thread's channels one after the other, shuffles where groups share a warp, then groups in turn
// Legality     fewer than 2^31 channels; positions of an image are a multiple of POSITIONS; x and y are disjoint
// Determinism  the order of additions depends on the recipe alone
//
// What a CTA reads again lies in L1 or L2: 32 positions of 2048 channels of FP32 are 256 KiB.
#include "channel_groups.cuh"
#include "channel_twice.cuh"

using namespace channel;

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long, long long,
                   long long inner CHANNEL_PARAMETERS) {
  const Share share = share_of(rows, static_cast<int>(width), inner);
  const Channels mine{x + share.place, y + share.place, share.step, share.count};
  float sum[positions] = {};
  mine.sum<ROWSMITH_PHASES>(sum);
  meet(sum);
  mine.divide<ROWSMITH_PHASES>(Divisors(sum, static_cast<float>(width), CHANNEL_EPS));
}
