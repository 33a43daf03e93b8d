// LayerNorm as the algebra of a row normalization, in FP32.
//
// Where a row is read in chunks, its state is count, mean and sum of squared differences from it (Welford). A chunk's
// mean is taken relative to the mean so far, and to the first element before there is one; states are merged by Chan,
// Golub and LeVeque (1979). Every term of a sum of squares is positive, so that none cancels, and a constant row has
// its own value as mean and exactly 0 squares.
//
// Where lanes hold a row, the mean is taken first, then the differences from it: their squares, and their sum, which
// tells how far the first mean was off. So its rounding does not matter, and a constant row is exact there, too.
//
// Sums for a mean add shares of elements, each divided by a power of two that is no less than their number: the
// product is exact, and joins the sum in one fused operation. So they overflow nowhere.
//
// A result is (x - mean) times rsqrtf(squares / N + eps), whose error is at most 2 ulp. Of differences of 1e20 the
// squares are inf and every result is 0; a NaN or an infinity makes a row of NaN. With eps = 0 a constant row gives 0 x
// inf = NaN; but 0 beyond 1e26 where lanes hold it, for the first mean is off by a bit whose square is inf. Elements of
// more than half of FP32's largest number (1.7e38) may lie further apart than it: their results are 0 or NaN.
#pragma once

#include "rowio.cuh"

struct Layer {
  static constexpr bool commutes = false;

  struct State {
    float count, mean, squares;
  };

  static __device__ __forceinline__ State nothing(float first) { return State{0.0f, first, 0.0f}; }

  // Adds b, whose mean lies `step` beyond a's. The products are in an order in which an empty state meets no inf x 0.
  static __device__ __forceinline__ State merged(State a, float count, float step, float squares) {
    const float all = a.count + count, share = all > 0.0f ? count / all : 0.0f;
    return State{all, a.mean + step * share, a.squares + squares + step * (a.count * share) * step};
  }

  static __device__ __forceinline__ State merge(State a, State b) {
    return merged(a, b.count, b.mean - a.mean, b.squares);
  }

  template <typename Across> static __device__ __forceinline__ State joined(State state, Across across) {
    return across(state, [](State a, State b) { return merge(a, b); });
  }

  // Takes those of n values from `low` to before `high`, and leaves differences in their places.
  template <int n> static __device__ __forceinline__ void take(State &state, float (&value)[n], int low, int high) {
    if (low >= high) return;
    const bool whole = high - low == n;
    const float count = static_cast<float>(high - low);
#pragma unroll
    for (int i = 0; i < n; ++i) value[i] -= state.mean;
    if (!whole) fill(value, low, high, 0.0f);
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < n; ++i) sum += value[i] * (1.0f / n);
    const float step = whole ? sum : sum / (count * (1.0f / n));
    if (!whole) fill(value, low, high, step);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float apart = value[i] - step;
      squares += apart * apart;
    }
    state = merged(state, count, step, squares);
  }

  template <int n>
  static __device__ __forceinline__ void fill(float (&value)[n], int low, int high, float outside) {
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (i < low || i >= high) value[i] = outside;
  }

  // What an element of a row becomes, of which this is the state.
  struct Result {
    float mean, scale;
    __device__ __forceinline__ Result(State state, float count, float eps)
        : mean(state.mean), scale(rsqrtf(state.squares / count + eps)) {}
    __device__ __forceinline__ float operator()(float x) const { return (x - mean) * scale; }
  };

  struct Apart {
    float sum, squares;
  };

  // Turns a row that lanes hold into its results.
  template <int pieces, int n, typename Row>
  static __device__ __forceinline__ void normalize(float (&value)[pieces][n], const Row &row, float count, float eps) {
    constexpr int room = Row::lanes * pieces * n;
    static_assert((room & (room - 1)) == 0, "a share of an element is exact");
    constexpr float share = 1.0f / room;
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      float part = 0.0f;
#pragma unroll
      for (int i = 0; i < n; ++i) part += value[p][i] * share;
      sum += part;
    }
    const auto added = [](float a, float b) { return a + b; };
    const float near = row.template over_warps<0>(row.in_warp(sum, added), added) / (count * share);
    Apart apart{0.0f, 0.0f};
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      Apart part{0.0f, 0.0f};
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const float difference = value[p][i] = row.has(p, i) ? value[p][i] - near : 0.0f;
        part.sum += difference;
        part.squares += difference * difference;
      }
      apart = both(apart, part);
    }
    const auto joined = [](Apart a, Apart b) { return both(a, b); };
    apart = row.template over_warps<1>(row.in_warp(apart, joined), joined);
    // Squares overflow long before sums of differences do, and then results are 0 whatever the mean is off by.
    const float off = apart.squares <= 3.402823466e38f ? apart.sum / count : 0.0f;
    const float variance = apart.squares / count - off * off;
    const Result result(State{1.0f, off, variance < 0.0f ? 0.0f : variance}, 1.0f, eps);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
#pragma unroll
      for (int i = 0; i < n; ++i) value[p][i] = result(value[p][i]);
    }
  }

  static __device__ __forceinline__ Apart both(Apart a, Apart b) { return Apart{a.sum + b.sum, a.squares + b.squares}; }
};
