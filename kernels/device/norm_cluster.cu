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
// How many vectors of x have their weights asked for before they are used, for no load passes a store, for all that the
// compiler knows. Two vectors of weights a thread are 32 KiB a CTA of 1024, which is about what L2 sends in the time
// that it takes to answer; four where registers are left.
constexpr int asked = (pieces > 4 ? 2 : 4) / rownorm::room, ahead = asked < pieces ? asked : pieces;
// Whether the first of them are, before CTAs meet: over a meeting of states of three words, 32 held registers and eight
// of weights were up to 32 bytes a thread of local memory (layernorm_gamma_beta, 1024 threads, sm_90, NVRTC 13.0.88).
constexpr bool early = pieces <= 4 || sizeof(Algebra::State) == 4;

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

// What of each weight a vector of x meets.
struct Share {
  Vector of[rownorm::room];

  // `at` is the number of the first element in a row.
  __device__ __forceinline__ void ask(const rownorm::Given &given, int at) {
#pragma unroll
    for (int w = 0; w < rownorm::weights; ++w) {
      const Storage *source = given.weight[w] + at;
      if (on_boundary(source)) {
        of[w].load_each(source);
      } else {
#pragma unroll
        for (int i = 0; i < piece; ++i) of[w].element[i] = source[i];
      }
    }
  }

  __device__ __forceinline__ void ask_one(const rownorm::Given &given, int at) {
#pragma unroll
    for (int w = 0; w < rownorm::weights; ++w) of[w].element[0] = given.weight[w][at];
  }

  __device__ __forceinline__ void settle() {
#pragma unroll
    for (int w = 0; w < rownorm::weights; ++w) forget(of[w]);
  }

  // Turns elements into results.
  template <int n> __device__ __forceinline__ void finish(float (&value)[n], const Algebra::Result &result) const {
#pragma unroll
    for (int i = 0; i < n; ++i) value[i] = result(value[i]);
#pragma unroll
    for (int w = 0; w < rownorm::weights; ++w) rownorm::weigh(w, value, of[w].element);
  }
};

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

  Share share[pieces], of_end;
  const auto ask_weights = [&](int p) {
    if (p < pieces && p * threads < left) share[p].ask(given, first + p * threads * piece);
  };
#pragma unroll
  for (int p = 0; p < (early ? ahead : 0); ++p) ask_weights(p);

  const Algebra::Result result(all_of_cluster(state), static_cast<float>(width), given.eps);
#pragma unroll
  for (int p = 0; p < (early ? 0 : ahead); ++p) ask_weights(p);
  const bool wide_store = on_boundary(target + head);
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    if (p * threads >= left) continue;
    float value[piece];
    forget(held[p]);
    held[p].widen_to(value);
    share[p].settle();
    share[p].finish(value, result);
    held[p].narrow_from(value);
    ask_weights(p + ahead);
    store(held[p], target + first + p * threads * piece, wide_store);
  }
  if (has_end) {
    of_end.ask_one(given, end);
    single[0] = rowio::widen(alone);
    of_end.finish(single, result);
    target[end] = rowio::narrow<Storage>(single[0]);
  }
}
