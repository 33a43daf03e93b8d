// Rows that the CTAs of a thread block cluster share: how a CTA gives its state to the others.
//
// CTAs of a cluster run at once, so that none waits for one that does not, and a row's state needs no memory but
// theirs. `begin` and its `wait` only tell that all of them run: nobody may write into a CTA that has not begun. They
// lie at the two ends of a CTA's own work, so that they cost nothing. After the second meeting each CTA reads its own
// shared memory alone: none can leave too early.
#pragma once

#include "norm_rows.cuh"

namespace {

constexpr int ctas = ROWSMITH_CLUSTER;

namespace cluster {

__device__ __forceinline__ void begin() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }

__device__ __forceinline__ void arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }

__device__ __forceinline__ void wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// Puts a word where CTA `rank` of the cluster has what `place` is in this one.
__device__ __forceinline__ void put(unsigned int *place, int rank, unsigned int word) {
  const unsigned int shared = static_cast<unsigned int>(__cvta_generic_to_shared(place));
  asm volatile("{ .reg .b32 to; mapa.shared::cluster.u32 to, %0, %1; st.shared::cluster.b32 [to], %2; }" ::"r"(shared),
               "r"(rank), "r"(word)
               : "memory");
}

} // namespace cluster

// The state of a row, of which each thread of the cluster's CTAs has a part. States are merged in an order that ranks,
// warps and lanes alone decide, so that every thread gets the same bits. The second half of `cluster::begin`.
__device__ __forceinline__ Algebra::State all_of_cluster(Algebra::State state) {
  constexpr int warps = threads / 32, words = sizeof(Algebra::State) / 4;
  __shared__ Algebra::State of_warp[warps];
  __shared__ unsigned int of_rank[ctas][words];
  state = Algebra::across<32>(state);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = state;
  __syncthreads();
  cluster::wait();
  if (threadIdx.x < 32) {
    state = Algebra::across<warps>(of_warp[threadIdx.x % warps]);
    unsigned int word[words];
    memcpy(word, &state, sizeof state);
    if (threadIdx.x < ctas) {
#pragma unroll
      for (int w = 0; w < words; ++w) cluster::put(&of_rank[blockIdx.x % ctas][w], threadIdx.x, word[w]);
    }
  }
  cluster::arrive();
  cluster::wait();
  memcpy(&state, of_rank[threadIdx.x % ctas], sizeof state);
  return Algebra::across<ctas>(state);
}

} // namespace
