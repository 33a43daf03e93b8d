// Channels of a CTA's positions that groups of threads share: LANES threads of each group take adjacent positions, and group
// g channels g, g + G, g + 2 G, …; what they add up meets by shuffles in a warp and in shared memory.
#pragma once

#include "channel.cuh"

namespace channel {

constexpr int lanes = ROWSMITH_LANES;
constexpr int groups = threads / lanes;
constexpr int parts = lanes < 32 ? threads / 32 : groups; // sums of a position that meet in shared memory
static_assert(threads % lanes == 0 && (lanes % 32 == 0 || 32 % lanes == 0), "groups are whole warps or parts of one");

// What a thread takes of its CTA's positions: every G-th channel from `place` on, `count` of them.
struct Share {
  long long place, step;
  int count;
};

// A CTA takes LANES x POSITIONS rows; threads past the last one take no channel.
__device__ __forceinline__ Share share_of(long long rows, int width, long long inner) {
  const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const long long row = (static_cast<long long>(blockIdx.x) * lanes + lane) * positions;
  const bool has_any = row < rows && group < width;
  const long long place = place_of(row, width, inner) + group * inner;
  return Share{place, groups * inner, has_any ? (width - group + groups - 1) / groups : 0};
}

// Adds up what the groups have; every thread gets the sums of its positions, in an order that is the same for all.
__device__ __forceinline__ void meet(float (&sum)[positions]) {
#pragma unroll
  for (int distance = lanes; distance < 32; distance *= 2)
#pragma unroll
    for (int i = 0; i < positions; ++i) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], distance);
  if constexpr (parts > 1) {
    __shared__ alignas(16) float part[parts][lanes * positions];
    const int first = threadIdx.x % lanes * positions, mine = lanes < 32 ? threadIdx.x / 32 : threadIdx.x / lanes;
    if (lanes >= 32 || threadIdx.x % 32 < lanes) {
#pragma unroll
      for (int i = 0; i < positions; ++i) part[mine][first + i] = sum[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < positions; ++i) sum[i] = part[0][first + i];
#pragma unroll
    for (int p = 1; p < parts; ++p)
#pragma unroll
      for (int i = 0; i < positions; ++i) sum[i] += part[p][first + i];
  }
}

} // namespace channel
