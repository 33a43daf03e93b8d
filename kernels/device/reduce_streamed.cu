// <op>.subgroup_* and <op>.streamed_*: experimental ways through a row, to tell the effects of carry, load and unrolling
// apart.
//
// Layout       rows of adjacent elements, x_pitch elements apart; results y_pitch apart
// Mapping      ROWS rows a CTA, each taken by one or more complete 32-lane subgroups in chunks of T / ROWS x ITEMS elements;
//              lane l has elements [l ITEMS, (l + 1) ITEMS) of a chunk. PHASES chunks are asked for together
// Accumulator  FP32, by ROWSMITH_CARRY: `lane` a tree over the items and one accumulator a lane; `chunk` one accumulator an
//              element of the chunk, reduced once at the end; `scalar` every chunk reduced by the whole group at once
// Loads        plain: element by element, each masked; aligned (ROWSMITH_ALIGNED): 16 bytes at a time
// Legality     rows are independent, x and y disjoint; aligned: rows start on 16-byte boundaries and are whole vectors
// Determinism  the order depends on the recipe and the width alone
#include "reduce_groups.cuh"

namespace {

using namespace reduce;

constexpr int items = ROWSMITH_ITEMS;
constexpr int unroll = ROWSMITH_PHASES;
constexpr bool aligned = ROWSMITH_ALIGNED;
constexpr int rows_at_once = ROWSMITH_ROWS;
constexpr int lanes = threads / rows_at_once;
constexpr int row_warps = lanes / 32;
constexpr int chunk = lanes * items;
static_assert(lanes % 32 == 0, "a row is taken by complete subgroups");
static_assert(!aligned || items * sizeof(Storage) % 16 == 0, "aligned loads are of 16 bytes");

enum Carry { lane, chunk_shaped, scalar };
constexpr Carry carry = ROWSMITH_CARRY;

// The lane's elements of a chunk, of which the row has `left`; what is past its end reads as the identity.
__device__ __forceinline__ void fetch(float (&value)[items], const Storage *at, long long left) {
  if constexpr (aligned) {
#pragma unroll
    for (int v = 0; v < items; v += per_vector) {
      Vector vector;
      if (v < left) vector.load_each(at + v);
#pragma unroll
      for (int i = 0; i < per_vector; ++i)
        value[v + i] = v < left ? rowio::widen(vector.element[i]) : Algebra::identity();
    }
  } else {
#pragma unroll
    for (int i = 0; i < items; ++i) value[i] = i < left ? rowio::widen(at[i]) : Algebra::identity();
  }
}

// Reduces over the lanes of each row; every lane of a row gets its result. All threads of the CTA call it.
__device__ __forceinline__ float together(float value, float (&totals)[warps]) {
  const State state = across<32>(State{value, 0});
  if constexpr (row_warps == 1) return state.value;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) totals[warp] = state.value;
  __syncthreads();
  float total = Algebra::identity();
#pragma unroll
  for (int w = 0; w < row_warps; ++w) total = combine(total, totals[warp / row_warps * row_warps + w]);
  return total;
}

} // namespace

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  __shared__ float totals[2][warps];
  const long long row = static_cast<long long>(blockIdx.x) * rows_at_once + threadIdx.x / lanes;
  const int mine = threadIdx.x % lanes * items;
  const Storage *at = x + row * x_pitch + mine;
  // Past the last row a group takes the same steps, since all meet at barriers, and has nothing.
  long long left = row < rows ? width - mine : 0;

  float carried[items];
#pragma unroll
  for (int i = 0; i < items; ++i) carried[i] = Algebra::identity();
  int turn = 0;
#pragma unroll 1 // or ptxas unrolls what PHASES leaves alone
  for (long long to_go = width; to_go > 0; to_go -= unroll * chunk) {
    float value[unroll][items];
#pragma unroll
    for (int u = 0; u < unroll; ++u) fetch(value[u], at + u * chunk, left - u * chunk);
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      if constexpr (carry == chunk_shaped) {
#pragma unroll
        for (int i = 0; i < items; ++i) carried[i] = combine(carried[i], value[u][i]);
      } else if constexpr (carry == lane) {
        carried[0] = combine(carried[0], tree(value[u]));
      } else {
        carried[0] = combine(carried[0], together(tree(value[u]), totals[turn]));
        turn ^= 1;
      }
    }
    at += unroll * chunk;
    left -= unroll * chunk;
  }
  float total = carry == chunk_shaped ? tree(carried) : carried[0];
  if constexpr (carry != scalar) total = together(total, totals[turn]);
  if (threadIdx.x % lanes == 0 && row < rows) put(y + row * y_pitch, State{total, 0}, width);
}
