// LayerNorm as the algebra of a row normalization, in FP32.
//
// Where a row is read in chunks, or by CTAs that meet, its state is count, mean and sum of squared differences from it
// (Welford). A chunk's mean is taken relative to the mean so far, and to the first element before there is one; states
// are merged by Chan, Golub and LeVeque (1979). Every term of a sum of squares is positive, so that none cancels, and a
// constant row has its own value as mean and exactly 0 squares.
//
// Where lanes hold a row, the mean is taken first, then the differences from it: their squares, and their sum, which
// tells how far the first mean was off. So its rounding does not matter, and a constant row is exact there, too.
//
// Sums for a mean add shares of elements, each divided by a power of two that is no less than their number: the
// product is exact, and joins the sum in one fused operation. So they overflow nowhere. Counts are divided by through a
// reciprocal, off by an ulp where it is not exact: `/` is some 50 instructions, and a kernel that runs once through 300
// of them waits for each.
//
// A result is (x - mean) times rsqrtf(squares / N + eps), whose error is at most 2 ulp. Of differences of 1e20 the
// squares are inf and every result is 0; a NaN or an infinity makes a row of NaN. With eps = 0 a constant row gives 0 x
// inf = NaN; but 0 beyond 1e26 where lanes hold it, for the first mean is off by a bit whose square is inf. Elements of
// more than half of FP32's largest number (1.7e38) may lie further apart than it: their results are 0 or NaN.
#pragma once

#include "rowio.cuh"
#include "shuffles.cuh"

struct Layer {
  struct State {
    float count, mean, squares;
  };

  static __device__ __forceinline__ State nothing(float first) { return State{0.0f, first, 0.0f}; }

