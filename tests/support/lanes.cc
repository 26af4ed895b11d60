#include "support/lanes.h"

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <ucontext.h>
#include <vector>

#include "support/sanitizers.h"

#if defined(__SANITIZE_ADDRESS__) || RAPT_TEST_FEATURE(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define RAPT_TEST_ASAN 1
#endif

namespace rapt::test {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // unoptimised code under a sanitizer takes much

class Warp;
Warp* running = nullptr;

class Warp {
 public:
  explicit Warp(const std::function<void(int)>& body) : body_(body) {}

  void run() {
    for (int n = 0; n < kLanes; ++n) start(n);
    for (int done = 0; done < kLanes;) {
      done = 0;
      for (lane_ = 0; lane_ < kLanes; ++lane_) {
        if (!lanes_[lane()].done) resume();
        if (lanes_[lane()].done) ++done;
      }
      if (done != 0 && done != kLanes) throw std::logic_error("a lane ended while others wait in an exchange");
      round_ ^= 1;
    }
    if (error_) std::rethrow_exception(error_);
  }

  std::uint32_t exchange(std::uint32_t value, int mask) {
    const std::size_t me = lane(), round = round_;
    values_[round][me] = value;
    wait();
    return values_[round][me ^ static_cast<std::size_t>(mask)];
  }
  bool any(bool value) {
    const std::size_t round = round_;
    values_[round][lane()] = value ? 1 : 0;
    wait();
    return std::any_of(values_[round].begin(), values_[round].end(), [](std::uint32_t each) { return each != 0; });
  }

 private:
  struct Lane {
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack;
    void* fake_stack = nullptr;
    bool done = false;
  };

  std::size_t lane() const { return static_cast<std::size_t>(lane_); }

  void start(int n) {
    Lane& lane = lanes_[static_cast<std::size_t>(n)];
    lane.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get();
    lane.context.uc_stack.ss_size = kStackBytes;
    lane.context.uc_link = nullptr;  // a lane ends in leave()
    makecontext(&lane.context, &Warp::enter, 0);
  }

  static void enter() { running->live(); }
  void live() {
    finish_switch(nullptr, &scheduler_stack_, &scheduler_stack_bytes_);
    try {
      body_(lane_);
    } catch (...) {
      error_ = std::current_exception();
    }
    Lane& me = lanes_[lane()];
    me.done = true;
    start_switch(nullptr, scheduler_stack_, scheduler_stack_bytes_);
    swapcontext(&me.context, &scheduler_);
  }
  void resume() {
    Lane& lane = lanes_[this->lane()];
    start_switch(&scheduler_fake_stack_, lane.stack.get(), kStackBytes);
    swapcontext(&scheduler_, &lane.context);
    finish_switch(scheduler_fake_stack_, nullptr, nullptr);
  }
  void wait() {
    Lane& me = lanes_[lane()];
    start_switch(&me.fake_stack, scheduler_stack_, scheduler_stack_bytes_);
    swapcontext(&me.context, &scheduler_);
    finish_switch(me.fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
  }

  // AddressSanitizer has to know of other stacks.
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

  const std::function<void(int)>& body_;
  std::array<Lane, kLanes> lanes_;
  std::array<std::array<std::uint32_t, kLanes>, 2> values_{};  // of this exchange and the one before
  std::size_t round_ = 0;
  int lane_ = 0;
  ucontext_t scheduler_{};
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
  std::exception_ptr error_;
};

}  // namespace

void run_warp(const std::function<void(int lane)>& body) {
  Warp warp(body);
  running = &warp;
  warp.run();
  running = nullptr;
}

std::uint32_t exchange(std::uint32_t value, int mask) { return running->exchange(value, mask); }
bool any_gives(bool value) { return running->any(value); }

}  // namespace rapt::test
