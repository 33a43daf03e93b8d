// <op>.held1x16 .. cover1024x32: normalized rows that some lanes hold whole, read once.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart; any element-aligned base, of weights too,
//              where vectors cover a row; every row and weight on a 16-byte boundary and of whole vectors where nothing
//              but vectors is moved
// Mapping      LANES adjacent threads take a row; piece p of lane l begins at vector p LANES + l of it
// Accumulator  FP32: sums of a piece, of a lane's pieces, by shuffles in a warp and over warps; what is summed is the
//              algebra's
// Legality     rows of at most LANES x items x phases elements, seven less where they are covered, fewer than 2^31; y
//              is disjoint from x and from the weights
// Determinism  the order of additions depends on the recipe alone, and of a covered row on where it lies between
//              boundaries
//
// A covered row begins anywhere between boundaries and the weights elsewhere, so they are read there element by
// element: from L2 or nearer, for every row reads the same; as vectors where they happen to lie so.
#include "norm.cuh"
#include "scan_pieces.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int lanes = ROWSMITH_LANES;
constexpr int rows_at_once = threads / lanes;
constexpr Moves moves = Moves::ROWSMITH_MOVES;
constexpr int piece = 16 / sizeof(Storage);
constexpr int pieces = ROWSMITH_ITEMS * ROWSMITH_PHASES / piece;
constexpr int group = lanes < 32 ? lanes : 32; // lanes of a row that shuffle
// How many pieces of the weights are asked for before they are used: all of them, with the row, where they are 16
// elements a lane at most; else one, or none where two weights meet rows of 16 warps and more. With one more piece
// ptxas keeps up to 16 bytes a thread in local memory there, at 64 registers (sm_90, NVRTC 13.0.88).
constexpr bool early = pieces * piece * rownorm::weights <= 16;
constexpr int ahead = early ? pieces : threads < 512 || rownorm::weights == 1 ? 1 : 0;
static_assert(threads % lanes == 0 && pieces * piece == ROWSMITH_ITEMS * ROWSMITH_PHASES, "lanes hold whole pieces");

// Elements before a row down to the boundary from which on it is taken.
__device__ __forceinline__ int before(const Storage *source) {
  if constexpr (moves == Moves::vectors) return 0;
  else return reinterpret_cast<unsigned long long>(source) % 16 / sizeof(Storage);
}

__device__ __forceinline__ Place first_place(const Storage *source, Storage *target, int extent, int lane) {
  const int skipped = before(source), first = lane * piece - skipped;
  const bool wide_store = moves == Moves::vectors || before(target) == skipped;
  return Place{source + first, target + first, extent - first, lane == 0 ? skipped : 0, wide_store};
}

__device__ __forceinline__ Place next_place(const Place &at, int p) {
  const int beyond = p * lanes * piece;
  return Place{at.source + beyond, at.target + beyond, at.left - beyond, p == 0 ? at.skip : 0, at.wide_store};
}

// Whether element i of a piece is the row's: the row ends `left` elements on, and the first `skip` lie before it.
__device__ __forceinline__ bool inside(int left, int skip, int i) {
  if constexpr (moves == Moves::vectors) return left > 0;
  else return i < left && i >= skip;
}

// The lanes of a row, as an algebra sees them.
struct Lanes {
  static constexpr int lanes = ::lanes, warps = lanes / group;
  int left, skip;

  __device__ __forceinline__ bool has(int p, int i) const {
    return inside(left - p * lanes * piece, p > 0 ? 0 : skip, i);
  }

  // Combines what the lanes of a row in a warp have.
  template <typename Value, typename Merge> __device__ __forceinline__ Value in_warp(Value value, Merge merge) const {
    return rownorm::across<group>(value, merge);
  }

  // Combines what the warps of a row have, all lanes of each the same. Calls of one kernel differ in `turn`.
  template <int turn, typename Value, typename Merge>
  __device__ __forceinline__ Value over_warps(Value value, Merge merge) const {
    if constexpr (warps > 1) {
      __shared__ Value totals[threads / 32];
      const int warp = threadIdx.x / 32, first_warp = warp / warps * warps;
      if (threadIdx.x % 32 == 0) totals[warp] = value;
      __syncthreads();
      value = rownorm::across<warps>(totals[first_warp + threadIdx.x % warps], merge);
    }
    return value;
  }
};

// A lane's piece of each weight.
struct Share {
  rowio::Pack<Storage, piece> pack[rownorm::room];

  // `at` is how far from the row's first element the piece begins, `left` how far from there the row ends.
  __device__ __forceinline__ void ask(const rownorm::Given &given, int at, int left) {
#pragma unroll
    for (int w = 0; w < rownorm::weights; ++w) {
      const Storage *source = given.weight[w] + at;
      if constexpr (moves == Moves::vectors) {
        if (left > 0) pack[w].load_each(source);
      } else {
        const bool on_boundary = reinterpret_cast<unsigned long long>(source) % 16 == 0;
        if (at >= 0 && left >= piece && on_boundary) pack[w].load_each(source);
        else pack[w].load_masked(given.weight[w], at, at + left);
      }
    }
  }

  __device__ __forceinline__ void weigh(float (&value)[piece]) const {
#pragma unroll
    for (int w = 0; w < rownorm::weights; ++w) rownorm::weigh(w, value, pack[w].element);
  }
};

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, NORM_WEIGHTS long long rows, long long width, long long x_pitch,
                   long long y_pitch NORM_PARAMETERS) {
  const rownorm::Given given = NORM_GIVEN;
  const int lane = threadIdx.x % lanes;
  const unsigned int row = blockIdx.x * rows_at_once + threadIdx.x / lanes;
  const bool is_there = row < static_cast<unsigned int>(rows);
  const Storage *source = x + row * x_pitch;
  const Place first = first_place(source, y + row * y_pitch, is_there ? static_cast<int>(width) : 0, lane);
  const int begin = lane * piece - before(source);

  Piece<piece, moves> moved[pieces];
  Share share[pieces];
  const auto ask_weights = [&](int p) {
    const int beyond = p * lanes * piece;
    share[p].ask(given, begin + beyond, first.left - beyond);
  };
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    if constexpr (moves == Moves::vectors) moved[p].clear();
    moved[p].ask(next_place(first, p));
  }
#pragma unroll
  for (int p = 0; p < (early ? pieces : 0); ++p) ask_weights(p);
  float value[pieces][piece];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    moved[p].settle();
    moved[p].widen_to(value[p]);
  }
  rownorm::Algebra::normalize(value, Lanes{first.left, first.skip}, static_cast<float>(width), given.eps);
  if constexpr (!early && ahead == 1) ask_weights(0);
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    if (!early && p + ahead < pieces) ask_weights(p + ahead);
    share[p].weigh(value[p]);
    moved[p].narrow_from(value[p]);
    moved[p].store(next_place(first, p));
  }
}
