// scan.tiny: inclusive FP32 sum of very many rows of 1 to 8 elements without gaps; a thread takes eight, whole vectors.
//
// Layout       rows x width adjacent elements (pitches equal the width); x and y on a 16-byte boundary
// Mapping      a warp takes 256 rows, of which lane l has rows 8 l to 8 l + 7; CTA b takes those from b 8 T on
// Accumulator  FP32, from a row's first element to its last
// Legality     rows of at most 8 elements; x and y are disjoint
// Determinism  the order depends on the width alone
//
// Eight rows are as many vectors as a row has elements, twice as many in FP32. Where a lane has one of them, it moves it;
// of two, neighbours take each other's (rowio.cuh); more of them pass through shared memory, and so do the last rows, which
// are fewer than a warp's. Widths are known when compiling, so that no element asks whether a row starts at it.
#include "rowio.cuh"
#include "staging.cuh"

namespace {

using Storage = ROWSMITH_STORAGE;

constexpr int warps = ROWSMITH_THREADS / 32;
constexpr int rows_each = ROWSMITH_ITEMS;
constexpr int warp_rows = 32 * rows_each;
constexpr int most = 8;
constexpr int per_vector = staging::per_vector<Storage>;
constexpr int room = staging::room<most * rows_each / per_vector> * per_vector;

// Sums up the rows of a lane, of `width` elements each.
template <int width> __device__ __forceinline__ void sum(Storage (&element)[width * rows_each]) {
  float value = 0.0f;
#pragma unroll
  for (int i = 0; i < width * rows_each; ++i) {
    const float entering = rowio::widen(element[i]);
    value = i % width == 0 ? entering : value + entering;
    element[i] = rowio::narrow<Storage>(value);
  }
}

// Scans the `here` rows of a warp, which begin at `x` and `y`.
template <int width>
__device__ __forceinline__ void scan(const Storage *x, Storage *y, Storage *staged, int here, int lane) {
  constexpr int elements = width * rows_each, pieces = elements / per_vector;
  if constexpr (pieces <= 2) {
    if (here == warp_rows) {
      rowio::Pack<Storage, elements> pack;
      pack.load_warp(x + lane * elements, lane);
      pack.settle(lane);
      sum<width>(pack.element);
      return pack.store_warp(y + lane * elements, lane);
    }
  }
  staging::take_in<pieces>(staged, x, here * width, lane);
  alignas(16) Storage element[elements];
  staging::read_own<pieces>(element, staged, lane);
  sum<width>(element);
  staging::write_own<pieces>(staged, element, lane);
  staging::give_out<pieces>(y, staged, here * width, lane);
}

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *__restrict__ x, Storage *__restrict__ y, long long rows, long long width, long long,
                   long long) {
  __shared__ alignas(16) Storage vectors[warps][room];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long base = (static_cast<long long>(blockIdx.x) * warps + warp) * warp_rows;
  if (base >= rows) return;
  const int here = rows - base < warp_rows ? static_cast<int>(rows - base) : warp_rows;
  x += base * width;
  y += base * width;
  Storage *staged = vectors[warp];
  switch (static_cast<int>(width)) {
  case 1: return scan<1>(x, y, staged, here, lane);
  case 2: return scan<2>(x, y, staged, here, lane);
  case 3: return scan<3>(x, y, staged, here, lane);
  case 4: return scan<4>(x, y, staged, here, lane);
  case 5: return scan<5>(x, y, staged, here, lane);
  case 6: return scan<6>(x, y, staged, here, lane);
  case 7: return scan<7>(x, y, staged, here, lane);
  default: return scan<8>(x, y, staged, here, lane);
  }
}
