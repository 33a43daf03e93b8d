// scan.original: inclusive FP32 sum of rows of any number, width and element alignment; right in place.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, any element-aligned base
// Mapping      a group of 32, 64, 128 or 256 threads takes a row, a CTA as many rows as it has groups. A row is cut at
//              16-byte boundaries of x, so that all of it but its ends moves in whole vectors
// Accumulator  FP32: eight serial additions a thread, shuffles in a warp, every warp sums the warp totals before it,
//              a carry between steps
// Legality     every legal workload; y is x or disjoint from it
// Determinism  the order of additions depends on the form and the row's offset from a 16-byte boundary
//
// x is read through ordinary loads (no __restrict__): in place, a thread reads each element before it writes that
// element, and nobody else touches it.
#include "rowio.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int items = ROWSMITH_ITEMS;
using Storage = ROWSMITH_STORAGE;
using Pack = rowio::Pack<Storage, items>;

// One row of a group: where it is, how long it is (0 past the last row) and whether x and y share vector boundaries.
struct Row {
  const Storage *source;
  Storage *target;
  long long limit;
  bool wide_store;
};

// Moves a pack whose first element is at `at`; `full` says that the whole group's chunk lies inside the row.
__device__ __forceinline__ void fetch(Pack &pack, const Row &row, long long at, bool full, int lane) {
  if (full) pack.load_warp(row.source + at, lane);
  else if (at >= row.limit) pack.clear();
  else if (at >= 0 && at + items <= row.limit) pack.load_each(row.source + at);
  else pack.load_masked(row.source, at, row.limit);
}

__device__ __forceinline__ void put(Pack &pack, const Row &row, long long at, bool full, int lane) {
  if (full && row.wide_store) pack.store_warp(row.target + at, lane);
  else if (at >= row.limit) return;
  else if (row.wide_store && at >= 0 && at + items <= row.limit) pack.store_each(row.target + at);
  else pack.store_masked(row.target, at, row.limit);
}

// A row as its group sees it: the position of the group's next element, and what is still to do of the longest row of
// the CTA, so that all its groups take the same steps.
template <int phases> struct Cursor {
  Row row;
  long long first;
  long long left;
  float carry;
  Pack next[phases];

  // Whether all of the chunk at `position` lies inside the row, so that whole warps can move it.
  template <int chunk> __device__ __forceinline__ bool full(long long position) const {
    return position >= 0 && position + chunk <= row.limit;
  }
};

using WarpTotals = float[2][threads / 32];

template <int chunk, int phases> __device__ __forceinline__ void ahead(Cursor<phases> &at, int mine, int lane) {
#pragma unroll
  for (int p = 0; p < phases; ++p) {
    const long long position = at.first + p * chunk;
    fetch(at.next[p], at.row, position + mine, at.template full<chunk>(position), lane);
  }
}

// Scans the next `phases` chunks of a row after asking for those that follow. `totals` is where warps leave theirs.
template <int warps, int phases>
__device__ __forceinline__ void step(Cursor<phases> &at, WarpTotals &totals) {
  constexpr int chunk = warps * 32 * items;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 % warps;
  const int group_warp = threadIdx.x / 32 - warp;
  const int mine = threadIdx.x % (warps * 32) * items;

  const long long first = at.first;
  float value[phases][items];
#pragma unroll
  for (int p = 0; p < phases; ++p) {
    if (at.template full<chunk>(first + p * chunk)) at.next[p].settle(lane);
    at.next[p].widen_to(value[p]);
  }
  at.first += phases * chunk;
  at.left -= phases * chunk;
  if (at.left > 0) ahead<chunk>(at, mine, lane);

  float inclusive[phases], before[phases];
#pragma unroll
  for (int p = 0; p < phases; ++p) {
#pragma unroll
    for (int i = 1; i < items; ++i) value[p][i] += value[p][i - 1];
    inclusive[p] = value[p][items - 1];
  }
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      const float below = __shfl_up_sync(0xffffffffu, inclusive[p], distance);
      if (lane >= distance) inclusive[p] += below;
    }
  }
