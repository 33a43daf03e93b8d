// Loads and stores that a predicate lets happen, in PTX: no branch, and one address for all elements of a vector.
//
// Written with `if`, each element's access is a block of its own, in which the compiler works out the address again, and a
// vector's store is split in four: scan.cover32x8 was 256 instructions and is 144 (sm_90, FP16, NVRTC 13.0.88). Loads are
// ordinary ones: the assembler may put those through the non-coherent path off until others are used and their results
// stored, as it did with seven of the eight of scan.vector16x8r4 in FP32. A value whose load does not happen stays.
#pragma once

namespace predicated {

template <int bytes> struct BitsOf;
template <> struct BitsOf<2> { using Type = unsigned short; };
template <> struct BitsOf<4> { using Type = unsigned int; };

// The bits of an element.
template <typename Storage> using Bits = typename BitsOf<sizeof(Storage)>::Type;

__device__ __forceinline__ void load(unsigned short &value, const void *from, unsigned int go) {
  asm volatile("{ .reg .pred go; setp.ne.b32 go, %2, 0; @go ld.global.b16 %0, [%1]; }"
               : "+h"(value)
               : "l"(from), "r"(go));
}

__device__ __forceinline__ void load(unsigned int &value, const void *from, unsigned int go) {
  asm volatile("{ .reg .pred go; setp.ne.b32 go, %2, 0; @go ld.global.b32 %0, [%1]; }"
               : "+r"(value)
               : "l"(from), "r"(go));
}

__device__ __forceinline__ void load(uint4 &value, const void *from, unsigned int go) {
  asm volatile("{ .reg .pred go; setp.ne.b32 go, %5, 0; @go ld.global.v4.b32 {%0, %1, %2, %3}, [%4]; }"
               : "+r"(value.x), "+r"(value.y), "+r"(value.z), "+r"(value.w)
               : "l"(from), "r"(go));
}

__device__ __forceinline__ void store(void *to, unsigned short value, unsigned int go) {
  asm volatile("{ .reg .pred go; setp.ne.b32 go, %2, 0; @go st.global.b16 [%0], %1; }" ::"l"(to), "h"(value),
               "r"(go)
               : "memory");
}

__device__ __forceinline__ void store(void *to, unsigned int value, unsigned int go) {
  asm volatile("{ .reg .pred go; setp.ne.b32 go, %2, 0; @go st.global.b32 [%0], %1; }" ::"l"(to), "r"(value),
               "r"(go)
               : "memory");
}

__device__ __forceinline__ void store(void *to, const uint4 &value, unsigned int go) {
  asm volatile("{ .reg .pred go; setp.ne.b32 go, %5, 0; @go st.global.v4.b32 [%0], {%1, %2, %3, %4}; }" ::"l"(to),
               "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(go)
               : "memory");
}

} // namespace predicated
