// Rows that some lanes hold whole: one number from each, in as little code as that takes.
//
// There is no loop and no end of a row: a lane asks for all the pieces of all its rows, each if it is there, before it uses
// the first. Rows are numbered in 32 bits.
#pragma once

#include "reduce_groups.cuh"

namespace reduce {

struct Single {
  static constexpr int size = 1;
  Storage element;
  __device__ __forceinline__ void load(const Storage *source) { element = *source; }
  __device__ __forceinline__ float value(int &nans) const { return enter(rowio::widen(element), nans); }
};

struct Whole {
  static constexpr int size = per_vector;
  Vector vector;
  __device__ __forceinline__ void load(const Storage *source) { vector.load_each(source); }
  __device__ __forceinline__ float value(int &nans) const { return inside(vector, nans); }
};

// `lanes` neighbours take a row, lane l of it pieces l, l + lanes, ...; they take `each` rows at once, as many apart as the
// CTA has such groups, so that a warp's loads are adjacent rows'.
template <typename Piece, int lanes, int pieces, int each> __device__ __forceinline__ void hold(const Rows &all) {
  constexpr int groups = threads / lanes;
  constexpr int in_warp = lanes < 32 ? lanes : 32;
  static_assert(each == 1 || lanes <= 32, "warps that share a row take one");
  const int lane = threadIdx.x % lanes;
  const unsigned int first = blockIdx.x * (groups * each) + threadIdx.x / lanes;
  const unsigned int rows = static_cast<unsigned int>(all.rows);
  const int here = static_cast<int>(static_cast<unsigned int>(all.width) / Piece::size) - lane;
  const Storage *at = all.x + first * all.x_pitch + lane * Piece::size;

  Piece piece[each][pieces];
#pragma unroll
  for (int r = 0; r < each; ++r) {
#pragma unroll
    for (int p = 0; p < pieces; ++p)
      if (p * lanes < here && first + r * groups < rows) piece[r][p].load(at + p * lanes * Piece::size);
    at += groups * all.x_pitch;
  }
#pragma unroll
  for (int r = 0; r < each; ++r) {
    const unsigned int row = first + r * groups;
    float value = Algebra::identity();
    int nans = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p)
      if (p * lanes < here && row < rows) value = combine(value, piece[r][p].value(nans));
    const State state = across<in_warp>(State{value, nans});
    if constexpr (lanes <= 32) {
      if (lane == 0 && row < rows) all.put(row, state);
    } else {
      __shared__ Totals<warps> totals;
      totals.leave(threadIdx.x / 32, state);
      finish<lanes / 32, groups>(all, totals, static_cast<long long>(blockIdx.x) * groups);
    }
  }
}

} // namespace reduce