#pragma unroll
  for (int p = 0; p < phases; ++p) {
    before[p] = __shfl_up_sync(0xffffffffu, inclusive[p], 1);
    if (lane == 0) before[p] = 0.0f;
  }
  if constexpr (warps == 1) {
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      before[p] += at.carry;
      at.carry += __shfl_sync(0xffffffffu, inclusive[p], 31);
    }
  } else {
#pragma unroll
    for (int p = 0; p < phases; ++p)
      if (lane == 31) totals[p][group_warp + warp] = inclusive[p];
    __syncthreads();
#pragma unroll
    for (int p = 0; p < phases; ++p) {
      float earlier = 0.0f, total = 0.0f;
#pragma unroll
      for (int w = 0; w < warps; ++w) {
        if (w == warp) earlier = total;
        total += totals[p][group_warp + w];
      }
      before[p] += earlier + at.carry;
      at.carry += total;
    }
  }

#pragma unroll
  for (int p = 0; p < phases; ++p) {
#pragma unroll
    for (int i = 0; i < items; ++i) value[p][i] += before[p];
    Pack out;
    out.narrow_from(value[p]);
    const long long position = first + p * chunk;
    put(out, at.row, position + mine, at.template full<chunk>(position), lane);
  }
}

// `warps` warps take a row; `phases` chunks share one combination, whose latency is most of a step's time. Two areas for
// totals are used in turn: whoever writes one again has passed the barrier that follows everybody's reading of it.
template <int warps, int phases>
__device__ __forceinline__ void scan_rows(const Storage *x, Storage *y, long long rows, long long width,
                                          long long x_pitch, long long y_pitch, WarpTotals (&totals)[2]) {
  constexpr int group = warps * 32;
  constexpr int chunk = group * items;
  constexpr long long rows_at_once = threads / group;
  // The same for every row of a CTA: 0, or one element short of a vector.
  const bool aligned = reinterpret_cast<unsigned long long>(x) % 16 == 0 && x_pitch * sizeof(Storage) % 16 == 0;
  const long long longest = width + (aligned ? 0 : 16 / sizeof(Storage) - 1);
  int turn = 0;

  for (long long base = blockIdx.x * rows_at_once; base < rows; base += gridDim.x * rows_at_once) {
    const long long number = base + threadIdx.x / group;
    Cursor<phases> at;
    at.row = Row{x + number * x_pitch, y + number * y_pitch, number < rows ? width : 0, true};
    const int offset = reinterpret_cast<unsigned long long>(at.row.source) % 16 / sizeof(Storage);
    at.row.wide_store = reinterpret_cast<unsigned long long>(at.row.target) % 16 / sizeof(Storage) == offset;
    at.first = -offset;
    at.left = longest;
    at.carry = 0.0f;
    ahead<chunk>(at, threadIdx.x % group * items, threadIdx.x % 32);
    for (; at.left > 0; turn ^= 1) step<warps>(at, totals[turn]);
  }
}

} // namespace

// `form` is chosen by the launch from the width alone: kernels/launch.py holds the table.
extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch, long long y_pitch,
                   int form) {
  __shared__ WarpTotals totals[2];
  switch (form) {
  case 0: return scan_rows<1, 1>(x, y, rows, width, x_pitch, y_pitch, totals);
  case 1: return scan_rows<2, 1>(x, y, rows, width, x_pitch, y_pitch, totals);
  case 2: return scan_rows<4, 1>(x, y, rows, width, x_pitch, y_pitch, totals);
  case 3: return scan_rows<4, 2>(x, y, rows, width, x_pitch, y_pitch, totals);
  default: return scan_rows<8, 2>(x, y, rows, width, x_pitch, y_pitch, totals);
  }
}
