#include "emulated/block.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <ucontext.h>
#include <utility>
#include <vector>

#include "support/sanitizers.h"

#if defined(__SANITIZE_ADDRESS__) || RAPT_TEST_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define RAPT_TEST_ASAN 1
#endif

namespace rapt::test {
namespace {

constexpr std::size_t kStackBytes = std::size_t{192} << 10;  // unoptimised code under a sanitizer needs large stacks

class Block;
Block* running = nullptr;

// A thread of the GPU.
struct Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
  void* fake_stack = nullptr;
  bool done = false;
  Ready ready = nullptr;  // null: it can continue
  const void* object = nullptr;
  std::uint64_t value = 0;

  bool can_run() const { return !done && (ready == nullptr || ready(object, value)); }
};

struct Warp {
  std::array<WarpValues, 2> values{};  // of this exchange and the previous one
  std::uint64_t round = 0;
  int arrived = 0;
};

struct NamedBarrier {
  std::uint64_t round = 0;
  int arrived = 0;
};

bool round_is_over(const void* round, std::uint64_t value) {
  return *static_cast<const std::uint64_t*>(round) != value;
}

// Stacks are reused by the next block.
std::vector<std::unique_ptr<std::byte[]>>& spare_stacks() {
  static std::vector<std::unique_ptr<std::byte[]>> stacks;
  return stacks;
}

class Block {
 public:
  Block(int count, const std::function<void()>& body, std::uint32_t seed)
      : body_(body),
        fibers_(static_cast<std::size_t>(count)),
        warps_(static_cast<std::size_t>((count + kWarpSize - 1) / kWarpSize)),
        seed_(seed) {
    for (std::size_t n = 0; n < warps_.size(); ++n) order_.push_back(n);
    for (std::size_t n = order_.size(); n > 1; --n) std::swap(order_[n - 1], order_[random() % n]);
    for (Fiber& fiber : fibers_) prepare(fiber);
  }
  ~Block() {
    for (Fiber& fiber : fibers_) spare_stacks().push_back(std::move(fiber.stack));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void run() {
    while (sweep()) {
    }
    if (error_) std::rethrow_exception(error_);
    std::string waiting;
    for (std::size_t n = 0; n < fibers_.size(); ++n) {
      if (!fibers_[n].done && n % kWarpSize == 0) waiting.append(" ").append(std::to_string(n / kWarpSize));
    }
    if (!waiting.empty()) throw std::runtime_error("the block waits for ever, in warps" + waiting);
  }

  int thread() const { return static_cast<int>(thread_); }
  int size() const { return static_cast<int>(fibers_.size()); }

  void wait_until(Ready ready, const void* object, std::uint64_t value) {
    if (ready(object, value)) return;
    Fiber& me = fibers_[thread_];
    me.ready = ready, me.object = object, me.value = value;
    start_switch(&me.fake_stack, scheduler_stack_, scheduler_stack_bytes_);
    swapcontext(&me.context, &scheduler_);
    finish_switch(me.fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
    me.ready = nullptr;
  }

  const WarpValues& exchange(std::uint64_t mine) {
    Warp& warp = warps_[thread_ / kWarpSize];
    const std::uint64_t round = warp.round;
    WarpValues& values = warp.values[round % 2];
    values[thread_ % kWarpSize] = mine;
    if (++warp.arrived == kWarpSize) {
      warp.arrived = 0;
      ++warp.round;
    }
    wait_until(round_is_over, &warp.round, round);
    return values;
  }

  std::uint64_t arrive_at(int barrier, int count) {
    NamedBarrier& at = named_.at(static_cast<std::size_t>(barrier));
    const std::uint64_t round = at.round;
    if (++at.arrived == count) {
      at.arrived = 0;
      ++at.round;
    }
    return round;
  }
  void wait_at(int barrier, int count) {
    const std::uint64_t round = arrive_at(barrier, count);
    wait_until(round_is_over, &named_.at(static_cast<std::size_t>(barrier)).round, round);
  }

  void defer(std::function<void()> work) { deferred_.push_back({random() % 4, std::move(work)}); }

 private:
  std::uint32_t random() {
    seed_ = seed_ * 1664525U + 1013904223U;
    return seed_ >> 8;
  }

  // Runs every thread that can continue, then the deferred work that is due. Returns false if nothing is left to do.
  bool sweep() {
    bool progress = false;
    for (const std::size_t warp : order_) {
      const std::size_t end = std::min(fibers_.size(), (warp + 1) * kWarpSize);
      for (thread_ = warp * kWarpSize; thread_ < end; ++thread_) {
        if (!fibers_[thread_].can_run()) continue;
        resume(fibers_[thread_]);
        progress = true;
        if (error_) return false;
      }
    }
    progress = progress || !deferred_.empty();
    for (std::size_t n = 0; n < deferred_.size();) {
      if (deferred_[n].sweeps-- != 0) {
        ++n;
        continue;
      }
      deferred_[n].work();
      deferred_.erase(deferred_.begin() + static_cast<std::ptrdiff_t>(n));
    }
    return progress;
  }

  void prepare(Fiber& fiber) {
    if (spare_stacks().empty()) {
      fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    } else {
      fiber.stack = std::move(spare_stacks().back());
      spare_stacks().pop_back();
    }
#if defined(RAPT_TEST_ASAN)
    __asan_unpoison_memory_region(fiber.stack.get(), kStackBytes);  // poisoned by frames that never returned
#endif
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;  // it never returns
    makecontext(&fiber.context, &Block::enter, 0);
  }

  static void enter() { running->live(); }
  void live() {
    finish_switch(nullptr, &scheduler_stack_, &scheduler_stack_bytes_);
    try {
      body_();
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
    Fiber& me = fibers_[thread_];
    me.done = true;
    start_switch(nullptr, scheduler_stack_, scheduler_stack_bytes_);
    swapcontext(&me.context, &scheduler_);
  }
  void resume(Fiber& fiber) {
    start_switch(&scheduler_fake_stack_, fiber.stack.get(), kStackBytes);
    swapcontext(&scheduler_, &fiber.context);
    finish_switch(scheduler_fake_stack_, nullptr, nullptr);
  }

  // AddressSanitizer must be told about other stacks.
#if defined(RAPT_TEST_ASAN)
  static void start_switch(void** fake, const void* stack, std::size_t bytes) {
    __sanitizer_start_switch_fiber(fake, stack, bytes);
  }
  static void finish_switch(void* fake, const void** stack, std::size_t* bytes) {
    __sanitizer_finish_switch_fiber(fake, stack, bytes);
  }
#else
  static void start_switch(void** /*fake*/, const void* /*stack*/, std::size_t /*bytes*/) {}
  static void finish_switch(void* /*fake*/, const void** /*stack*/, std::size_t* /*bytes*/) {}
#endif

  const std::function<void()>& body_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<std::size_t> order_;  // of warps
  std::array<NamedBarrier, 16> named_{};
  struct Deferred {
    std::uint32_t sweeps;  // until it is done
    std::function<void()> work;
  };
  std::vector<Deferred> deferred_;
  std::uint32_t seed_;
  std::size_t thread_ = 0;
  ucontext_t scheduler_{};
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
  std::exception_ptr error_;
};

}  // namespace

void run_block(int count, const std::function<void()>& body, std::uint32_t seed) {
  Block block(count, body, seed);
  running = &block;
  struct End {
    ~End() { running = nullptr; }
  } const end;
  block.run();
}

int block_thread() { return running->thread(); }
int block_size() { return running->size(); }
void wait_until(Ready ready, const void* object, std::uint64_t value) { running->wait_until(ready, object, value); }
const WarpValues& exchange(std::uint64_t mine) { return running->exchange(mine); }
void arrive_at(int barrier, int count) { running->arrive_at(barrier, count); }
void wait_at(int barrier, int count) { running->wait_at(barrier, count); }
void defer(std::function<void()> work) { running->defer(std::move(work)); }

}  // namespace rapt::test
