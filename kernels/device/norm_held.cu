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
// Where the weights are while a row is on its way: in registers, asked for with it; on their way to the thread's own
// places in shared memory, where registers would cost CTAs; or asked for afterwards, a piece ahead, where shared memory
// would cost L1 what it holds of them. LayerNorm of 128 x 8192 by 256 lanes in BF16: 3.09, 2.75 and 3.16 us; of 4096 x
// 4096 by 128 in FP32: 35.8, 40.5 and 35.3 (H200, 2026-12-01).
enum class Weights { beside, staged, after };
constexpr int weight_words = pieces * 4 * rownorm::weights; // a lane
constexpr Weights weighing = weight_words <= 16 && lanes <= 128 ? Weights::beside
                             : moves == Moves::vectors && weight_words <= 32 && weight_words * threads * 4 < 48 << 10
                                 ? Weights::staged
                                 : Weights::after;
// Pieces asked for ahead: none where ptxas would keep some in local memory, at 64 registers (sm_90, NVRTC 13.0.88).
constexpr int ahead = threads < 512 || (rownorm::weights == 1 && (threads < 1024 || pieces <= 4)) ? 1 : 0;
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

constexpr int power_of_two(int least) { return least <= 1 ? 1 : 2 * power_of_two((least + 1) / 2); }

// The lanes of a row, as an algebra sees them.
struct Lanes {
  static constexpr int lanes = ::lanes, warps = lanes / group;
  static constexpr int room = power_of_two(lanes * pieces * piece); // no fewer than a row's elements
  int left, skip;

  __device__ __forceinline__ bool has(int p, int i) const {
    return inside(left - p * lanes * piece, p > 0 ? 0 : skip, i);
  }

  // A value that is of element i of piece p, or of the whole piece: 0 where that is not the row's. Where nothing but
  // vectors is moved a piece is all of it or nothing, and judged as one.
  __device__ __forceinline__ float only(int p, int i, float value) const {
    if constexpr (moves == Moves::vectors) return value;
    else return has(p, i) ? value : 0.0f;
  }

  template <typename Value> __device__ __forceinline__ Value only(int p, Value value) const {
    if constexpr (moves == Moves::vectors) return has(p, 0) ? value : Value{};
    else return value;
  }

  // Combines what the lanes of a row in a warp have.
  template <typename Value, typename Merge> __device__ __forceinline__ Value in_warp(Value value, Merge merge) const {
    return rownorm::across<group>(value, merge);
  }

  // What the warps of a row have, all lanes of each the same: each `warps` lanes get one's each. Calls of one kernel
  // differ in `turn`.
  template <int turn, typename Value> __device__ __forceinline__ Value of_warps(Value value) const {
    __shared__ Value totals[threads / 32];
    const int warp = threadIdx.x / 32, first_warp = warp / warps * warps;
    if (threadIdx.x % 32 == 0) totals[warp] = value;
    __syncthreads();
    return totals[first_warp + threadIdx.x % warps];
  }

  // Combines what the warps of a row have, all lanes of each the same.
  template <int turn, typename Value, typename Merge>
  __device__ __forceinline__ Value over_warps(Value value, Merge merge) const {
    if constexpr (warps == 1) return value;
    else return rownorm::across<warps>(of_warps<turn>(value), merge);
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
        predicated::load(pack[w].vector(0), source, left > 0);
      } else {
        const bool on_boundary = reinterpret_cast<unsigned long long>(source) % 16 == 0;
        if (at >= 0 && left >= piece && on_boundary) pack[w].load_each(source);
        else pack[w].load_masked(given.weight[w], at, at + left);
      }
    }
  }

  __device__ __forceinline__ void weigh(float (&value)[piece]) const { rownorm::weigh(value, pack); }
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
  __shared__ uint4 staged[weighing == Weights::staged ? pieces * rownorm::room : 1][threads];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    if constexpr (moves == Moves::vectors) moved[p].clear();
    moved[p].ask(next_place(first, p));
  }
  if constexpr (weighing == Weights::beside) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) ask_weights(p);
  } else if constexpr (weighing == Weights::staged) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int beyond = p * lanes * piece;
#pragma unroll
      for (int w = 0; w < rownorm::weights; ++w)
        if (first.left > beyond)
          rownorm::copy_vector(&staged[p * rownorm::weights + w][threadIdx.x], given.weight[w] + begin + beyond);
    }
  }
  float value[pieces][piece];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    moved[p].settle();
    rownorm::widen<Storage>(moved[p], value[p]);
  }
  rownorm::Algebra::normalize(value, Lanes{first.left, first.skip}, static_cast<float>(width), given.eps);
  if constexpr (weighing == Weights::after && ahead == 1) ask_weights(0);
  if constexpr (weighing == Weights::staged) {
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    if (weighing == Weights::after && p + ahead < pieces) ask_weights(p + ahead);
    if constexpr (weighing == Weights::staged) {
#pragma unroll
      for (int w = 0; w < rownorm::weights; ++w)
        share[p].pack[w].vector(0) = staged[p * rownorm::weights + w][threadIdx.x];
    }
    share[p].weigh(value[p]);
    moved[p].narrow_from(value[p]);
    const Place place = next_place(first, p);
    if constexpr (moves == Moves::vectors) predicated::store(place.target, moved[p].vector(0), place.left > 0);
    else moved[p].store(place);
  }
}
