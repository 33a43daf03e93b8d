// scan.lanes1x4 .. scan.cover128x8: inclusive FP32 sum of short rows, each held whole by some lanes, in little code.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart; any element-aligned base where elements are
//              moved one by one or vectors cover a row, every row on a 16-byte boundary and a whole number of vectors
//              where nothing but vectors is moved
// Mapping      LANES adjacent threads take a row, and ROWS_EACH rows as many apart as a CTA has such groups; piece p of
//              lane l begins at element (p LANES + l) x piece of it, less what lies before a covered row
// Accumulator  FP32: serial additions in a piece, shuffles among the lanes of a warp, totals of warps and pieces one after
//              the other
// Legality     rows of at most LANES x items x phases elements, seven less where they are covered, fewer than 2^31 of
//              them; x and y are disjoint
// Determinism  the order of additions depends on the recipe alone, and of a covered row on where it lies between boundaries
//
// A launch of few short rows costs some 1.0 us before anything is added, and its code is executed once: each instruction
// is fetched for it and waited for. So there is no loop, no carry from step to step, one comparison an element or a
// vector, 32-bit arithmetic but for the row's address, and no barrier unless a row takes several warps. What lies past
// the end of a row is followed by nothing that is stored, so it is read as zero only because it must be something. Many
// rows wait for memory instead: lanes that take several ask for all of them before they use the first.
#include "scan_pieces.cuh"

namespace {

constexpr int threads = ROWSMITH_THREADS;
constexpr int lanes = ROWSMITH_LANES;
constexpr int rows_each = ROWSMITH_ROWS_EACH;
constexpr int rows_at_once = threads / lanes;
constexpr Moves moves = Moves::ROWSMITH_MOVES;

constexpr int piece = moves == Moves::elements ? ROWSMITH_ITEMS : 16 / sizeof(Storage);
constexpr int pieces = ROWSMITH_ITEMS * ROWSMITH_PHASES / piece;
constexpr int group = lanes < 32 ? lanes : 32; // lanes of a row that shuffle
constexpr int warps = lanes / group;
static_assert(threads % lanes == 0 && pieces * piece == ROWSMITH_ITEMS * ROWSMITH_PHASES, "lanes hold whole pieces");

// Where the first piece of a lane is in a row that begins at `source` and has `extent` elements, and then piece p.
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

// Turns the totals of each lane's pieces into what lies before them in their rows.
__device__ __forceinline__ void precede(float (&total)[rows_each][pieces], int lane) {
  const int place = lane % group;
#pragma unroll
  for (int distance = 1; distance < group; distance *= 2) {
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
#pragma unroll
      for (int p = 0; p < pieces; ++p) {
        const float below = __shfl_up_sync(0xffffffffu, total[r][p], distance, group);
        if (place >= distance) total[r][p] += below;
      }
    }
  }
  float before[rows_each][pieces];
#pragma unroll
  for (int r = 0; r < rows_each; ++r) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      before[r][p] = __shfl_up_sync(0xffffffffu, total[r][p], 1, group);
      if (place == 0) before[r][p] = 0.0f;
    }
  }
  if constexpr (warps == 1) {
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      float carry = 0.0f;
#pragma unroll
      for (int p = 1; p < pieces; ++p) {
        carry += __shfl_sync(0xffffffffu, total[r][p - 1], group - 1, group);
        before[r][p] += carry;
      }
    }
  } else {
    __shared__ float totals[rows_each][pieces][threads / 32];
    const int warp = lane / 32, first = threadIdx.x / 32 - warp;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
#pragma unroll
      for (int p = 0; p < pieces; ++p)
        if (place == 31) totals[r][p][first + warp] = total[r][p];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      float sum = 0.0f;
#pragma unroll
      for (int p = 0; p < pieces; ++p) {
        float earlier = 0.0f;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
          if (w == warp) earlier = sum;
          sum += totals[r][p][first + w];
        }
        before[r][p] += earlier;
      }
    }
  }
#pragma unroll
  for (int r = 0; r < rows_each; ++r) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) total[r][p] = before[r][p];
  }
}

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *__restrict__ x, Storage *__restrict__ y, long long rows, long long width,
                   long long x_pitch, long long y_pitch) {
  const int lane = threadIdx.x % lanes;
  const unsigned int row = blockIdx.x * (rows_at_once * rows_each) + threadIdx.x / lanes;
  const Storage *source = x + row * x_pitch;
  Storage *target = y + row * y_pitch;

  Place at[rows_each];
  Piece<piece, moves> moved[rows_each][pieces];
  float value[rows_each][pieces][piece], before[rows_each][pieces];
#pragma unroll
  for (int r = 0; r < rows_each; ++r) {
    const bool there = row + r * rows_at_once < static_cast<unsigned int>(rows);
    at[r] = first_place(source + r * rows_at_once * x_pitch, target + r * rows_at_once * y_pitch,
                        there ? static_cast<int>(width) : 0, lane);
#pragma unroll
    for (int p = 0; p < pieces; ++p) moved[r][p].ask(next_place(at[r], p));
  }
#pragma unroll
  for (int r = 0; r < rows_each; ++r) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      moved[r][p].settle();
      moved[r][p].widen_to(value[r][p]);
#pragma unroll
      for (int i = 1; i < piece; ++i) value[r][p][i] += value[r][p][i - 1];
      before[r][p] = value[r][p][piece - 1];
    }
  }
  if constexpr (lanes > 1) precede(before, lane);
#pragma unroll
  for (int r = 0; r < rows_each; ++r) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      if constexpr (lanes > 1) {
#pragma unroll
        for (int i = 0; i < piece; ++i) value[r][p][i] += before[r][p];
      }
      moved[r][p].narrow_from(value[r][p]);
      moved[r][p].store(next_place(at[r], p));
    }
  }
}