  // 1 over a count, or 0 over none; of powers of two it is exact, of others off by an ulp.
  static __device__ __forceinline__ float inverse(float count) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(count));
    return count > 0.0f ? result : 0.0f;
  }

  // Of two states whose means lie `step` apart. merge(a, b) is merge(b, a) to the bit: where counts are equal the mean
  // lies halfway, else further by a product of two differences. An empty state meets no inf x 0.
  static __device__ __forceinline__ State merge(State a, State b) {
    const float all = a.count + b.count, of_all = inverse(all), step = b.mean - a.mean;
    const float further = (b.count - a.count) * (0.5f * of_all), weight = a.count * b.count * of_all;
    return State{all, fmaf(step, further, fmaf(0.5f, a.mean, 0.5f * b.mean)),
                 fmaf(step * weight, step, a.squares + b.squares)};
  }

  // What each `lanes` neighbouring lanes of a warp have together; all of them get the same bits. Means are taken
  // relative to that of the first lane, so that equal ones stay what they are.
  template <int lanes> static __device__ __forceinline__ State across(State state) {
    const float near = __shfl_sync(0xffffffffu, state.mean, 0, lanes);
    const float all = rownorm::across<lanes>(state.count, rownorm::added), apart = state.mean - near;
    const float part = state.count > 0.0f ? state.count * inverse(all) * apart : 0.0f;
    const float further = rownorm::across<lanes>(part, rownorm::added);
    const float beyond = apart - further;
    const float squares = fmaf(state.count > 0.0f ? state.count * beyond : 0.0f, beyond, state.squares);
    return State{all, near + further, rownorm::across<lanes>(squares, rownorm::added)};
  }

  // Takes those of n values from `low` to before `high`, and leaves differences in their places.
  template <int n> static __device__ __forceinline__ void take(State &state, float (&value)[n], int low, int high) {
    if (low >= high) return;
    const bool whole = high - low == n;
    const float count = static_cast<float>(high - low);
#pragma unroll
    for (int i = 0; i < n; ++i) value[i] -= state.mean;
    if (!whole) fill(value, low, high, 0.0f);
    float step = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < n; ++i) step = fmaf(value[i], 1.0f / n, step);
    if (!whole) {
      step *= n * inverse(count);
      fill(value, low, high, step);
    }
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float apart = value[i] - step;
      squares = fmaf(apart, apart, squares);
    }
    const float all = state.count + count, share = count * inverse(all);
    const float between = step * (state.count * share);
    state = State{all, fmaf(step, share, state.mean), fmaf(between, step, state.squares + squares)};
  }

  template <int n>
  static __device__ __forceinline__ void fill(float (&value)[n], int low, int high, float outside) {
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (i < low || i >= high) value[i] = outside;
  }

  // The state of what a thread holds: packs of n elements, of which it has some, from the first on.
  template <int packs, int n, typename Held> static __device__ __forceinline__ State of(const Held &held) {
    float first[n];
    held.widen(0, first);
    State state = nothing(held.has(0) ? first[0] : 0.0f);
    float sum = 0.0f;
#pragma unroll(Held::unrolled)
    for (int p = 0; p < packs; ++p) {
      float value[n], part = 0.0f;
      held.widen(p, value);
#pragma unroll
      for (int i = 0; i < n; ++i) part = fmaf(value[i] - first[0], 1.0f / (packs * n), part);
      sum += held.has(p) ? part : 0.0f;
      state.count += held.has(p) ? n : 0;
    }
    state.mean = fmaf(sum, packs * n * inverse(state.count), state.mean);
#pragma unroll(Held::unrolled)
    for (int p = 0; p < packs; ++p) {
      float value[n], part = 0.0f;
      held.widen(p, value);
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const float apart = value[i] - state.mean;
        part = fmaf(apart, apart, part);
      }
      state.squares += held.has(p) ? part : 0.0f;
    }
    return state;
  }

  static __device__ __forceinline__ State of_one(float value) { return State{1.0f, value, 0.0f}; }

  // A finite sum over a count, as rounded once: a correction makes it so, in three instructions where `/` takes many.
  static __device__ __forceinline__ float mean_of(float sum, float count) {
    const float of_all = inverse(count), about = sum * of_all;
    return fmaf(fmaf(-about, count, sum), of_all, about);
  }

  static __device__ __forceinline__ float scale_of(float squares, float count, float eps) {
    return rsqrtf(__fdividef(squares, count) + eps);
  }

  // What an element of a row becomes, of which this is the state.
  struct Result {
    float mean, scale;
    __device__ __forceinline__ Result(State state, float count, float eps)
        : mean(state.mean), scale(scale_of(state.squares, count, eps)) {}
    __device__ __forceinline__ float operator()(float x) const { return (x - mean) * scale; }
  };

  struct Apart {
    float sum, squares;
  };

  // Turns a row that lanes hold into its results. Elements that are not the row's are 0.
  template <int pieces, int n, typename Row>
  static __device__ __forceinline__ void normalize(float (&value)[pieces][n], const Row &row, float count, float eps) {
    constexpr float share = 1.0f / Row::room;
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      float part = 0.0f;
#pragma unroll
      for (int i = 0; i < n; ++i) part = fmaf(value[p][i], share, part);
      sum += part;
    }
    const auto added = [](float a, float b) { return a + b; };
    const float near = __fdividef(row.template over_warps<0>(row.in_warp(sum, added), added), count * share);
    Apart apart{0.0f, 0.0f};
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      Apart part{0.0f, 0.0f};
#pragma unroll
      for (int i = 0; i < n; ++i) {
        value[p][i] = row.only(p, i, value[p][i] - near);
        part.sum += value[p][i];
        part.squares = fmaf(value[p][i], value[p][i], part.squares);
      }
      apart = both(apart, row.only(p, part));
    }
    const auto joined = [](Apart a, Apart b) { return both(a, b); };
    apart = row.template over_warps<1>(row.in_warp(apart, joined), joined);
    // Squares overflow long before sums of differences do, and then results are 0 whatever the mean is off by.
    const float off = apart.squares <= 3.402823466e38f ? mean_of(apart.sum, count) : 0.0f;
    const float squares = fmaf(-off * off, count, apart.squares);
    const float scale = scale_of(squares < 0.0f ? 0.0f : squares, count, eps);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
#pragma unroll
      for (int i = 0; i < n; ++i) value[p][i] = (value[p][i] - off) * scale;
    }
  }

  static __device__ __forceinline__ Apart both(Apart a, Apart b) { return Apart{a.sum + b.sum, a.squares + b.squares}; }
};
