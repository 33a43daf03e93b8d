// What the templates of row normalizations share: the algebra that a row is normalized by, its weights, and shuffles.
//
// ROWSMITH_ALGEBRA is Softmax, Rms or Layer. A kernel takes ROWSMITH_WEIGHTS vectors of N elements, by which results
// are multiplied and to which they are added, and eps where ROWSMITH_PARAMETERS is 1.
#pragma once

#include "layer.cuh"
#include "rms.cuh"
#include "rowio.cuh"
#include "softmax.cuh"

// The kernel's arguments after x and y, and after the row pitches; and what they are together.
#if ROWSMITH_WEIGHTS == 0
#define NORM_WEIGHTS
#define NORM_GIVEN_WEIGHTS nullptr, nullptr
#elif ROWSMITH_WEIGHTS == 1
#define NORM_WEIGHTS const Storage *gamma,
#define NORM_GIVEN_WEIGHTS gamma, nullptr
#else
#define NORM_WEIGHTS const Storage *gamma, const Storage *beta,
#define NORM_GIVEN_WEIGHTS gamma, beta
#endif
#if ROWSMITH_PARAMETERS == 0
#define NORM_PARAMETERS
#define NORM_GIVEN_PARAMETERS 0.0f
#else
#define NORM_PARAMETERS , float eps
#define NORM_GIVEN_PARAMETERS eps
#endif
#define NORM_GIVEN rownorm::Given{{NORM_GIVEN_WEIGHTS}, NORM_GIVEN_PARAMETERS}

namespace rownorm {

using Algebra = ROWSMITH_ALGEBRA;
constexpr int weights = ROWSMITH_WEIGHTS;
constexpr int room = weights > 0 ? weights : 1; // of arrays, which have one element at least

struct Given {
  const ROWSMITH_STORAGE *weight[2];
  float eps;
};

// Widens a pack. Of BF16 a word is its first element shifted up, and its second one with the other masked out.
template <typename Storage, int n>
__device__ __forceinline__ void widen(const rowio::Pack<Storage, n> &pack, float (&value)[n]) {
  pack.widen_to(value);
}
template <int n> __device__ __forceinline__ void widen(const rowio::Pack<__nv_bfloat16, n> &pack, float (&value)[n]) {
  unsigned int word[n / 2];
  memcpy(word, pack.element, sizeof word);
#pragma unroll
  for (int i = 0; i < n; ++i) value[i] = __uint_as_float(i % 2 ? word[i / 2] & 0xffff0000u : word[i / 2] << 16);
}

// Applies n elements of each weight to as many results: times the first, plus the second.
template <int n> __device__ __forceinline__ void weigh(float (&result)[n], const float (&of)[room][n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) {
    if constexpr (weights == 1) result[i] *= of[0][i];
    else if constexpr (weights == 2) result[i] = fmaf(result[i], of[0][i], of[1][i]);
  }
}

template <int n>
__device__ __forceinline__ void weigh(float (&result)[n], const rowio::Pack<ROWSMITH_STORAGE, n> (&pack)[room]) {
  if constexpr (weights > 0) {
    float of[room][n];
#pragma unroll
    for (int w = 0; w < weights; ++w) widen(pack[w], of[w]);
    weigh(result, of);
  }
}

// Asks for a vector that is to be in shared memory when `cp.async.wait_all` returns. It stays in L1, too: other CTAs of
// an SM ask for the same weights.
__device__ __forceinline__ void copy_vector(void *to, const void *from) {
  const unsigned int shared = static_cast<unsigned int>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

} // namespace rownorm
