// Moves N contiguous storage elements between global memory and FP32 registers.
//
// Three ways, from wide to narrow:
//   load_warp, store_warp      the whole warp moves 32 N adjacent elements; every 32-byte sector is one access
//   load_each, store_each      each thread moves its own N elements in 16-byte accesses
//   load_masked, store_masked  each thread moves those of its elements whose position lies in [0, limit), one by one
// The first two need 16-byte aligned addresses. Conversions to FP32 are exact; those from FP32 round to nearest even and
// overflow to infinity.
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

__device__ __forceinline__ void swap_with_neighbour(uint4 &vector) {
  vector.x = __shfl_xor_sync(0xffffffffu, vector.x, 1);
  vector.y = __shfl_xor_sync(0xffffffffu, vector.y, 1);
  vector.z = __shfl_xor_sync(0xffffffffu, vector.z, 1);
  vector.w = __shfl_xor_sync(0xffffffffu, vector.w, 1);
}

// N elements as they lie in memory: the unit that is prefetched, since it is half as wide as FP32 for 2-byte storage.
template <typename Storage, int N> struct alignas(16) Pack {
  static constexpr int vectors = N * sizeof(Storage) / 16;
  static constexpr int per_vector = 16 / sizeof(Storage);
  static_assert(N * sizeof(Storage) == 16 || N * sizeof(Storage) == 32, "a pack is one or two 16-byte vectors");
  Storage element[N];

  __device__ __forceinline__ uint4 &vector(int v) { return reinterpret_cast<uint4 *>(element)[v]; }
  __device__ __forceinline__ const uint4 &vector(int v) const { return reinterpret_cast<const uint4 *>(element)[v]; }

  __device__ __forceinline__ void load_each(const Storage *source) {
#pragma unroll
    for (int v = 0; v < vectors; ++v) vector(v) = reinterpret_cast<const uint4 *>(source)[v];
  }

  __device__ __forceinline__ void store_each(Storage *target) const {
#pragma unroll
    for (int v = 0; v < vectors; ++v) reinterpret_cast<uint4 *>(target)[v] = vector(v);
  }

  // A pack of two vectors would leave half of every sector to another instruction. So two neighbours first take the
  // even lane's pair together, then the odd lane's, and `settle` hands each its own: 4 shuffles against twice the sectors.
  // `source` is this thread's own address, as for load_each; nothing may be read before `settle`.
  __device__ __forceinline__ void load_warp(const Storage *source, int lane) {
    if (vectors == 1) return load_each(source);
    const uint4 *even = reinterpret_cast<const uint4 *>(source) - (lane & 1);
    vector(0) = even[0];
    vector(1) = even[2];
  }

  __device__ __forceinline__ void settle(int lane) {
    if (vectors == 1) return;
    uint4 given = lane & 1 ? vector(0) : vector(1);
    swap_with_neighbour(given);
    if (lane & 1) vector(0) = given;
    else vector(1) = given;
  }

  __device__ __forceinline__ void store_warp(Storage *target, int lane) {
    if (vectors == 1) return store_each(target);
    settle(lane);
    uint4 *even = reinterpret_cast<uint4 *>(target) - (lane & 1);
    even[0] = vector(0);
    even[2] = vector(1);
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int v = 0; v < vectors; ++v) vector(v) = make_uint4(0, 0, 0, 0);
  }

  // Elements whose position, first + i, lies outside [0, limit) read as zero. The two positions are reduced to indices of
  // this pack once: comparing 64-bit positions at each element made the code twice as long, and a short row pays for that.
  __device__ __forceinline__ void load_masked(const Storage *row, long long first, long long limit) {
    const int low = first_inside(first), high = end_inside(first, limit);
    const Storage *source = row + first;
#pragma unroll
    for (int i = 0; i < N; ++i) element[i] = i >= low && i < high ? source[i] : narrow<Storage>(0.0f);
  }

  __device__ __forceinline__ void store_masked(Storage *row, long long first, long long limit) const {
    const int low = first_inside(first), high = end_inside(first, limit);
    Storage *target = row + first;
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i >= low && i < high) target[i] = element[i];
  }

  static __device__ __forceinline__ int first_inside(long long first) {
    return first >= 0 ? 0 : first < -N ? N : static_cast<int>(-first);
  }

  static __device__ __forceinline__ int end_inside(long long first, long long limit) {
    const long long end = limit - first;
    return end <= 0 ? 0 : end > N ? N : static_cast<int>(end);
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
