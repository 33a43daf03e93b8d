// softmax.held32x4 .. held1024x32: softmax of rows that some lanes hold whole, read once.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart; any element-aligned base where vectors cover a
//              row, every row on a 16-byte boundary and a whole number of vectors where nothing but vectors is moved
// Mapping      LANES adjacent threads take a row; piece p of lane l begins at vector p LANES + l of it
// Accumulator  FP32: the largest element of a warp's part; exponentials relative to it, added one after the other in a lane,
//              by shuffles in a warp and over warps
// Legality     rows of at most LANES x items x phases elements, seven less where they are covered, fewer than 2^31; x and y
//              are disjoint
// Determinism  the order of additions depends on the recipe alone, and of a covered row on where it lies between boundaries
//
// Exponentials are taken once, relative to the largest element of the warp and not of the row, so that one barrier is
// enough: what is written is each of them times exp(warp's largest - row's largest) / sum.
#include "scan_pieces.cuh"
#include "softmax.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int lanes = ROWSMITH_LANES;
constexpr int rows_at_once = threads / lanes;
constexpr Moves moves = Moves::ROWSMITH_MOVES;
constexpr int piece = 16 / sizeof(Storage);
constexpr int pieces = ROWSMITH_ITEMS * ROWSMITH_PHASES / piece;
constexpr int group = lanes < 32 ? lanes : 32; // lanes of a row that shuffle
constexpr int warps = lanes / group;
static_assert(threads % lanes == 0 && pieces * piece == ROWSMITH_ITEMS * ROWSMITH_PHASES, "lanes hold whole pieces");

__device__ __forceinline__ Place first_place(const Storage *source, Storage *target, int extent, int lane) {
  int before = 0;
  bool wide_store = true;
  if constexpr (moves == Moves::cover) {
    const unsigned long long from = reinterpret_cast<unsigned long long>(source);
    const unsigned int offset = from % 16;
    wide_store = reinterpret_cast<unsigned long long>(target) % 16 == offset;
    before = offset / sizeof(Storage);
    source -= before;
    target -= before;
  }
  const int first = lane * piece;
  return Place{source + first, target + first, extent + before - first, lane == 0 ? before : 0, wide_store};
}

__device__ __forceinline__ Place next_place(const Place &at, int p) {
  const int beyond = p * lanes * piece;
  return Place{at.source + beyond, at.target + beyond, at.left - beyond, p == 0 ? at.skip : 0, at.wide_store};
}

template <int n, typename Combine> __device__ __forceinline__ float across(float value, Combine combine) {
#pragma unroll
  for (int distance = n / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  const int lane = threadIdx.x % lanes;
  const unsigned int row = blockIdx.x * rows_at_once + threadIdx.x / lanes;
  const bool is_there = row < static_cast<unsigned int>(rows);
  const Place first = first_place(x + row * x_pitch, y + row * y_pitch, is_there ? static_cast<int>(width) : 0, lane);

  Piece<piece, moves> moved[pieces];
#pragma unroll
  for (int p = 0; p < pieces; ++p) moved[p].ask(next_place(first, p));
  float value[pieces][piece], most = softmax::lowest();
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const Place at = next_place(first, p);
    moved[p].settle();
    moved[p].widen_to(value[p]);
#pragma unroll
    for (int i = 0; i < piece; ++i) {
      if (i >= at.left || i < at.skip) value[p][i] = softmax::lowest();
      most = softmax::larger(most, value[p][i]);
    }
  }
  most = across<group>(most, [](float a, float b) { return softmax::larger(a, b); });
  const float base = softmax::base_of(most);
  float sum = 0.0f;
#pragma unroll
  for (int p = 0; p < pieces; ++p)
#pragma unroll
    for (int i = 0; i < piece; ++i) sum += value[p][i] = softmax::relative(value[p][i], base);
  sum = across<group>(sum, [](float a, float b) { return a + b; });

  float share;
  if constexpr (warps == 1) {
    share = 1.0f / sum;
  } else {
    __shared__ softmax::State totals[threads / 32];
    const int warp = lane / 32, first_warp = threadIdx.x / 32 - warp;
    if (threadIdx.x % 32 == 0) totals[first_warp + warp] = softmax::State{most, sum};
    __syncthreads();
    const softmax::State all = softmax::across<warps>(totals[first_warp + threadIdx.x % warps]);
    share = softmax::relative(most, softmax::base_of(all.most)) / all.sum;
  }
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
#pragma unroll
    for (int i = 0; i < piece; ++i) value[p][i] *= share;
    moved[p].narrow_from(value[p]);
    moved[p].store(next_place(first, p));
  }
}
