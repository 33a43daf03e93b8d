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
template <int n>
__device__ __forceinline__ void weigh(float (&result)[n], const rowio::Pack<ROWSMITH_STORAGE, n> (&pack)[room]) {
  if constexpr (weights > 0) {
    float of[room][n];
#pragma unroll
    for (int w = 0; w < weights; ++w) widen(pack[w], of[w]);
#pragma unroll
    for (int i = 0; i < n; ++i) result[i] = weights == 1 ? result[i] * of[0][i] : fmaf(result[i], of[0][i], of[room - 1][i]);
  }
}

// The value of the lane whose number differs in `distance`, word by word. The whole warp calls it.
template <typename Value> __device__ __forceinline__ Value shuffled(const Value &value, int distance) {
  constexpr int words = sizeof(Value) / 4;
  static_assert(words * 4 == sizeof(Value), "a value is whole words");
  unsigned int word[words];
  memcpy(word, &value, sizeof(Value));
#pragma unroll
  for (int w = 0; w < words; ++w) word[w] = __shfl_xor_sync(0xffffffffu, word[w], distance);
  Value other;
  memcpy(&other, word, sizeof(Value));
  return other;
}

// Combines what each `lanes` neighbouring lanes of a warp have; all of them get the result, for either order is the same
// to the bit. The whole warp calls it.
template <int lanes, typename Value, typename Merge> __device__ __forceinline__ Value across(Value value, Merge merge) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) value = merge(value, shuffled(value, distance));
  return value;
}

} // namespace rownorm
