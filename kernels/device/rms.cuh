// RMSNorm as the algebra of a row normalization: its state is the sum of squares, in FP32.
//
// A result is x times rsqrtf(sum / N + eps), whose error is at most 2 ulp; sum / N is one division, correctly rounded.
// Squares are what FP32 says: of 1e20 they are inf, so that every result of the row is 0 and where x is inf NaN; of
// 1e-40 they are 0. With eps = 0 a row of zeros gives 0 x inf = NaN.
#pragma once

#include "rowio.cuh"

struct Rms {
  static constexpr bool commutes = true; // merge(a, b) is merge(b, a) to the bit

  struct State {
    float squares;
  };

  static __device__ __forceinline__ State nothing(float) { return State{0.0f}; }

  static __device__ __forceinline__ State merge(State a, State b) { return State{a.squares + b.squares}; }

  template <typename Across> static __device__ __forceinline__ State joined(State state, Across across) {
    return across(state, [](State a, State b) { return merge(a, b); });
  }

  // Takes n values, of which those that are not the row's are 0.
  template <int n> static __device__ __forceinline__ void take(State &state, float (&value)[n], int, int) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < n; ++i) squares += value[i] * value[i];
    state.squares += squares;
  }

  // What an element of a row becomes, of which this is the state.
  struct Result {
    float scale;
    __device__ __forceinline__ Result(State state, float count, float eps)
        : scale(rsqrtf(state.squares / count + eps)) {}
    __device__ __forceinline__ float operator()(float x) const { return x * scale; }
  };

  // Turns a row that lanes hold into its results.
  template <int pieces, int n, typename Row>
  static __device__ __forceinline__ void normalize(float (&value)[pieces][n], const Row &row, float count, float eps) {
    State state = nothing(0.0f);
#pragma unroll
    for (int p = 0; p < pieces; ++p) take(state, value[p], 0, n);
    const auto both = [](State a, State b) { return merge(a, b); };
    const Result result(row.template over_warps<0>(row.in_warp(state, both), both), count, eps);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
#pragma unroll
      for (int i = 0; i < n; ++i) value[p][i] = result(value[p][i]);
    }
  }
};
