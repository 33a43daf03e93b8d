// <op>.staged64 and <op>.staged256: many narrow rows, brought to shared memory as one contiguous span a CTA.
//
// Layout       rows of adjacent elements, without gaps; x on a 16-byte boundary; results y_pitch apart
// Mapping      CTA b takes T rows from b T on: all threads copy their span in 16-byte pieces, thread t reduces row t
// Accumulator  FP32: four accumulators a thread, over every fourth element
// Legality     rows are independent and without gaps, T of them fit the 16 KiB of shared memory, x is 16-byte aligned
// Determinism  the order depends on the width alone
//
// A row of 1 to 127 elements at any offset begins and ends within vectors that its neighbours need too; a span has no such
// ends but one. FP16 1000000 x 33 takes 19.0 us with 64 threads, 34.7 by 4 lanes a row, 1000000 x 127 63.3, and 76.8 by 8
// lanes, which then cut rows into head, body and tail (H200, 2026-11-30). Rows of an odd number of words meet no bank
// twice; others are better off elsewhere: 65537 x 128 takes 36.1, by 8 lanes 4.8.
#include "reduce.cuh"

using namespace reduce;

constexpr int threads = ROWSMITH_THREADS;
constexpr int stage_bytes = 16384;
constexpr int stage_elements = stage_bytes / sizeof(Storage);

__device__ __forceinline__ void copy_vector(Storage *to, const Storage *from) {
  const unsigned int shared = static_cast<unsigned int>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

// Copies `elements` adjacent ones, the last few of them one by one, and waits for all threads' copies.
__device__ __forceinline__ void stage(Storage *to, const Storage *from, int elements) {
  const int whole = elements / per_vector * per_vector;
#pragma unroll 4
  for (int i = threadIdx.x * per_vector; i < whole; i += threads * per_vector) copy_vector(to + i, from + i);
  if (whole + static_cast<int>(threadIdx.x) < elements) to[whole + threadIdx.x] = from[whole + threadIdx.x];
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, long long rows, long long width, long long x_pitch,
                   long long y_pitch) {
  __shared__ alignas(16) Storage staged[stage_elements];
  const long long base = static_cast<long long>(blockIdx.x) * threads;
  const int here = rows - base < threads ? static_cast<int>(rows - base) : threads;
  const int length = static_cast<int>(width);
  stage(staged, x + base * width, here * length);
  if (static_cast<int>(threadIdx.x) >= here) return;

  const Storage *row = staged + threadIdx.x * length;
  float part[4] = {Algebra::identity(), Algebra::identity(), Algebra::identity(), Algebra::identity()};
  int nans = 0, i = 0;
  for (; i + 4 <= length; i += 4)
#pragma unroll
    for (int a = 0; a < 4; ++a) part[a] = combine(part[a], enter(rowio::widen(row[i + a]), nans));
  for (; i < length; ++i) part[0] = combine(part[0], enter(rowio::widen(row[i]), nans));
  put(y + (base + threadIdx.x) * y_pitch, State{tree(part), nans}, width);
}
