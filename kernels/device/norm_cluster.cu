// <op>.cluster2x512x16 .. cluster16x1024x64: normalized rows that the CTAs of a cluster hold together, read once.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, and weights, on any element-aligned base
// Mapping      CLUSTER neighbouring CTAs take a row: equal runs of its 16-byte vectors, by rank; in a CTA vector v is
//              thread v mod T's. What lies before the first vector and after the last one are single elements of the
//              last CTA's threads
// Accumulator  FP32: the algebra's state of a thread's vectors in turn, shuffles in a warp, over warps and over CTAs
// Legality     rows of at most CLUSTER x T x items x phases elements; y is disjoint from x and from the weights;
//              compute capability 9.0
// Determinism  the order of additions depends on the recipe, the width, and where a row lies between 16-byte boundaries
//
// A vector stays in registers as it is stored, 64 elements of 2 bytes in 32 of them, and is widened twice: so one CTA
// of 1024 threads, which has 64 registers a thread, holds 65536 elements.
#include "norm_cluster.cuh"
#include "predicated.cuh"

namespace {

constexpr int piece = 16 / sizeof(Storage);
constexpr int pieces = items * ROWSMITH_PHASES / piece;
using Vector = rowio::Pack<Storage, piece>;

__device__ __forceinline__ bool on_boundary(const Storage *place) {
  return reinterpret_cast<unsigned long long>(place) % 16 == 0;
}

// Lets the compiler forget what a vector was widened to, which takes twice its registers: kept over the meeting, it was
// 32 bytes a thread of local memory in BF16 (softmax.cluster16x1024x64, sm_90, NVRTC 13.0.88).
__device__ __forceinline__ void forget(Vector &vector) {
  uint4 &word = vector.vector(0);
  asm volatile("" : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w));
}

__device__ __forceinline__ void store(const Vector &vector, Storage *target, bool wide) {
  if (wide) return vector.store_each(target);
#pragma unroll
  for (int i = 0; i < piece; ++i) target[i] = vector.element[i];
}

// Turns elements of a row, the first of which is number `at` of it, into results.
template <int n>
__device__ __forceinline__ void finish(float (&value)[n], const Algebra::Result &result, const rownorm::Given &given,
                                       int at) {
#pragma unroll
  for (int i = 0; i < n; ++i) value[i] = result(value[i]);
#pragma unroll
  for (int w = 0; w < rownorm::weights; ++w) {
    const Storage *source = given.weight[w] + at;
    rowio::Pack<Storage, piece> weight;
    if (n == piece && on_boundary(source)) {
      weight.load_each(source);
    } else {
#pragma unroll
      for (int i = 0; i < n; ++i) weight.element[i] = source[i];
    }
    rownorm::weigh(w, value, weight.element);
  }
}

} // namespace

extern "C" __global__ void __cluster_dims__(ROWSMITH_CLUSTER, 1, 1) __launch_bounds__(ROWSMITH_THREADS)
    ROWSMITH_ENTRY(const Storage *x, Storage *y, NORM_WEIGHTS long long rows, long long width, long long x_pitch,
                   long long y_pitch NORM_PARAMETERS) {
  cluster::begin();
  const rownorm::Given given = NORM_GIVEN;
  const int rank = blockIdx.x % ctas, lane = threadIdx.x, extent = static_cast<int>(width);
  const Storage *source = x + blockIdx.x / ctas * x_pitch;
  Storage *target = y + blockIdx.x / ctas * y_pitch;
  const int past = reinterpret_cast<unsigned long long>(source) % 16 / sizeof(Storage);
  const int head = min((piece - past) % piece, extent), vectors = (extent - head) / piece;
  const int each = (vectors + ctas - 1) / ctas, begin = rank * each;
  const int left = min(each, vectors - begin) - lane, first = head + (begin + lane) * piece;
  const bool has_end = rank == ctas - 1 && lane < extent - vectors * piece;
  const int end = lane < head ? lane : lane + vectors * piece;

  Vector held[pieces];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    held[p].clear();
    predicated::load(held[p].vector(0), source + first + p * threads * piece, p * threads < left);
  }
  const Storage alone = has_end ? source[end] : rowio::narrow<Storage>(0.0f);

  Algebra::State state = Algebra::nothing(rowio::widen(left > 0 ? held[0].element[0] : alone));
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    float value[piece];
    held[p].widen_to(value);
    if (p * threads < left) Algebra::take(state, value, 0, piece);
  }
  float single[1] = {rowio::widen(alone)};
  if (has_end) Algebra::take(state, single, 0, 1);

  const Algebra::Result result(all_of_cluster(state), static_cast<float>(width), given.eps);
  const bool wide_store = on_boundary(target + head);
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = first + p * threads * piece;
    if (p * threads >= left) continue;
    float value[piece];
    forget(held[p]);
    held[p].widen_to(value);
    finish(value, result, given, at);
    held[p].narrow_from(value);
    store(held[p], target + at, wide_store);
  }
  if (has_end) {
    single[0] = rowio::widen(alone);
    finish(single, result, given, end);
    target[end] = rowio::narrow<Storage>(single[0]);
  }
}
