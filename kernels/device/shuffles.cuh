// What the lanes of a warp have, combined by shuffles.
#pragma once

namespace rownorm {

// The value of the lane whose number differs in `distance`, word by word. The whole warp calls it.
template <typename Value> __device__ __forceinline__ Value shuffled(const Value &value, int distance) {
  constexpr int words = sizeof(Value) / 4;
  static_assert(words * 4 == sizeof(Value), "a value is whole words");
  unsigned int word[words];
  memcpy(word, &value, sizeof(Value));
#pragma unroll
  for (int w = 0; w < words; ++w) word[w] = __shfl_xor_sync(0xffffffffu, word[w], distance);
  Value other;
  memcpy(&other, word, sizeof(Value));
  return other;
}

// Combines what each `lanes` neighbouring lanes of a warp have; all of them get the result, for either order is the
// same to the bit. The whole warp calls it.
template <int lanes, typename Value, typename Merge> __device__ __forceinline__ Value across(Value value, Merge merge) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) value = merge(value, shuffled(value, distance));
  return value;
}

__device__ __forceinline__ float added(float a, float b) { return a + b; }

} // namespace rownorm
