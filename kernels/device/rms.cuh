// RMSNorm as the algebra of a row normalization: its state is the sum of squares, in FP32.
//
// A result is x times rsqrtf(sum / N + eps), whose error is at most 2 ulp; sum / N is one division, correctly rounded.
// Squares are what FP32 says: of 1e20 they are inf, so that every result of the row is 0 and where x is inf NaN; of
// 1e-40 they are 0. With eps = 0 a row of zeros gives 0 x inf = NaN.
#pragma once

#include "rowio.cuh"
#include "shuffles.cuh"

struct Rms {
  struct State {
    float squares;
  };

  static __device__ __forceinline__ State nothing(float) { return State{0.0f}; }

  static __device__ __forceinline__ State merge(State a, State b) { return State{a.squares + b.squares}; }

  // What each `lanes` neighbouring lanes of a warp have together; all of them get the same bits.
  template <int lanes> static __device__ __forceinline__ State across(State state) {
    return State{rownorm::across<lanes>(state.squares, rownorm::added)};
  }

  // Takes n values, of which those that are not the row's are 0.
  template <int n> static __device__ __forceinline__ void take(State &state, float (&value)[n], int, int) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < n; ++i) squares = fmaf(value[i], value[i], squares);
    state.squares += squares;
  }

  // The state of what a thread holds: packs of n elements, of which those that it lacks are 0.
  template <int packs, int n, typename Held> static __device__ __forceinline__ State of(const Held &held) {
    State state = nothing(0.0f);
#pragma unroll(Held::unrolled)
    for (int p = 0; p < packs; ++p) {
      float value[n];
      held.widen(p, value);
      take(state, value, 0, n);
    }
    return state;
  }

  static __device__ __forceinline__ State of_one(float value) { return State{value * value}; }

  // What an element of a row becomes, of which this is the state.
  struct Result {
    float scale;
    __device__ __forceinline__ Result(State state, float count, float eps)
        : scale(rsqrtf(__fdividef(state.squares, count) + eps)) {}
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
