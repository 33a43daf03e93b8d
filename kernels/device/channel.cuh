// What the kernels of channel norms share: the formula, where a thread's positions lie, and how they are moved.
//
// x is images x channels x positions without gaps. A row is the channels of one position, `inner` elements apart; rows are
// counted image by image. ROWSMITH_NORM is rms, mean_abs or l2; a kernel takes eps where ROWSMITH_PARAMETERS is 1.
//
// An FP32 element is divided. One of 2 bytes is multiplied by a reciprocal, since a division is 15 instructions beside a load
// and a store of half the bytes; both are scaled where the divisor is so small or large that its reciprocal is no normal number.
#pragma once

#include "rowio.cuh"

// The kernel's argument after the extents, and what the formula takes.
#if ROWSMITH_PARAMETERS == 0
#define CHANNEL_PARAMETERS
#define CHANNEL_EPS 0.0f
#else
#define CHANNEL_PARAMETERS , float eps
#define CHANNEL_EPS eps
#endif

namespace channel {

using Storage = ROWSMITH_STORAGE;
constexpr int threads = ROWSMITH_THREADS;
constexpr int positions = ROWSMITH_POSITIONS; // adjacent ones that a thread takes at once

enum class Norm { rms, mean_abs, l2 };
constexpr Norm norm = Norm::ROWSMITH_NORM;

// What an element adds to the sum of its row.
__device__ __forceinline__ float entering(float value) {
  if constexpr (norm == Norm::mean_abs) return fabsf(value);
  else return value * value;
}

// What the elements of a row are divided by: 0 where L2 or mean-absolute meet a row of zeros, which gives 0 / 0 = NaN.
__device__ __forceinline__ float divisor_of(float sum, float count, float eps) {
  if constexpr (norm == Norm::mean_abs) return sum / count;
  else if constexpr (norm == Norm::l2) return sqrtf(sum);
  else return sqrtf(sum / count + eps);
}

// What the elements at a thread's positions are divided by, and how. A quotient depends on its own row alone.
struct Divisors {
  static constexpr bool by_reciprocal = sizeof(Storage) == 2;
  float divisor[positions], scale[positions], share[positions];

  __device__ __forceinline__ Divisors(const float (&sum)[positions], float count, float eps) {
#pragma unroll
    for (int i = 0; i < positions; ++i) {
      divisor[i] = divisor_of(sum[i], count, eps);
      scale[i] = divisor[i] < 0x1p-126f ? 0x1p64f : divisor[i] > 0x1p126f ? 0x1p-64f : 1.0f;
      share[i] = 1.0f / (divisor[i] * scale[i]);
    }
  }

  __device__ __forceinline__ float quotient(float value, int i) const {
    return by_reciprocal ? value * scale[i] * share[i] : value / divisor[i];
  }
};

// A channel's elements at a thread's positions, as they lie in memory.
struct alignas(positions * sizeof(Storage)) Adjacent {
  static_assert(positions * sizeof(Storage) <= 16, "one access moves them");
  Storage element[positions];

  __device__ __forceinline__ void load(const Storage *source) { *this = *reinterpret_cast<const Adjacent *>(source); }

  __device__ __forceinline__ void store(Storage *target) const { *reinterpret_cast<Adjacent *>(target) = *this; }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < positions; ++i) element[i] = rowio::narrow<Storage>(0.0f);
  }

  __device__ __forceinline__ void enter(float (&sum)[positions]) const {
#pragma unroll
    for (int i = 0; i < positions; ++i) sum[i] += entering(rowio::widen(element[i]));
  }

  // Lets nothing that was made of the elements be used again. Of BF16, whose widening is a shift, the compiler would hold the
  // FP32 values in their place: 128 channels of 2 positions took 255 registers and 112 bytes of local memory (sm_90).
  __device__ __forceinline__ void stay_packed() {
    if constexpr (sizeof(Storage) == 2 && positions > 1) {
      unsigned int *word = reinterpret_cast<unsigned int *>(element);
#pragma unroll
      for (int w = 0; w < positions / 2; ++w) asm volatile("" : "+r"(word[w]));
    }
  }

  __device__ __forceinline__ void divide(const Divisors &by) {
#pragma unroll
    for (int i = 0; i < positions; ++i) element[i] = rowio::narrow<Storage>(by.quotient(rowio::widen(element[i]), i));
  }
};

// Where the first channel of a row lies in x and in y, in elements. 32-bit division takes a fifth of the instructions.
__device__ __forceinline__ long long place_of(long long row, long long width, long long inner) {
  const bool narrow = (row | inner) >> 32 == 0;
  const long long image = narrow ? static_cast<unsigned int>(row) / static_cast<unsigned int>(inner) : row / inner;
  return row + image * (width - 1) * inner;
}

} // namespace channel
