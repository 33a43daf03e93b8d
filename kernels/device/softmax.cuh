// The state of a softmax: the largest element so far, and the sum of exponentials relative to it.
//
// exp(x - m) is 2 to the power of (x - m) log2 e, by the hardware's ex2 (at most 2 ulp of error). Of -inf alone the state is
// (-inf, 0), from which every result is NaN, as are those of a row with a NaN or with +inf.
#pragma once

#include "rowio.cuh"

namespace softmax {

constexpr float log2e = 1.4426950408889634f;

__device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }

__device__ __forceinline__ float larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float power(float exponent) {
  float result;
  asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(exponent));
  return result;
}

struct State {
  float most, sum;
};

__device__ __forceinline__ State nothing() { return State{lowest(), 0.0f}; }

// What exponentials are taken relative to: 0 where there is nothing but -inf, so that they are 0 and not NaN.
__device__ __forceinline__ float base_of(float most) { return most == lowest() ? 0.0f : most; }

__device__ __forceinline__ float relative(float value, float base) { return power((value - base) * log2e); }

__device__ __forceinline__ State merge(State a, State b) {
  const float most = larger(a.most, b.most), base = base_of(most);
  return State{most, a.sum * relative(a.most, base) + b.sum * relative(b.most, base)};
}

// Takes n values, of which those that are not there are -inf.
template <int n> __device__ __forceinline__ void take(State &state, const float (&value)[n]) {
  float most = state.most;
#pragma unroll
  for (int i = 0; i < n; ++i) most = larger(most, value[i]);
  const float base = base_of(most);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < n; ++i) sum += relative(value[i], base);
  state.sum = state.sum * relative(state.most, base) + sum;
  state.most = most;
}

// Merges the states of each `lanes` neighbouring lanes of a warp; all of them get the result. The whole warp calls it.
template <int lanes> __device__ __forceinline__ State across(State state) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    state = merge(state, State{__shfl_xor_sync(0xffffffffu, state.most, distance),
                               __shfl_xor_sync(0xffffffffu, state.sum, distance)});
  return state;
}

} // namespace softmax
