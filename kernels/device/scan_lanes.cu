// scan.lanes1x4 .. scan.vector128x8: inclusive FP32 sum of short rows, each held whole by some lanes, in little code.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart; any element-aligned base where elements are
//              moved one by one, every row on a 16-byte boundary and a whole number of vectors where vectors are
// Mapping      LANES adjacent threads take a row; piece p of lane l begins at element (p LANES + l) x piece of it
// Accumulator  FP32: serial additions in a piece, shuffles among the lanes of a warp, totals of warps and pieces one after
//              the other
// Legality     rows of at most LANES x items x phases elements, fewer than 2^31 of them; x and y are disjoint
// Determinism  the order of additions depends on the recipe alone
//
// A launch of few short rows costs some 1.0 us before anything is added, and its code is executed once: each instruction
// is fetched for it and waited for. So there is no loop, no carry from step to step, one comparison an element or a
// vector, 32-bit arithmetic but for the row's address, and no barrier unless a row takes several warps. What lies past
// the end of a row is followed by nothing that is stored, so it is read as zero only because it must be something.
#include "rowio.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int lanes = ROWSMITH_LANES;
constexpr int rows_at_once = threads / lanes;
constexpr bool vectors = ROWSMITH_VECTORS;
using Storage = ROWSMITH_STORAGE;

constexpr int piece = vectors ? 16 / sizeof(Storage) : ROWSMITH_ITEMS;
constexpr int pieces = ROWSMITH_ITEMS * ROWSMITH_PHASES / piece;
constexpr int group = lanes < 32 ? lanes : 32; // lanes of a row that shuffle
constexpr int warps = lanes / group;
static_assert(threads % lanes == 0 && pieces * piece == ROWSMITH_ITEMS * ROWSMITH_PHASES, "lanes hold whole pieces");

// N adjacent elements, of which those before the end of the row, `left` elements on, are moved.
template <int N, bool whole> struct Piece {
  Storage element[N];

  __device__ __forceinline__ void load(const Storage *source, int left) {
#pragma unroll
    for (int i = 0; i < N; ++i) element[i] = i < left ? source[i] : rowio::narrow<Storage>(0.0f);
  }

  __device__ __forceinline__ void store(Storage *target, int left) const {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < left) target[i] = element[i];
  }

  __device__ __forceinline__ void widen_to(float (&value)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] = rowio::widen(element[i]);
  }

  __device__ __forceinline__ void narrow_from(const float (&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) element[i] = rowio::narrow<Storage>(value[i]);
  }
};

// All of them or none: a row ends where a vector does.
template <int N> struct Piece<N, true> : rowio::Pack<Storage, N> {
  __device__ __forceinline__ void load(const Storage *source, int left) {
    if (left > 0) this->load_each(source);
    else this->clear();
  }

  __device__ __forceinline__ void store(Storage *target, int left) const {
    if (left > 0) this->store_each(target);
  }
};

// Turns the totals of each lane's pieces into what lies before them in the row.
__device__ __forceinline__ void precede(float (&total)[pieces], int lane) {
  const int place = lane % group;
#pragma unroll
  for (int distance = 1; distance < group; distance *= 2) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const float below = __shfl_up_sync(0xffffffffu, total[p], distance, group);
      if (place >= distance) total[p] += below;
    }
  }
  float before[pieces];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    before[p] = __shfl_up_sync(0xffffffffu, total[p], 1, group);
    if (place == 0) before[p] = 0.0f;
  }
  if constexpr (warps == 1) {
    float carry = 0.0f;
#pragma unroll
    for (int p = 1; p < pieces; ++p) {
      carry += __shfl_sync(0xffffffffu, total[p - 1], group - 1, group);
      before[p] += carry;
    }
  } else {
    __shared__ float totals[pieces][threads / 32];
    const int warp = lane / 32, first = threadIdx.x / 32 - warp;
#pragma unroll
    for (int p = 0; p < pieces; ++p)
      if (place == 31) totals[p][first + warp] = total[p];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      float earlier = 0.0f;
#pragma unroll
      for (int w = 0; w < warps; ++w) {
        if (w == warp) earlier = sum;
        sum += totals[p][first + w];
      }
      before[p] += earlier;
    }
  }
#pragma unroll
  for (int p = 0; p < pieces; ++p) total[p] = before[p];
}

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *__restrict__ x, Storage *__restrict__ y, long long rows, long long width,
                   long long x_pitch, long long y_pitch) {
  const int lane = threadIdx.x % lanes;
  const unsigned int row = blockIdx.x * rows_at_once + threadIdx.x / lanes;
  const int first = lane * piece;
  const int left = (row < static_cast<unsigned int>(rows) ? static_cast<int>(width) : 0) - first;
  const Storage *source = x + row * x_pitch + first;
  Storage *target = y + row * y_pitch + first;

  Piece<piece, vectors> moved[pieces];
  float value[pieces][piece], before[pieces];
#pragma unroll
  for (int p = 0; p < pieces; ++p) moved[p].load(source + p * lanes * piece, left - p * lanes * piece);
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    moved[p].widen_to(value[p]);
#pragma unroll
    for (int i = 1; i < piece; ++i) value[p][i] += value[p][i - 1];
    before[p] = value[p][piece - 1];
  }
  if constexpr (lanes > 1) precede(before, lane);
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    if constexpr (lanes > 1) {
#pragma unroll
      for (int i = 0; i < piece; ++i) value[p][i] += before[p];
    }
    moved[p].narrow_from(value[p]);
    moved[p].store(target + p * lanes * piece, left - p * lanes * piece);
  }
}
