// scan.split: inclusive FP32 sum of few wide rows, each cut into parts that lie on many SMs; right in place.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, any element-aligned base
// Mapping      a CTA takes one part: threads x items x phases elements of one row, held in registers from the one read
//              to the one write. It publishes the part's sum and adds up those of all parts of its row before it
// Accumulator  FP32: eight serial additions a thread, shuffles in a warp, warp totals and chunks one after the other,
//              the earlier parts in threads, shuffles and warp totals
// Legality     any row of more than one part; y is x or disjoint from it; a workspace that no other launch uses meanwhile
// Determinism  the order of additions depends on the row's offset from a 16-byte boundary alone, never on timing
//
// Progress     a CTA's part is the number it draws from the workspace's counter, not its place in the grid. It waits for
//              lower numbers alone, and who drew those is running. So the lowest unfinished CTA never waits, however few
//              are resident and in whatever order they start.
// Replay       nothing is reset. The counter wraps after `turns` launches, which makes a launch's numbers lie in one
//              turn; a published word carries its turn. Every CTA publishes, one without elements too: so a word is of
//              this turn or of the one before, whatever rows and widths the launches had, if their grids are of one
//              size. The workspace is zero once, before its first launch. Launches on it must follow one another, as
//              on one stream or in one graph.
#include "scan_rows.cuh"

namespace {

constexpr int phases = ROWSMITH_PHASES;
constexpr int warps = threads / 32;
constexpr int chunk = threads * items;
constexpr unsigned int turns = 1024; // two would do; the proof of parts keeps the grid far below 2^32 / turns

using Word = unsigned long long; // the turn above, the bits of an FP32 sum below

__device__ __forceinline__ void publish(Word *word, unsigned int turn, float sum) {
  const Word value = static_cast<Word>(turn) << 32 | __float_as_uint(sum);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Returns the sum in a word as soon as it is no longer that of the turn before. Turns count from 1.
__device__ __forceinline__ float await(const Word *word, unsigned int turn) {
  const unsigned int before = turn == 1 ? turns : turn - 1;
  for (;;) {
    Word value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    const unsigned int found = static_cast<unsigned int>(value >> 32);
    if (found != before && found != 0) return __uint_as_float(static_cast<unsigned int>(value));
  }
}

// The sum of the parts before this one, `earlier` of them, whose words end at `mine`. The same for every thread.
__device__ __forceinline__ float sum_earlier(const Word *mine, int earlier, unsigned int turn, float (&totals)[warps],
                                             int lane) {
  float sum = 0.0f;
  for (int back = threadIdx.x; back < earlier; back += threads) sum += await(mine - earlier + back, turn);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (lane == 0) totals[threadIdx.x / 32] = sum;
  __syncthreads();
  const int busy = min(warps, (earlier + 31) / 32);
  sum = totals[0];
  for (int w = 1; w < busy; ++w) sum += totals[w];
  return sum;
}

} // namespace

// `parts` a row; the grid is rows x parts. The workspace holds the counter and a word for each CTA.
extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, Word *workspace, long long rows, long long width, long long x_pitch,
                   long long y_pitch, int parts) {
  __shared__ WarpTotals totals;
  __shared__ float earlier_totals[warps];
  __shared__ unsigned int drawn;
  const int lane = threadIdx.x % 32;
  const int mine = threadIdx.x * items;

  if (threadIdx.x == 0) drawn = atomicInc(reinterpret_cast<unsigned int *>(workspace), gridDim.x * turns - 1);
  __syncthreads();
  const unsigned int turn = drawn / gridDim.x + 1;
  const unsigned int number = drawn % gridDim.x;
  const int part = number % parts;
  const long long row_number = number / parts;
  const Row row = row_at(x + row_number * x_pitch, y + row_number * y_pitch, width);
  const long long first = row.origin + static_cast<long long>(part) * (chunk * phases);

  Pack next[phases];
  float value[phases][items], before[phases], total = 0.0f;
  ask<chunk>(next, row, first, mine, lane);
  take<chunk>(next, value, row, first, lane);
  sum<warps>(value, before, total, totals, lane, threadIdx.x / 32, 0);

  Word *const word = workspace + 1 + number;
  if (threadIdx.x == 0) publish(word, turn, total);
  if (first >= width) return; // the launch counts a part for elements before a vector boundary; this row has none
  if (part > 0) {
    const float earlier = sum_earlier(word, part, turn, earlier_totals, lane);
#pragma unroll
    for (int p = 0; p < phases; ++p) before[p] += earlier;
  }
  give<chunk>(value, before, row, first, mine, lane);
}
