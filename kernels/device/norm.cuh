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

// Applies n elements of weight w to as many results.
template <int n> __device__ __forceinline__ void weigh(int w, float (&result)[n], const ROWSMITH_STORAGE *weight) {
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const float of = rowio::widen(weight[i]);
    result[i] = w == 0 ? result[i] * of : result[i] + of;
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

// Combines what each `lanes` neighbouring lanes of a warp have; all of them get the result, as the first lane's order
// has it. `commutes` says that either order is the same. The whole warp calls it.
template <int lanes, bool commutes = true, typename Value, typename Merge>
__device__ __forceinline__ Value across(Value value, Merge merge) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const Value other = shuffled(value, distance);
    if constexpr (commutes) {
      value = merge(value, other);
    } else {
      const bool first = (threadIdx.x & distance) == 0;
      value = merge(first ? value : other, first ? other : value);
    }
  }
  return value;
}

} // namespace rownorm
