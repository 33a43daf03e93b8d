// What every row reduction shares: the algebra, a row cut at 16-byte boundaries, and the way from many lanes to one.
//
// A kernel is compiled for one algebra (`sum`, `max`, `min`), one NaN policy (ROWSMITH_SUPPRESS) and one finish
// (ROWSMITH_MEAN divides by the number of elements that entered). A lane without elements holds the identity.
// max.NaN and min.NaN order -0.0 below +0.0 and give the canonical NaN; without .NaN a NaN loses against any number.
#pragma once

#include "rowio.cuh"

namespace reduce {

using Storage = ROWSMITH_STORAGE;
constexpr int per_vector = 16 / sizeof(Storage);
constexpr bool suppress = ROWSMITH_SUPPRESS;
constexpr bool mean = ROWSMITH_MEAN;
constexpr bool counts = suppress && mean;
using Vector = rowio::Pack<Storage, per_vector>;

struct sum {
  static constexpr bool additive = true;
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float combine(float a, float b) { return a + b; }
};

struct max {
  static constexpr bool additive = false;
  static __device__ __forceinline__ float identity() { return __int_as_float(0xff800000); }
  static __device__ __forceinline__ float combine(float a, float b) {
    float result;
    if constexpr (suppress) asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    else asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
};

struct min {
  static constexpr bool additive = false;
  static __device__ __forceinline__ float identity() { return __int_as_float(0x7f800000); }
  static __device__ __forceinline__ float combine(float a, float b) {
    float result;
    if constexpr (suppress) asm("min.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    else asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
};

using Algebra = ROWSMITH_ALGEBRA;

__device__ __forceinline__ float combine(float a, float b) { return Algebra::combine(a, b); }

// What a lane, a warp or a row knows so far. `nans` counts what a suppressing mean must not divide by.
struct State {
  float value;
  long long nans;
};

__device__ __forceinline__ State nothing() { return State{Algebra::identity(), 0}; }

__device__ __forceinline__ State combine(State a, State b) {
  return State{Algebra::combine(a.value, b.value), counts ? a.nans + b.nans : 0};
}

// A value as it enters. Only entering elements are suppressed: a NaN that additions make is a result.
__device__ __forceinline__ float enter(float value, int &nans) {
  if constexpr (suppress && Algebra::additive) {
    const bool number = value == value;
    if constexpr (counts) nans += !number;
    return number ? value : 0.0f;
  }
  return value;
}

__device__ __forceinline__ float enter(Storage element, int &nans, bool is_there) {
  return enter(is_there ? rowio::widen(element) : Algebra::identity(), nans);
}

// Halves until one is left: 3 combinations one after the other for 8 elements.
template <int n> __device__ __forceinline__ float tree(float (&value)[n]) {
#pragma unroll
  for (int half = n / 2; half > 0; half /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) value[i] = combine(value[i], value[i + half]);
  return value[0];
}

__device__ __forceinline__ float inside(const Vector &vector, int &nans) {
  float value[per_vector];
#pragma unroll
  for (int i = 0; i < per_vector; ++i) value[i] = enter(rowio::widen(vector.element[i]), nans);
  return tree(value);
}

// The same of a vector of which only elements [low, high) are the row's.
__device__ __forceinline__ float inside(const Vector &vector, int low, int high, int &nans) {
  float value[per_vector];
#pragma unroll
  for (int i = 0; i < per_vector; ++i) value[i] = enter(vector.element[i], nans, i >= low && i < high);
  return tree(value);
}

// A row, or the part of one that a CTA takes: `head` elements up to a 16-byte boundary, whole vectors, `tail` elements.
struct Row {
  const Storage *first;
  const Storage *body;
  const Storage *last;
  long long vectors;
  int head;
  int tail;
};

// Elements from the last 16-byte boundary to a row.
__device__ __forceinline__ unsigned int past_boundary(const Storage *row) {
  return static_cast<unsigned int>(reinterpret_cast<unsigned long long>(row)) % 16 / sizeof(Storage);
}

template <bool aligned> __device__ __forceinline__ Row cut(const Storage *row, long long width) {
  // Unsigned: a division of what may be negative takes three instructions more.
  const unsigned long long elements = width;
  if constexpr (aligned) return Row{row, row, row, static_cast<long long>(elements / per_vector), 0, 0};
  int head = (per_vector - past_boundary(row)) % per_vector;
  if (head > width) head = static_cast<int>(width);
  const unsigned long long rest = elements - head;
  const long long vectors = rest / per_vector;
  const Storage *body = row + head;
  return Row{row, body, body + vectors * per_vector, vectors, head, static_cast<int>(rest % per_vector)};
}

// The elements of a row before its first whole vector and after its last one, some of which a lane asks for first and lets
// enter last.
template <int lanes> struct Ends {
  static constexpr int each = (per_vector - 2) / lanes + 1;
  Storage head[each], tail[each];

  __device__ __forceinline__ void load(const Storage *first, int heads, const Storage *last, int tails, int lane) {
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (lane + e * lanes < heads) head[e] = first[lane + e * lanes];
      if (lane + e * lanes < tails) tail[e] = last[lane + e * lanes];
    }
  }

  __device__ __forceinline__ void join(State &state, int heads, int tails, int lane) const {
    int nans = 0;
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (lane + e * lanes < heads) state.value = combine(state.value, enter(rowio::widen(head[e]), nans));
      if (lane + e * lanes < tails) state.value = combine(state.value, enter(rowio::widen(tail[e]), nans));
    }
    if constexpr (counts) state.nans += nans;
  }
};

// Takes a row with `lanes` lanes, of which this is one: lane l has vectors l, l + lanes, ...; `unroll` of them make a
// step. The ends of the row are asked for first and enter last.
//
// A step's vectors are asked for one by one if they are there, and enter under branches of their own. Without branches in
// between, ptxas waits for the first of them before it asks for the last, to save registers: two latencies a step.
template <int lanes, int unroll, bool aligned>
__device__ __forceinline__ void gather(State &state, const Row &row, int lane) {
  Ends<lanes> ends;
  if constexpr (!aligned) ends.load(row.first, row.head, row.last, row.tail, lane);

  constexpr int step = unroll * lanes;
  const Storage *at = row.body + lane * per_vector;
  for (long long left = row.vectors - lane; left > 0; left -= step, at += step * per_vector) {
    const int rest = left < step ? static_cast<int>(left) : step;
    Vector next[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (u * lanes < rest) next[u].load_each(at + u * lanes * per_vector);
    float part = Algebra::identity();
    int nans = 0;
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (u * lanes < rest) part = combine(part, inside(next[u], nans));
    state = combine(state, State{part, nans});
  }
  if constexpr (!aligned) ends.join(state, row.head, row.tail, lane);
}

// Takes a short row by the vectors that cover it, from the boundary before it to the one after it: lane l has vectors
// l, l + lanes, ... What else the first and the last of them hold is of neighbours or gaps and does not enter, but it has
// to be there: where the row is not `surrounded` by the tensor, vectors that it does not fill are left to its ends. So a
// row of any offset takes one load where ends and vectors take three, with few lanes at each.
//
// A row begins in its first vector, so others have no low end. Where a warp takes several rows, nearly every load of it has
// some row's end, and vectors without one are not told apart.
template <int lanes, int unroll>
__device__ __forceinline__ void cover(State &state, const Storage *row, int width, bool surrounded, int lane) {
  constexpr int hop = lanes * per_vector;
  const int skip = past_boundary(row);
  int heads = 0, tails = 0;
  Ends<lanes> ends;
  if (!surrounded) {
    heads = (per_vector - skip) % per_vector;
    if (heads > width) heads = width;
    tails = static_cast<unsigned int>(width - heads) % per_vector;
    ends.load(row, heads, row + width - tails, tails, lane);
  }

  const Storage *at = row - skip + lane * per_vector;
  // Where the row begins and ends, and how far its vectors go, counted from the lane's next one.
  int low = skip - lane * per_vector, high = low + width;
  int reach = surrounded ? high : high - (per_vector - 1);
  for (; reach > 0; low -= unroll * hop, high -= unroll * hop, reach -= unroll * hop, at += unroll * hop) {
    const bool has_first = surrounded || low <= 0;
    Vector next[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (u * hop < reach && (u > 0 || has_first)) next[u].load_each(at + u * hop);
    float part = Algebra::identity();
    int nans = 0;
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const int from = u == 0 ? low : 0, to = high - u * hop;
      if (u * hop >= reach) break;
      if (u == 0 && !has_first) continue;
      const bool is_full = lanes == 32 && from <= 0 && to >= per_vector;
      part = combine(part, is_full ? inside(next[u], nans) : inside(next[u], from, to, nans));
    }
    state = combine(state, State{part, nans});
  }
  if (!surrounded) ends.join(state, heads, tails, lane);
}

// Combines the states of each `lanes` neighbouring lanes of a warp; all of them get the result. The whole warp calls it.
template <int lanes> __device__ __forceinline__ State across(State state) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    State other{__shfl_xor_sync(0xffffffffu, state.value, distance), 0};
    if constexpr (counts) other.nans = __shfl_xor_sync(0xffffffffu, state.nans, distance);
    state = combine(state, other);
  }
  return state;
}

// Writes a row's result: one cast, and for a mean one division by the elements that entered.
__device__ __forceinline__ void put(Storage *target, State state, long long width) {
  const float value = mean ? state.value / static_cast<float>(width - state.nans) : state.value;
  *target = rowio::narrow<Storage>(value);
}

} // namespace reduce
