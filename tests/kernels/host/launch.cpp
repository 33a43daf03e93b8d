// Runs a kernel's CTAs one after the other, or those of a cluster together, their threads as fibers. A shuffle that not
// all 32 lanes of a warp reach, one whose lanes disagree, a barrier that a thread misses, or a word put into a CTA that
// may not run ends the process with a message.
#include "cuda.h"

#include <memory>
#include <ucontext.h>
#include <vector>

#include "kernel.inc"

Index threadIdx, blockIdx, gridDim;

namespace {

#ifdef ROWSMITH_CLUSTER
constexpr unsigned cluster_ctas = ROWSMITH_CLUSTER;
#else
constexpr unsigned cluster_ctas = 1;
#endif

enum class Wait { running, at_barrier, at_cluster, at_shuffle, done };

constexpr size_t stack_bytes = 1 << 16;

struct Fiber {
  ucontext_t context;
  Wait state;
  uint64_t given, taken;
  Shuffle kind;
  int argument;
  bool arrived;
  int met; // how often all threads of the cluster were there
  // Left as it is: a process holds a library for each kernel that it meets, and most of a stack is never touched.
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
};

std::vector<Fiber> fibers; // a CTA's threads, then the next one's of the cluster
unsigned current, first_cta;
ucontext_t scheduler;

struct Launch {
  const ROWSMITH_STORAGE *x;
  ROWSMITH_STORAGE *y;
  unsigned long long *workspace;
  const ROWSMITH_STORAGE *weights[2];
  long long rows, width, x_pitch, y_pitch, inner;
  float parameter;
  int first, second;
} launch;

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "%s in thread %u of CTA %u\n", what, threadIdx.x, blockIdx.x);
  std::abort();
}

#ifdef ROWSMITH_CLUSTER
extern "C" char __start_shared_memory[], __stop_shared_memory[];
std::vector<char> memory_of[cluster_ctas]; // of the CTAs that are not in their turn
unsigned in_turn;

void give_turn(unsigned cta) {
  if (cta == in_turn) return;
  memory_of[in_turn].assign(__start_shared_memory, __stop_shared_memory);
  memory_of[cta].resize(memory_of[in_turn].size());
  std::memcpy(__start_shared_memory, memory_of[cta].data(), memory_of[cta].size());
  in_turn = cta;
}
#else
void give_turn(unsigned) {}
#endif

unsigned threads_of_cta() { return fibers.size() / cluster_ctas; }

void resume(unsigned fiber) {
  current = fiber;
  threadIdx.x = fiber % threads_of_cta();
  blockIdx.x = first_cta + fiber / threads_of_cta();
  give_turn(fiber / threads_of_cta());
  swapcontext(&scheduler, &fibers[fiber].context);
}

void pause(Wait state) {
  Fiber &mine = fibers[current];
  mine.state = state;
  swapcontext(&mine.context, &scheduler);
}

// What some kernels take besides: see kernels/operands.py.
#if ROWSMITH_WEIGHTS == 0
#define WEIGHTS
#elif ROWSMITH_WEIGHTS == 1
#define WEIGHTS l.weights[0],
#else
#define WEIGHTS l.weights[0], l.weights[1],
#endif
#if ROWSMITH_PARAMETERS == 0
#define PARAMETERS
#else
#define PARAMETERS , l.parameter
#endif
#if INTERLEAVED
#define INNER , l.inner
#else
#define INNER
#endif

void body() {
  const Launch &l = launch;
#if ARGUMENTS == 0
  ROWSMITH_ENTRY(l.x, l.y, WEIGHTS l.rows, l.width, l.x_pitch, l.y_pitch INNER PARAMETERS);
#elif ARGUMENTS == 1
  ROWSMITH_ENTRY(l.x, l.y, WEIGHTS l.rows, l.width, l.x_pitch, l.y_pitch PARAMETERS, l.first);
#else
  ROWSMITH_ENTRY(l.x, l.y, l.workspace, l.rows, l.width, l.x_pitch, l.y_pitch, l.first, l.second);
#endif
  pause(Wait::done);
}

int source_lane(int lane, Shuffle kind, int argument) {
  if (kind == Shuffle::exclusive_or) return lane ^ argument;
  const int lanes = argument >> 8, first = lane / lanes * lanes, distance = argument & 255;
  if (kind == Shuffle::from_lane) return first + distance % lanes;
  return lane - distance < first ? lane : lane - distance;
}

