// Softmax as the algebra of a row normalization: its state is the largest element so far, and the sum of exponentials
// relative to it.
//
// exp(x - m) is 2 to the power of (x - m) log2 e, by the hardware's ex2 (at most 2 ulp of error). Of -inf alone the
// state is (-inf, 0), from which every result is NaN, as are those of a row with a NaN or with +inf.
#pragma once

#include "rowio.cuh"
#include "shuffles.cuh"

struct Softmax {
  struct State {
    float most, sum;
  };

  static __device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }

  static __device__ __forceinline__ float larger(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }

  static __device__ __forceinline__ float power(float exponent) {
    float result;
    asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(exponent));
    return result;
  }

  // What exponentials are taken relative to: 0 where there is nothing but -inf, so that they are 0 and not NaN.
  static __device__ __forceinline__ float base_of(float most) { return most == lowest() ? 0.0f : most; }

  static __device__ __forceinline__ float relative(float value, float base) {
    constexpr float log2e = 1.4426950408889634f;
    return power((value - base) * log2e);
  }

  static __device__ __forceinline__ State nothing(float) { return State{lowest(), 0.0f}; }

  static __device__ __forceinline__ State merge(State a, State b) {
    const float most = larger(a.most, b.most), base = base_of(most);
    return State{most, a.sum * relative(a.most, base) + b.sum * relative(b.most, base)};
  }

  // What each `lanes` neighbouring lanes of a warp have together; all of them get the same bits.
  template <int lanes> static __device__ __forceinline__ State across(State state) {
    const float most = rownorm::across<lanes>(state.most, larger);
    return State{most, rownorm::across<lanes>(state.sum * relative(state.most, base_of(most)), rownorm::added)};
  }

  // Takes those of n values from `low` to before `high`.
  template <int n> static __device__ __forceinline__ void take(State &state, float (&value)[n], int low, int high) {
    if (low > 0 || high < n) {
#pragma unroll
      for (int i = 0; i < n; ++i)
        if (i < low || i >= high) value[i] = lowest();
    }
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

  // The state of what a thread holds: packs of n elements, of which it has some. The largest element is found first, so
  // that no sum is multiplied again.
  template <int packs, int n, typename Held> static __device__ __forceinline__ State of(const Held &held) {
    State state = nothing(0.0f);
#pragma unroll(Held::unrolled)
    for (int p = 0; p < packs; ++p) {
      float value[n];
      held.widen(p, value);
#pragma unroll
      for (int i = 0; i < n; ++i) state.most = larger(state.most, held.has(p) ? value[i] : lowest());
    }
    const float base = base_of(state.most);
#pragma unroll(Held::unrolled)
    for (int p = 0; p < packs; ++p) {
      float value[n], part = 0.0f;
      held.widen(p, value);
#pragma unroll
      for (int i = 0; i < n; ++i) part += relative(value[i], base);
      state.sum += held.has(p) ? part : 0.0f;
    }
    return state;
  }

  static __device__ __forceinline__ State of_one(float value) {
    return State{value, relative(value, base_of(value))};
  }

  // What an element of a row becomes, of which this is the state.
  struct Result {
    float base, share;
    __device__ __forceinline__ Result(State state, float, float)
        : base(base_of(state.most)), share(__fdividef(1.0f, state.sum)) {}
    __device__ __forceinline__ float operator()(float x) const { return relative(x, base) * share; }
  };

  // Turns a row that lanes hold into its results. Exponentials are taken once, relative to the largest element of the
  // warp and not of the row, so that one barrier is enough: each is then multiplied by exp(warp's largest - row's) /
  // sum.
  template <int pieces, int n, typename Row>
  static __device__ __forceinline__ void normalize(float (&value)[pieces][n], const Row &row, float, float) {
    float most = lowest(), sum = 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        if (!row.has(p, i)) value[p][i] = lowest();
        most = larger(most, value[p][i]);
      }
    }
    most = row.in_warp(most, [](float a, float b) { return larger(a, b); });
    const float base = base_of(most);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      float part = 0.0f;
#pragma unroll
      for (int i = 0; i < n; ++i) part += value[p][i] = relative(value[p][i], base);
      sum += part;
    }
    sum = row.in_warp(sum, [](float a, float b) { return a + b; });
    float share;
    if constexpr (Row::warps == 1) {
      share = __fdividef(1.0f, sum);
    } else {
      const State all = across<Row::warps>(row.template of_warps<0>(State{most, sum}));
      share = __fdividef(relative(most, base_of(all.most)), all.sum);
    }
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
#pragma unroll
      for (int i = 0; i < n; ++i) value[p][i] *= share;
    }
  }
};
