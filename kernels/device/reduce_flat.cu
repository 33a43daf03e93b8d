// <op>.flat: very many rows of 1 to 8 elements without gaps; a thread takes eight of them, which are whole vectors.
//
// Layout       rows of adjacent elements, without gaps; x on a 16-byte boundary; results y_pitch apart
// Mapping      a warp takes 256 rows, of which lane l has rows 8 l to 8 l + 7; CTA b takes those from b 8 T on
// Accumulator  FP32, from a row's first element to its last
// Legality     rows are independent, without gaps and of at most 8 elements; x is 16-byte aligned
// Determinism  the order depends on the width alone
//
// A warp's 256 rows come to shared memory as one span, in adjacent 16-byte pieces, all of them asked for at once; a lane's
// pieces lie an odd number of pieces from the next lane's, so that eight lanes together meet every bank once. A thread a
// row instead takes as many loads as a row has elements, and staged rows of 256 threads take one row a thread: 1000000 x 5
// in FP16 took 5.7 us that way, 3.0 by torch.compile (H200, 2026-11-30). Whole warps of rows of one or two elements are
// read where they are.
#include "reduce.cuh"

namespace {

using namespace reduce;

constexpr int warps = ROWSMITH_THREADS / 32;
constexpr int rows_each = 8;
constexpr int warp_rows = 32 * rows_each;
constexpr int most = 8;
constexpr int direct_most = 2; // of rows so short a lane's pieces are adjacent to its neighbours' or nearly
constexpr int most_pieces = most * rows_each / per_vector + 1;

struct Result {
  Vector vector[rows_each / per_vector];
};

__device__ __forceinline__ void copy_vector(Storage *to, const Storage *from) {
  const unsigned int shared = static_cast<unsigned int>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

// Copies the warp's `elements` adjacent ones: piece p is the (p % pieces)-th of lane p / pieces.
__device__ __forceinline__ void stage(Storage *to, const Storage *from, int elements, int pieces, int lane) {
  int owner = lane / pieces, mine = lane % pieces;
  const int owners = 32 / pieces, others = 32 % pieces;
  for (int at = lane * per_vector; at < elements; at += 32 * per_vector) {
    Storage *place = to + (owner * (pieces | 1) + mine) * per_vector;
    if (at + per_vector <= elements) copy_vector(place, from + at);
    else
      for (int i = 0; at + i < elements; ++i) place[i] = from[at + i];
    owner += owners;
    mine += others;
    if (mine >= pieces) {
      mine -= pieces;
      ++owner;
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
}

// Reduces the rows of a lane, of `width` elements each; its first piece is at `first`.
template <int width> __device__ __forceinline__ void take(Result &result, const Storage *first) {
  constexpr int pieces = width * rows_each / per_vector;
  float value = Algebra::identity();
  int nans = 0;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    Vector piece;
    piece.load_each(first + p * per_vector);
#pragma unroll
    for (int e = 0; e < per_vector; ++e) {
      const int i = p * per_vector + e, row = i / width;
      const float entering = enter(rowio::widen(piece.element[e]), nans);
      value = combine(i % width == 0 ? Algebra::identity() : value, entering);
      if (i % width != width - 1) continue;
      put(&result.vector[row / per_vector].element[row % per_vector], State{value, nans}, width);
      nans = 0;
    }
  }
}

// Writes the first `here` of a lane's results.
__device__ __forceinline__ void write(Storage *y, const Result &result, int here, long long y_pitch) {
  if (y_pitch == 1 && here >= rows_each && past_boundary(y) == 0) {
#pragma unroll
    for (int v = 0; v < rows_each / per_vector; ++v) result.vector[v].store_each(y + v * per_vector);
  } else {
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
      if (r < here) y[r * y_pitch] = result.vector[r / per_vector].element[r % per_vector];
  }
}

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  __shared__ alignas(16) Storage pieces[warps][32 * most_pieces * per_vector];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long base = (static_cast<long long>(blockIdx.x) * warps + warp) * warp_rows;
  if (base >= rows) return;
  const int here = rows - base < warp_rows ? static_cast<int>(rows - base) : warp_rows;
  const int length = static_cast<int>(width);
  const Storage *span = x + base * width;
  const int lane_pieces = length * rows_each / per_vector;
  const Storage *staged = pieces[warp] + lane * (lane_pieces | 1) * per_vector;
  Result result;
  if (length <= direct_most && here == warp_rows) {
    if (length == 1) take<1>(result, span + lane * rows_each);
    else take<2>(result, span + lane * 2 * rows_each);
  } else {
    stage(pieces[warp], span, here * length, lane_pieces, lane);
    switch (length) {
    case 1: take<1>(result, staged); break;
    case 2: take<2>(result, staged); break;
    case 3: take<3>(result, staged); break;
    case 4: take<4>(result, staged); break;
    case 5: take<5>(result, staged); break;
    case 6: take<6>(result, staged); break;
    case 7: take<7>(result, staged); break;
    default: take<8>(result, staged); break;
    }
  }
  write(y + (base + lane * rows_each) * y_pitch, result, here - lane * rows_each, y_pitch);
}