// Lets the warp go on if all of its lanes are at the same shuffle.
bool release(Fiber *warp) {
  int there = 0;
  for (int l = 0; l < 32; ++l) there += warp[l].state == Wait::at_shuffle;
  if (there == 0) return false;
  if (there != 32) fail("a shuffle without its 32 lanes");
  for (int l = 0; l < 32; ++l) {
    if (warp[l].kind != warp[0].kind || warp[l].argument != warp[0].argument) fail("lanes at different shuffles");
    warp[l].taken = warp[source_lane(l, warp[l].kind, warp[l].argument)].given;
  }
  for (int l = 0; l < 32; ++l) warp[l].state = Wait::running;
  return true;
}

// Runs every thread up to where it waits; false when all have ended.
bool advance() {
  bool alive = false;
  for (unsigned t = 0; t < fibers.size(); ++t) {
    alive |= fibers[t].state != Wait::done;
    if (fibers[t].state != Wait::running) continue;
    resume(t);
  }
  return alive;
}

// Lets the `count` fibers from `first` on go if they are all at the same barrier.
bool let_go(unsigned first, unsigned count, Wait barrier) {
  unsigned there = 0;
  for (unsigned t = first; t < first + count; ++t) there += fibers[t].state == barrier;
  if (there == 0) return false;
  if (there != count) fail("a barrier that not every thread reaches");
  for (unsigned t = first; t < first + count; ++t) {
    fibers[t].state = Wait::running;
    if (barrier != Wait::at_cluster) continue;
    if (!fibers[t].arrived) fail("a wait for a cluster by a thread that has not arrived");
    fibers[t].arrived = false;
    ++fibers[t].met;
  }
  return true;
}

void run_ctas() {
  for (Fiber &fiber : fibers) {
    fiber.state = Wait::running;
    fiber.arrived = false;
    fiber.met = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    makecontext(&fiber.context, body, 0);
  }
  while (advance()) {
    bool released = false;
    for (size_t t = 0; t < fibers.size(); t += 32) released |= release(&fibers[t]);
    if (released) continue;
    for (unsigned c = 0; c < cluster_ctas; ++c)
      released |= let_go(c * threads_of_cta(), threads_of_cta(), Wait::at_barrier);
    if (!released) let_go(0, fibers.size(), Wait::at_cluster);
  }
}

} // namespace

void barrier() { pause(Wait::at_barrier); }

#ifdef ROWSMITH_CLUSTER
void cluster_arrive() {
  if (fibers[current].arrived) fail("a second arrival at a cluster before the first is waited for");
  fibers[current].arrived = true;
}

void cluster_wait() { pause(Wait::at_cluster); }

void cluster_put(unsigned *place, int rank, unsigned word) {
  if (fibers[current].met == 0) fail("a word put into a CTA that may not have begun");
  for (unsigned t = 0; t < threads_of_cta(); ++t)
    if (fibers[rank * threads_of_cta() + t].state == Wait::done) fail("a word put into a CTA that has ended");
  if (static_cast<unsigned>(rank) == in_turn) *place = word;
  else std::memcpy(memory_of[rank].data() + (reinterpret_cast<char *>(place) - __start_shared_memory), &word, 4);
}
#endif

uint64_t shuffle(unsigned mask, uint64_t value, Shuffle kind, int argument) {
  Fiber &mine = fibers[current];
  if (mask != 0xffffffffu) fail("a shuffle of fewer than 32 lanes");
  mine.given = value;
  mine.kind = kind;
  mine.argument = argument;
  pause(Wait::at_shuffle);
  return mine.taken;
}

extern "C" void run(const void *x, void *y, void *workspace, const void *gamma, const void *beta, long long rows,
                    long long width, long long x_pitch, long long y_pitch, long long inner, float parameter, int first,
                    int second, int threads, int ctas, const int *order) {
  using Storage = ROWSMITH_STORAGE;
  launch = {static_cast<const Storage *>(x),
            static_cast<Storage *>(y),
            static_cast<unsigned long long *>(workspace),
            {static_cast<const Storage *>(gamma), static_cast<const Storage *>(beta)},
            rows,
            width,
            x_pitch,
            y_pitch,
            inner,
            parameter,
            first,
            second};
  fibers.resize(threads * cluster_ctas);
  gridDim.x = ctas;
  for (unsigned c = 0; c < ctas / cluster_ctas; ++c) {
    first_cta = order[c] * cluster_ctas;
    run_ctas();
  }
  if (cluster_ctas > 1) fibers.clear(); // up to a GiB of stacks, of which a process has as many as it meets kernels
}
