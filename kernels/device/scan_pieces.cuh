// A lane's piece of a row that some lanes hold whole: N adjacent elements, moved in one of three ways.
//
//   elements  one by one, from any base: those before the row's end
//   vectors   all of them or none, as a 16-byte vector: a row begins on a boundary and ends where a vector does
//   cover     as a vector where all of them are the row's, else those that are, one by one: pieces lie between the
//             16-byte boundaries of x, so a row's first piece may begin before it
//
// `ask` reads and `settle` puts together what was read, so that all pieces are asked for before the first is waited for.
// Past the end of a row is whatever a register held, or zero; before its start is zero.
#pragma once

#include "predicated.cuh"
#include "rowio.cuh"

namespace {

using Storage = ROWSMITH_STORAGE;
enum class Moves { elements, vectors, cover };

// Where a piece is: `left` elements on, the row ends; the first `skip` of the piece lie before the row. `wide_store` says
// whether its place in y is on a 16-byte boundary, too.
struct Place {
  const Storage *source;
  Storage *target;
  int left, skip;
  bool wide_store;
};

template <int N, Moves> struct Piece {
  Storage element[N];

  __device__ __forceinline__ void ask(const Place &place) {
#pragma unroll
    for (int i = 0; i < N; ++i) element[i] = i < place.left ? place.source[i] : rowio::narrow<Storage>(0.0f);
  }

  __device__ __forceinline__ void settle() {}

  __device__ __forceinline__ void store(const Place &place) const {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < place.left) place.target[i] = element[i];
  }

  __device__ __forceinline__ void widen_to(float (&value)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] = rowio::widen(element[i]);
  }

  __device__ __forceinline__ void narrow_from(const float (&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) element[i] = rowio::narrow<Storage>(value[i]);
  }
};

template <int N> struct Piece<N, Moves::vectors> : rowio::Pack<Storage, N> {
  __device__ __forceinline__ void ask(const Place &place) {
    predicated::load(this->vector(0), place.source, place.left > 0);
  }

  __device__ __forceinline__ void settle() {}

  __device__ __forceinline__ void store(const Place &place) const {
    if (place.left > 0) this->store_each(place.target);
  }
};

template <int N> struct Piece<N, Moves::cover> : rowio::Pack<Storage, N> {
  using Bits = predicated::Bits<Storage>;
  static constexpr unsigned int all = (1u << N) - 1;
  unsigned int inside; // bit i: element i is the row's
  Bits alone[N];

  __device__ __forceinline__ void ask(const Place &place) {
    const int past = place.left < N ? N - max(place.left, 0) : 0;
    inside = all >> past & all << place.skip;
    predicated::load(this->vector(0), place.source, inside == all);
    const unsigned int ends = inside == all ? 0 : inside;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      alone[i] = 0;
      predicated::load(alone[i], place.source + i, ends & 1u << i);
    }
  }

  __device__ __forceinline__ void settle() {
    uint4 &vector = this->vector(0);
    vector.x = inside == all ? vector.x : word(0);
    vector.y = inside == all ? vector.y : word(1);
    vector.z = inside == all ? vector.z : word(2);
    vector.w = inside == all ? vector.w : word(3);
  }

  __device__ __forceinline__ unsigned int word(int w) const {
    if constexpr (sizeof(Storage) == 4) return alone[w];
    else return alone[2 * w] | static_cast<unsigned int>(alone[2 * w + 1]) << 16;
  }

  __device__ __forceinline__ void store(const Place &place) const {
    const bool whole = inside == all && place.wide_store;
    predicated::store(place.target, this->vector(0), whole);
    const unsigned int rest = whole ? 0 : inside;
#pragma unroll
    for (int i = 0; i < N; ++i)
      predicated::store(place.target + i, reinterpret_cast<const Bits *>(this->element)[i], rest & 1u << i);
  }
};

} // namespace
