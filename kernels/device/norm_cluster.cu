// <op>.cluster4x256x16 .. cluster8x256x64cs: normalized rows that the CTAs of a cluster hold together, read once.
//
// Layout       rows of adjacent elements, x_pitch and y_pitch elements apart, and weights: where WHOLE, whole vectors
//              on 16-byte boundaries, results too; else on any element-aligned base
// Mapping      CLUSTER neighbouring CTAs take a row: equal runs of its 16-byte vectors, by rank; in a CTA vector v is
//              thread v mod T's. What lies before the first vector and after the last one are single elements of the
//              last CTA's threads
// Accumulator  FP32: the algebra's state of a thread's vectors in turn, shuffles in a warp, over warps and over CTAs
// Legality     rows of at most CLUSTER x T x items x phases elements; y is disjoint from x and from the weights;
//              compute capability 9.0
// Determinism  the order of additions depends on the recipe, the width, and where a row lies between 16-byte boundaries
//
// A vector is kept as it is stored and widened as often as it is used. In registers, 64 elements of 2 bytes a thread of
// 1024 left too few for the rest: 64 to 168 bytes a thread in local memory (sm_90, NVRTC 13.0.88).
#include "norm_cluster.cuh"
#include "predicated.cuh"

namespace {

constexpr int piece = 16 / sizeof(Storage);
constexpr int pieces = items * ROWSMITH_PHASES / piece;
// Whether rows are whole vectors on boundaries, weights and results too.
constexpr bool whole = ROWSMITH_WHOLE;
using Vector = rowio::Pack<Storage, piece>;

__device__ __forceinline__ bool on_boundary(const Storage *place) {
  return reinterpret_cast<unsigned long long>(place) % 16 == 0;
}

// Where a thread's vectors are, as they are stored: in its registers, or in places of its own in shared memory, which
// leaves registers to more CTAs.
enum class Kept { registers, shared };
constexpr Kept kept = Kept::ROWSMITH_KEPT;

// Weights are on their way while CTAs meet, where shared memory has places for them beside L1.
constexpr int staged_vectors = pieces * rownorm::weights;
constexpr bool stages =
    whole && kept == Kept::registers && staged_vectors > 0 && staged_vectors * threads * 16 <= 40 << 10;

// Vectors of a thread: those before `left`, counted in threads.
struct Held {
  Vector vector[kept == Kept::registers ? pieces : 1];
  uint4 *place;
  int left;
  static constexpr int unrolled = kept == Kept::registers ? pieces : 2;

  __device__ __forceinline__ bool has(int p) const { return p * threads < left; }

  __device__ __forceinline__ void ask(int p, const Storage *source) {
    if constexpr (kept == Kept::registers) {
      vector[p].clear();
      predicated::load(vector[p].vector(0), source, has(p));
    } else if (has(p)) {
      rownorm::copy_vector(place + p * threads, source);
    } else {
      place[p * threads] = make_uint4(0, 0, 0, 0);
    }
  }

  __device__ __forceinline__ void settle() {
    if constexpr (kept == Kept::shared) {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
  }

  __device__ __forceinline__ void widen(int p, float (&value)[piece]) const {
    if constexpr (kept == Kept::registers) {
      rownorm::widen<Storage>(vector[p], value);
    } else {
      Vector read;
      read.vector(0) = place[p * threads];
      rownorm::widen<Storage>(read, value);
    }
  }
};

__device__ __forceinline__ void store(const Vector &vector, Storage *target, bool wide) {
  if (whole || wide) return vector.store_each(target);
#pragma unroll
  for (int i = 0; i < piece; ++i) target[i] = vector.element[i];
}

// Reads n elements that all rows share, as a vector where they are one.
template <int n> __device__ __forceinline__ void read(float (&value)[n], const Storage *source) {
  if constexpr (n == piece) {
    if (whole || on_boundary(source)) {
      Vector vector;
      vector.load_each(source);
      return rownorm::widen<Storage>(vector, value);
    }
  }
#pragma unroll
  for (int i = 0; i < n; ++i) value[i] = rowio::widen(source[i]);
}

// Turns elements of a row, the first of which is number `at` of it, into results.
template <int n>
__device__ __forceinline__ void finish(float (&value)[n], const Algebra::Result &result, const rownorm::Given &given,
                                       int at) {
#pragma unroll
  for (int i = 0; i < n; ++i) value[i] = result(value[i]);
  float of[rownorm::room][n];
#pragma unroll
  for (int w = 0; w < rownorm::weights; ++w) read(of[w], given.weight[w] + at);
  rownorm::weigh(value, of);
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
  const int past = whole ? 0 : reinterpret_cast<unsigned long long>(source) % 16 / sizeof(Storage);
  const int head = whole ? 0 : min((piece - past) % piece, extent), vectors = (extent - head) / piece;
  const int each = (vectors + ctas - 1) / ctas, begin = rank * each;
  const int left = min(each, vectors - begin) - lane, first = head + (begin + lane) * piece;
  const bool has_end = !whole && rank == ctas - 1 && lane < extent - vectors * piece;
  const int end = lane < head ? lane : lane + vectors * piece;
  __shared__ uint4 staged[stages ? staged_vectors : 1][threads];

  __shared__ uint4 places[kept == Kept::shared ? pieces : 1][threads];

  Held held{{}, &places[0][lane], left};
#pragma unroll
  for (int p = 0; p < pieces; ++p) held.ask(p, source + first + p * threads * piece);
  const Storage alone = has_end ? source[end] : rowio::narrow<Storage>(0.0f);
  if constexpr (stages) {
#pragma unroll
    for (int v = 0; v < staged_vectors; ++v) {
      const int p = v / rownorm::room;
      if (held.has(p))
        rownorm::copy_vector(&staged[v][lane], given.weight[v % rownorm::room] + first + p * threads * piece);
    }
  }

  held.settle();
  Algebra::State state = Algebra::of<pieces, piece>(held);
  if (has_end) state = Algebra::merge(state, Algebra::of_one(rowio::widen(alone)));

  const Algebra::Result result(all_of_cluster(state), static_cast<float>(width), given.eps);
  const bool wide_store = on_boundary(target + head);
  if constexpr (stages) {
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
#pragma unroll(Held::unrolled)
  for (int p = 0; p < pieces; ++p) {
    const int at = first + p * threads * piece;
    if (!held.has(p)) continue;
    float value[piece];
    held.widen(p, value);
    if constexpr (stages) {
      Vector weight[rownorm::room];
#pragma unroll
      for (int w = 0; w < rownorm::weights; ++w) weight[w].vector(0) = staged[p * rownorm::room + w][lane];
#pragma unroll
      for (int i = 0; i < piece; ++i) value[i] = result(value[i]);
      rownorm::weigh(value, weight);
    } else {
      finish(value, result, given, at);
    }
    Vector out;
    out.narrow_from(value);
    store(out, target + at, wide_store);
  }
  if (has_end) {
    float single[1] = {rowio::widen(alone)};
    finish(single, result, given, end);
    target[end] = rowio::narrow<Storage>(single[0]);
  }
}
