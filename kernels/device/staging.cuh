// Moves adjacent whole rows between global memory and a warp's shared memory: coalesced there, a lane's own here.
//
// A warp's rows are one span of 16-byte vectors, of which lane l owns the `pieces` from l x pieces on. In shared memory a
// lane's begin an odd number of vectors after those of the lane before, so that eight lanes together meet every bank
// once; `pieces` is known when compiling, so that no vector's owner takes a division. The span's global address is a
// multiple of 16 bytes. What lies past its end is not moved and not set.
#pragma once

namespace staging {

template <typename Storage> constexpr int per_vector = 16 / sizeof(Storage);

// Where the span's vector `v` lies.
template <int pieces> __device__ __forceinline__ int place(int v) { return pieces % 2 ? v : v + v / pieces; }

// Vectors that a warp's shared memory must hold.
template <int pieces> constexpr int room = 32 * (pieces | 1);

__device__ __forceinline__ void copy_vector(void *to, const void *from) {
  const unsigned int shared = static_cast<unsigned int>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

// Copies the span's first `elements` to shared memory, all of them asked for at once.
template <int pieces, typename Storage>
__device__ __forceinline__ void take_in(Storage *staged, const Storage *from, int elements, int lane) {
  constexpr int each = per_vector<Storage>;
  const int whole = elements / each, rest = elements % each;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int v = lane + 32 * p;
    if (v < whole) copy_vector(staged + place<pieces>(v) * each, from + v * each);
  }
  if (lane < rest) staged[place<pieces>(whole) * each + lane] = from[whole * each + lane];
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
}

// Copies the span's first `elements` from shared memory.
template <int pieces, typename Storage>
__device__ __forceinline__ void give_out(Storage *to, const Storage *staged, int elements, int lane) {
  constexpr int each = per_vector<Storage>;
  const int whole = elements / each, rest = elements % each;
  __syncwarp();
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int v = lane + 32 * p;
    if (v < whole) reinterpret_cast<uint4 *>(to)[v] = reinterpret_cast<const uint4 *>(staged)[place<pieces>(v)];
  }
  if (lane < rest) to[whole * each + lane] = staged[place<pieces>(whole) * each + lane];
}

// Copies a lane's own vectors to its registers, where `element` begins on a 16-byte boundary, and back.
template <int pieces, typename Storage>
__device__ __forceinline__ void read_own(Storage *element, const Storage *staged, int lane) {
  const uint4 *own = reinterpret_cast<const uint4 *>(staged) + lane * (pieces | 1);
#pragma unroll
  for (int p = 0; p < pieces; ++p) reinterpret_cast<uint4 *>(element)[p] = own[p];
}

template <int pieces, typename Storage>
__device__ __forceinline__ void write_own(Storage *staged, const Storage *element, int lane) {
  uint4 *own = reinterpret_cast<uint4 *>(staged) + lane * (pieces | 1);
#pragma unroll
  for (int p = 0; p < pieces; ++p) own[p] = reinterpret_cast<const uint4 *>(element)[p];
}

} // namespace staging
