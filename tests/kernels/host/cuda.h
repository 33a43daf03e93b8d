// What the kernels use of CUDA, for a host compiler: a thread is a fiber, and lanes wait for each other at every
// shuffle and barrier (launch.cpp). Inline PTX is replaced before compiling (tests/kernels/emulated.py).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __cluster_dims__(x, y, z)
#ifdef ROWSMITH_CLUSTER // CTAs of a cluster take turns in the same memory, which the scheduler keeps for each
#define __shared__ static __attribute__((section("shared_memory")))
#else
#define __shared__ static
#endif
#define __restrict__

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct Index {
  unsigned x;
};
extern Index threadIdx, blockIdx, gridDim;

struct __half {
  _Float16 value;
};
inline float __half2float(__half half) { return static_cast<float>(half.value); }
inline __half __float2half_rn(float value) { return {static_cast<_Float16>(value)}; }

template <typename Number> Number min(Number a, Number b) { return b < a ? b : a; }
template <typename Number> Number max(Number a, Number b) { return a < b ? b : a; }

template <typename To, typename From> To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are kept");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float __fdividef(float value, float by) { return value * (1.0f / by); }
inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
inline float __int_as_float(int bits) { return bits_as<float>(bits); }
inline float __uint_as_float(unsigned bits) { return bits_as<float>(bits); }
inline unsigned __float_as_uint(float value) { return bits_as<unsigned>(value); }

struct __nv_bfloat16 {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 value) { return __uint_as_float(static_cast<unsigned>(value.bits) << 16); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  const unsigned bits = __float_as_uint(value);
  if (value != value) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// PTX max and min order -0.0 below +0.0; a NaN loses, or with .NaN is the result.
inline float ptx_max(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  return a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
inline float ptx_min(float a, float b) { return -ptx_max(-a, -b); }
inline float ptx_max_nan(float a, float b) { return a != a || b != b ? NAN : ptx_max(a, b); }
inline float ptx_min_nan(float a, float b) { return a != a || b != b ? NAN : ptx_min(a, b); }
inline void ptx_copy(void *to, const void *from, size_t bytes) {
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % bytes) std::abort();
  std::memcpy(to, from, bytes);
}

// Of a cluster: waits for what it asked for, or says only that it is there; a word of another CTA's shared memory.
void cluster_arrive();
void cluster_wait();
void cluster_put(unsigned *place, int rank, unsigned word);

inline unsigned atomicInc(unsigned *counter, unsigned last) {
  const unsigned old = *counter;
  *counter = old >= last ? 0 : old + 1;
  return old;
}

enum class Shuffle { exclusive_or, from_lane, up };
void barrier();
uint64_t shuffle(unsigned mask, uint64_t value, Shuffle kind, int argument);

template <typename Value> Value shuffled(unsigned mask, Value value, Shuffle kind, int argument) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = shuffle(mask, word, kind, argument);
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <typename Value> Value __shfl_xor_sync(unsigned mask, Value value, int distance) {
  return shuffled(mask, value, Shuffle::exclusive_or, distance);
}
template <typename Value> Value __shfl_sync(unsigned mask, Value value, int lane, int lanes = 32) {
  return shuffled(mask, value, Shuffle::from_lane, lanes << 8 | lane);
}
// The distance, and the lanes that shuffle among themselves above it.
template <typename Value> Value __shfl_up_sync(unsigned mask, Value value, int distance, int lanes = 32) {
  return shuffled(mask, value, Shuffle::up, lanes << 8 | distance);
}
inline void __syncthreads() { barrier(); }
inline void __syncwarp() { __shfl_sync(0xffffffffu, 0u, 0); }
