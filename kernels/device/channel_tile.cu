// channel_<norm>.tile32x8x8 .. tile16x64x8v4: channel norms of any number of channels that the threads of a CTA hold together.
//
// Layout       images x channels x positions without gaps; where POSITIONS is not 1, images of whole vectors of positions
//              and bases on boundaries of them
// Mapping      a CTA takes LANES x POSITIONS adjacent positions: LANES adjacent threads take POSITIONS each, of every G-th
//              channel, G = T / LANES
// Accumulator  FP32: a thread's channels one after the other, shuffles where groups share a warp, then groups in turn
// Legality     at most PHASES x G channels; positions of an image are a multiple of POSITIONS; x and y are disjoint
// Determinism  the order of additions depends on the recipe alone; of one group it is that of the channels, the original's
//
// x is read once. Threads hold few channels, so that many are resident: a CTA of 32 x 8 threads with 8 channels of 4 FP32 each
// asks for 32 KiB at once and leaves room for three more of its kind, where a thread alone could hold no 64 channels of four.
#include "channel_groups.cuh"

using namespace channel;

constexpr int channels = ROWSMITH_PHASES;

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long, long long,
                   long long inner CHANNEL_PARAMETERS) {
  const Share share = share_of(rows, static_cast<int>(width), inner);
  const Storage *from = x + share.place;
  Adjacent held[channels];
#pragma unroll
  for (int c = 0; c < channels; ++c, from += share.step) {
    if (c < share.count) held[c].load(from);
    else held[c].clear();
  }
  float sum[positions] = {};
#pragma unroll
  for (int c = 0; c < channels; ++c) held[c].enter(sum);
  meet(sum);
  const Divisors by(sum, static_cast<float>(width), CHANNEL_EPS);
  Storage *to = y + share.place;
#pragma unroll
  for (int c = 0; c < channels; ++c, to += share.step) {
    if (c >= share.count) break;
    held[c].divide(by);
    held[c].store(to);
  }
}
