// <op>.split: few wide rows, each spread over several CTAs; the last to arrive combines what all of them left.
//
// Layout       rows of adjacent elements, x_pitch elements apart, any element-aligned base; results y_pitch apart
// Mapping      CTA b takes part b % parts of row b / parts: `part_units` times 8 elements, counted from the row's first
//              16-byte boundary; the elements before it belong to the first part, those after the last vector to the last
// Workspace    rows counters, then rows x parts slots, 8 bytes each; all are 0 before and after every launch
// Accumulator  FP32: as a lane of a group does, shuffles in a warp and over warps, then over parts: each lane of one warp
//              takes parts l, l + 32, ... in this order, and shuffles do the rest
// Legality     rows are independent; x and y are disjoint; parts <= 128
// Determinism  the order depends on parts, part_units and the row's offset from a 16-byte boundary, not on who is last
//
// A slot holds a part's value with a 1 above it, in one 64-bit store: value and mark are seen together, so no fence
// orders them. Each CTA writes its slot and then counts itself at the row's counter, which wraps to 0 at the last. Every
// other CTA of the row has issued its store by then; the last one reads each slot until the mark is there, and clears it.
// It waits for stores under way and for no CTA, so nothing has to be resident at once.
//
// Reading every slot while the count is under way, in each CTA, took 1 x 1048576 in FP16 from 2.99 us to 5.08: reads and
// writes of the same lines meet. Counting CTAs as they start, the last of which waits, 2.96, but 17 x 151936 from 3.16 to
// 3.84 (H200, 2026-11-30).
#include "reduce.cuh"

using namespace reduce;

constexpr int threads = ROWSMITH_THREADS;
constexpr int warps = threads / 32;
constexpr int most_parts = 128;
constexpr unsigned long long mark = 1ull << 32;
static_assert(!counts, "a slot has no room for a count");

// Part `part` of a row; the parts overlap nowhere and cover the row.
__device__ __forceinline__ Row part_of(const Row &row, int part, int parts, int part_units) {
  const long long size = part_units * (8ll / per_vector);
  const long long from = part * size;
  Row mine = row;
  mine.body = row.body + from * per_vector;
  mine.vectors = from >= row.vectors ? 0 : row.vectors - from < size ? row.vectors - from : size;
  if (part != 0) mine.head = 0;
  if (part != parts - 1) mine.tail = 0;
  return mine;
}

// Combines the slots of a row in a fixed order and leaves them empty. All of a lane's slots are asked for before the first
// is looked at; one without its mark is asked for again.
__device__ __forceinline__ State collect(volatile unsigned long long *slots, int parts, int lane) {
  constexpr int turns = most_parts / 32;
  unsigned long long seen[turns];
#pragma unroll
  for (int t = 0; t < turns; ++t)
    if (t * 32 + lane < parts) seen[t] = slots[t * 32 + lane];
  State state = nothing();
#pragma unroll
  for (int t = 0; t < turns; ++t) {
    if (t * 32 + lane < parts) {
      while (seen[t] < mark) seen[t] = slots[t * 32 + lane];
      slots[t * 32 + lane] = 0;
      state.value = combine(state.value, __uint_as_float(static_cast<unsigned int>(seen[t])));
    }
  }
  return across<32>(state);
}

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, unsigned long long *workspace, long long rows, long long width,
                   long long x_pitch, long long y_pitch, int parts, int part_units) {
  __shared__ State totals[warps];
  const int row = blockIdx.x / parts;
  const int part = blockIdx.x % parts;
  const int lane = threadIdx.x % 32;

  State state = nothing();
  const Row whole = cut<false>(x + row * x_pitch, width);
  gather<threads, ROWSMITH_PHASES, false>(state, part_of(whole, part, parts, part_units), threadIdx.x);
  state = across<32>(state);
  if (lane == 0) totals[threadIdx.x / 32] = state;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  state = across<warps>(totals[lane % warps]);

  volatile unsigned long long *slots = workspace + rows + static_cast<long long>(row) * parts;
  unsigned int arrived = 0;
  if (lane == 0) {
    slots[part] = mark | __float_as_uint(state.value);
    arrived = atomicInc(reinterpret_cast<unsigned int *>(workspace + row), parts - 1);
  }
  if (__shfl_sync(0xffffffffu, arrived, 0) != parts - 1) return;
  state = collect(slots, parts, lane);
  if (lane == 0) put(y + row * y_pitch, state, width);
}
