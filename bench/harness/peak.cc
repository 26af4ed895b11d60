#include "bench/harness/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

namespace rapt::bench {
namespace {

// Twelve chains hide the latency on all common cores (two units, four or five cycles each) and fit in sixteen
// registers. They are written in assembly because the project's flags forbid the compiler to contract operations.
constexpr int kChains = 12;

#if defined(__x86_64__)
#define RAPT_FMA(chain) "vfmadd231ps %[x], %[y], %[" chain "]\n"  // chain = chain + x · y
#define RAPT_VECTOR "v"
#elif defined(__aarch64__)
#define RAPT_FMA(chain) "fmla %[" chain "].4s, %[x].4s, %[y].4s\n"
#define RAPT_VECTOR "w"
#endif
#define RAPT_CHAIN(name) [name] "+" RAPT_VECTOR(name)

// A macro rather than a template: a template would be compiled for the build's own instruction set, which may not have
// these registers.
#define RAPT_MULTIPLY_ADD(Vector)                                                                                      \
  Vector a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{}, i{}, j{}, k{}, l{};                                                   \
  const Vector x = a + 1e-3F;                                                                                          \
  const Vector y = a + 1e-3F;                                                                                          \
  for (std::int64_t n = 0; n < rounds; ++n) {                                                                          \
    __asm__ volatile(RAPT_FMA("a") RAPT_FMA("b") RAPT_FMA("c") RAPT_FMA("d") RAPT_FMA("e") RAPT_FMA("f") RAPT_FMA("g") \
                         RAPT_FMA("h") RAPT_FMA("i") RAPT_FMA("j") RAPT_FMA("k") RAPT_FMA("l")                         \
                     : RAPT_CHAIN(a), RAPT_CHAIN(b), RAPT_CHAIN(c), RAPT_CHAIN(d), RAPT_CHAIN(e), RAPT_CHAIN(f),       \
                       RAPT_CHAIN(g), RAPT_CHAIN(h), RAPT_CHAIN(i), RAPT_CHAIN(j), RAPT_CHAIN(k), RAPT_CHAIN(l)        \
                     : [x] RAPT_VECTOR(x), [y] RAPT_VECTOR(y));                                                        \
  }

#if defined(__x86_64__)
using Vector8 [[gnu::vector_size(32)]] = float;
using Vector16 [[gnu::vector_size(64)]] = float;
[[gnu::target("avx512f")]] void multiply_add_avx512(std::int64_t rounds) { RAPT_MULTIPLY_ADD(Vector16) }
[[gnu::target("avx2,fma")]] void multiply_add_avx2(std::int64_t rounds) { RAPT_MULTIPLY_ADD(Vector8) }
#elif defined(__aarch64__)
using Vector4 [[gnu::vector_size(16)]] = float;
void multiply_add_neon(std::int64_t rounds) { RAPT_MULTIPLY_ADD(Vector4) }
#endif

void multiply_add_scalar(std::int64_t rounds) {
  volatile float start = 1e-3F;  // unknown to the compiler, so that the loop stays
  const float x = start;
  float chains[kChains] = {};
  for (std::int64_t n = 0; n < rounds; ++n) {
    for (float& chain : chains) chain = std::fma(x, x, chain);
  }
  float sum = 0.0F;
  for (const float chain : chains) sum += chain;
  start = sum;
}

struct FmaLoop {
  std::string_view instructions;
  int lanes;
  void (*run)(std::int64_t rounds);
};

FmaLoop widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"avx512", 16, multiply_add_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"avx2", 8, multiply_add_avx2};
#elif defined(__aarch64__)
  return {"neon", 4, multiply_add_neon};
#endif
  return {"scalar", 1, multiply_add_scalar};
}

}  // namespace

double seconds_on_threads(int threads, const std::function<void(int)>& task) {
  std::atomic<int> waiting = 0;
  std::atomic<bool> started = false;
  std::vector<std::thread> others;
  for (int index = 1; index < threads; ++index) {
    others.emplace_back([&, index] {
      waiting.fetch_add(1);
      while (!started.load(std::memory_order_acquire)) std::this_thread::yield();
      task(index);
    });
  }
  while (waiting.load() < threads - 1) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  started.store(true, std::memory_order_release);
  task(0);
  for (std::thread& other : others) other.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double fma_rounds(std::int64_t rounds) {
  const FmaLoop loop = widest();
  loop.run(rounds);
  return 2.0 * kChains * loop.lanes * static_cast<double>(rounds);
}

std::string_view fma_instructions() { return widest().instructions; }

}  // namespace rapt::bench
