// Runs a kernel's CTAs one after the other, the threads of each as fibers. A shuffle that not all 32 lanes of a warp
// reach, one whose lanes disagree, or a barrier that a thread misses ends the process with a message.
#include "cuda.h"

#include <memory>
#include <ucontext.h>
#include <vector>

#include "kernel.inc"

Index threadIdx, blockIdx, gridDim;

namespace {

enum class Wait { running, at_barrier, at_shuffle, done };

constexpr size_t stack_bytes = 1 << 16;

struct Fiber {
  ucontext_t context;
  Wait state;
  uint64_t given, taken;
  Shuffle kind;
  int argument;
  // Left as it is: a process holds a library for each kernel that it meets, and most of a stack is never touched.
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
};

std::vector<Fiber> fibers;
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

void pause(Wait state) {
  const unsigned me = threadIdx.x;
  fibers[me].state = state;
  swapcontext(&fibers[me].context, &scheduler);
  threadIdx.x = me;
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
    threadIdx.x = t;
    swapcontext(&scheduler, &fibers[t].context);
  }
  return alive;
}

void run_cta() {
  for (Fiber &fiber : fibers) {
    fiber.state = Wait::running;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    makecontext(&fiber.context, body, 0);
  }
  while (advance()) {
    bool released = false;
    for (size_t t = 0; t < fibers.size(); t += 32) released |= release(&fibers[t]);
    if (released) continue;
    bool waiting = false;
    for (Fiber &fiber : fibers) waiting |= fiber.state == Wait::at_barrier;
    for (Fiber &fiber : fibers) {
      if (waiting && fiber.state != Wait::at_barrier) fail("a barrier that not every thread reaches");
      if (waiting) fiber.state = Wait::running;
    }
  }
}

} // namespace

void barrier() { pause(Wait::at_barrier); }

uint64_t shuffle(unsigned mask, uint64_t value, Shuffle kind, int argument) {
  Fiber &mine = fibers[threadIdx.x];
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
  fibers.resize(threads);
  gridDim.x = ctas;
  for (int c = 0; c < ctas; ++c) {
    blockIdx.x = order[c];
    run_cta();
  }
}
