// Moves N contiguous storage elements between global memory and FP32 registers.
//
// `load` and `store` use 16-byte transactions and need a 16-byte aligned address; `load_masked` and `store_masked` touch
// only the elements whose position lies in [0, limit) and need element alignment. Conversions to FP32 are exact, those
// from FP32 round to nearest even and overflow to infinity.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace rowio {

__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(__half value) { return __half2float(value); }
__device__ __forceinline__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename Storage> __device__ __forceinline__ Storage narrow(float value);
template <> __device__ __forceinline__ float narrow<float>(float value) { return value; }
template <> __device__ __forceinline__ __half narrow<__half>(float value) { return __float2half_rn(value); }
template <> __device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

// N elements as they lie in memory: the unit that is prefetched, since it is half as wide as FP32 for 2-byte storage.
template <typename Storage, int N> struct alignas(16) Pack {
  static_assert(N * sizeof(Storage) % 16 == 0, "a pack is made of whole 16-byte vectors");
  static constexpr int vectors = N * sizeof(Storage) / 16;
  Storage element[N];

  __device__ __forceinline__ void load(const Storage *source) {
    const uint4 *from = reinterpret_cast<const uint4 *>(source);
    uint4 *to = reinterpret_cast<uint4 *>(element);
#pragma unroll
    for (int v = 0; v < vectors; ++v) to[v] = from[v];
  }

  __device__ __forceinline__ void store(Storage *target) const {
    uint4 *to = reinterpret_cast<uint4 *>(target);
    const uint4 *from = reinterpret_cast<const uint4 *>(element);
#pragma unroll
    for (int v = 0; v < vectors; ++v) to[v] = from[v];
  }

  // Elements whose position, first + i, lies outside [0, limit) read as zero.
  __device__ __forceinline__ void load_masked(const Storage *row, long long first, long long limit) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const long long at = first + i;
      element[i] = (at >= 0 && at < limit) ? row[at] : narrow<Storage>(0.0f);
    }
  }

  __device__ __forceinline__ void store_masked(Storage *row, long long first, long long limit) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const long long at = first + i;
      if (at >= 0 && at < limit) row[at] = element[i];
    }
  }

  __device__ __forceinline__ void widen_to(float (&value)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] = widen(element[i]);
  }

  __device__ __forceinline__ void narrow_from(const float (&value)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) element[i] = narrow<Storage>(value[i]);
  }
};

} // namespace rowio
