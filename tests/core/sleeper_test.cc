// Only on Linux: on other systems, the library does not control where a thread wakes.
#if defined(__linux__)
#include "core/sleeper.h"

#include <atomic>
#include <cstddef>
#include <pthread.h>
#include <sched.h>
#include <thread>

#include "gtest/gtest.h"

namespace rapt::core {
namespace {

cpu_set_t cores_of(pthread_t thread) {
  cpu_set_t cores{};
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof(cores), &cores), 0);
  return cores;
}

bool same(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b) != 0; }

// A thread that sleeps until it is woken, with the test's own thread pinned to one core.
class SleeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = cores_of(pthread_self());
    if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "one core: there is no other to wake on";
    sleeping_ = std::thread([this] {
      sleeper.fall_asleep();
      asleep_.store(true);
      while (!woken_.load()) std::this_thread::yield();
      sleeper.wake_up();
      awake_.store(true);
      while (!done_.load()) std::this_thread::yield();
    });
    while (!asleep_.load()) std::this_thread::yield();
    here = static_cast<std::size_t>(sched_getcpu());
    cpu_set_t only_here{};
    CPU_SET(here, &only_here);
    pthread_setaffinity_np(pthread_self(), sizeof(only_here), &only_here);
  }
  void TearDown() override {
    if (!sleeping_.joinable()) return;
    pthread_setaffinity_np(pthread_self(), sizeof(before_), &before_);
    woken_.store(true);
    done_.store(true);
    sleeping_.join();
  }

  void wake() {
    woken_.store(true);
    while (!awake_.load()) std::this_thread::yield();
  }
  cpu_set_t cores() { return cores_of(sleeping_.native_handle()); }
  cpu_set_t all() const { return before_; }
  cpu_set_t all_but_here() const {
    cpu_set_t cores = before_;
    CPU_CLR(here, &cores);
    return cores;
  }

  Sleeper sleeper;
  std::size_t here = 0;

 private:
  cpu_set_t before_{};
  std::thread sleeping_;
  std::atomic<bool> asleep_ = false, woken_ = false, awake_ = false, done_ = false;
};

TEST_F(SleeperTest, WakesOnAnyCoreButTheWakers) {
  EXPECT_TRUE(same(cores(), all()));
  sleeper.exclude_cpu();
  EXPECT_TRUE(same(cores(), all_but_here()));
}

TEST_F(SleeperTest, HasAllItsCoresAgainOnceItIsAwake) {
  sleeper.exclude_cpu();
  sleeper.exclude_cpu();  // a second call must not lose a core
  wake();
  EXPECT_TRUE(same(cores(), all()));
}

TEST_F(SleeperTest, HasAllItsCoresAgainWhereItSleepsOn) {
  sleeper.exclude_cpu();
  sleeper.restore_affinity();
  EXPECT_TRUE(same(cores(), all()));
  sleeper.exclude_cpu();
  EXPECT_TRUE(same(cores(), all_but_here()));
}

TEST_F(SleeperTest, StaysWhereItIsWhileAwake) {
  wake();
  sleeper.exclude_cpu();
  EXPECT_TRUE(same(cores(), all()));
}

TEST_F(SleeperTest, KeepsItsOnlyCore) {
  cpu_set_t only_here{};
  CPU_SET(here, &only_here);
  std::atomic<bool> asleep = false, done = false;
  Sleeper pinned;
  std::thread thread([&] {
    pthread_setaffinity_np(pthread_self(), sizeof(only_here), &only_here);
    pinned.fall_asleep();
    asleep.store(true);
    while (!done.load()) std::this_thread::yield();
    pinned.wake_up();
  });
  while (!asleep.load()) std::this_thread::yield();
  pinned.exclude_cpu();
  EXPECT_TRUE(same(cores_of(thread.native_handle()), only_here));
  done.store(true);
  thread.join();
}

}  // namespace
}  // namespace rapt::core
#endif
