#include "rapt/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sched.h>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu_limits.h"
#include "core/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapt/error.h"
#include "support/forked_child.h"
#include "support/sanitizers.h"

namespace rapt {
namespace {

using test::holds_in_forked_child;

constexpr std::array<int, 5> kThreadCounts{1, 2, 3, 7, 16};

class Parallel : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(0); }
};

// How often each index was called, as counted by the tasks themselves.
std::vector<int> calls_of(std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  auto calls = std::make_unique<std::atomic<int>[]>(size);
  parallel_for(count, [&](std::int64_t index) { calls[static_cast<std::size_t>(index)].fetch_add(1); });
  return {calls.get(), calls.get() + size};
}

bool every_index_is_called_once(std::int64_t count) {
  const std::vector<int> calls = calls_of(count);
  return std::all_of(calls.begin(), calls.end(), [](int times) { return times == 1; });
}

// Blocks each task until `wanted` tasks run at the same time, and reports whether that happened within a long timeout.
bool runs_on_at_least(int wanted) {
  std::atomic<int> arrived = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for(wanted, [&](std::int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < wanted && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  return std::chrono::steady_clock::now() < deadline;
}

std::set<std::thread::id> threads_that_run(std::int64_t count) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  parallel_for(count, [&](std::int64_t) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  return ids;
}

TEST_F(Parallel, EveryIndexIsCalledExactlyOnceForManyCountsAndThreads) {
  for (const int threads : kThreadCounts) {
    set_thread_count(threads);
    for (const std::int64_t count : {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 65, 100, 1000, 10007}) {
      EXPECT_TRUE(every_index_is_called_once(count)) << count << " tasks on " << threads << " threads";
    }
  }
}

TEST_F(Parallel, NothingIsCalledForNoTasksOrANegativeCount) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{-1000}}) {
    parallel_for(count, [](std::int64_t) { FAIL(); });
  }
}

TEST_F(Parallel, UsesAsManyThreadsAsAsked) {
  for (const int threads : {2, 3, 7}) {
    set_thread_count(threads);
    EXPECT_TRUE(runs_on_at_least(threads)) << threads;
  }
}

TEST_F(Parallel, NeverUsesMoreThreadsThanAskedAlsoAfterShrinking) {
  for (const int threads : {7, 3, 2, 1, 5, 2}) {
    set_thread_count(threads);
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    for (int repeat = 0; repeat < 20; ++repeat) {
      parallel_for(50, [&](std::int64_t) {
        const int now = running.fetch_add(1) + 1;
        int before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        std::this_thread::yield();
        running.fetch_sub(1);
      });
    }
    EXPECT_LE(most.load(), threads);
  }
}

TEST_F(Parallel, OneThreadMeansTheCallingOneInAscendingOrder) {
  set_thread_count(1);
  std::vector<std::int64_t> order;
  parallel_for(5, [&](std::int64_t index) { order.push_back(index); });
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(threads_that_run(100), std::set{std::this_thread::get_id()});
}

TEST_F(Parallel, OneTaskRunsOnTheCallingThread) {
  set_thread_count(4);
  EXPECT_EQ(threads_that_run(1), std::set{std::this_thread::get_id()});
}

TEST_F(Parallel, ALimitOfItsOwnHoldsForOneCall) {
  set_thread_count(4);
  std::vector<std::int64_t> order;  // unguarded: one thread only
  core::parallel_for(
      100, [&](std::int64_t index) { order.push_back(index); }, 1);
  EXPECT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(Parallel, NestedCallsRunSeriallyOnTheirThread) {
  for (const int threads : kThreadCounts) {
    set_thread_count(threads);
    std::atomic<int> inner_calls = 0;
    std::atomic<int> strangers = 0;
    parallel_for(20, [&](std::int64_t) {
      const std::thread::id outer = std::this_thread::get_id();
      std::int64_t expected = 0;
      parallel_for(30, [&](std::int64_t index) {
        inner_calls.fetch_add(1);
        if (std::this_thread::get_id() != outer || index != expected++) strangers.fetch_add(1);
      });
    });
    EXPECT_EQ(inner_calls.load(), 600);
    EXPECT_EQ(strangers.load(), 0);
  }
  EXPECT_FALSE(core::in_task());
}

TEST_F(Parallel, TheFirstExceptionIsRethrownAfterAllTasksHaveEnded) {
  for (const int threads : kThreadCounts) {
    set_thread_count(threads);
    std::atomic<int> ended = 0;
    try {
      parallel_for(200, [&](std::int64_t index) {
        ended.fetch_add(1);
        if (index % 50 == 17) throw std::runtime_error("task " + std::to_string(index));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "task 17") << threads;  // as in a serial run, whichever task threw first
    }
    EXPECT_EQ(ended.load(), 200) << threads;
    EXPECT_FALSE(core::in_task());
    EXPECT_TRUE(every_index_is_called_once(100)) << "the pool works on after an exception";
  }
}

TEST_F(Parallel, AnExceptionFromANestedCallReachesTheOuterCaller) {
  set_thread_count(3);
  EXPECT_THROW(parallel_for(8,
                            [](std::int64_t) {
                              parallel_for(4, [](std::int64_t inner) {
                                if (inner == 2) throw Error("inner");
                              });
                            }),
               Error);
}

TEST_F(Parallel, SeveralUserThreadsMayCallAtOnce) {
  set_thread_count(3);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&wrong] {
      for (int repeat = 0; repeat < 300; ++repeat) {
        if (!every_index_is_called_once(1 + repeat % 40)) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(Parallel, ASecondCallerDoesNotWaitForTheFirst) {
  set_thread_count(2);
  std::atomic<bool> holding = false;
  std::atomic<bool> release = false;
  std::thread first([&] {
    parallel_for(2, [&](std::int64_t) {
      holding.store(true);
      while (!release.load()) std::this_thread::yield();
    });
  });
  while (!holding.load()) std::this_thread::yield();
  EXPECT_TRUE(every_index_is_called_once(100));  // would hang here
  release.store(true);
  first.join();
}

TEST_F(Parallel, ManyTinyCallsAllComplete) {
  for (const int threads : {2, 3, 7}) {
    set_thread_count(threads);
    std::atomic<std::int64_t> sum = 0;
    for (int repeat = 0; repeat < 20000; ++repeat) {
      parallel_for(2, [&](std::int64_t index) { sum.fetch_add(index + 1, std::memory_order_relaxed); });
    }
    EXPECT_EQ(sum.load(), 60000);
  }
}

TEST_F(Parallel, WorkersAreFoundAgainAfterTheyFellAsleep) {
  set_thread_count(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + repeat % 3));
    EXPECT_TRUE(runs_on_at_least(3));
  }
}

TEST_F(Parallel, TasksRunInTheCallersFloatingPointMode) {
  set_thread_count(4);
  calls_of(4);  // worker threads exist, and use this mode
  std::fesetround(FE_UPWARD);
  std::array<int, 64> modes{};
  parallel_for(64, [&](std::int64_t index) { modes[static_cast<std::size_t>(index)] = std::fegetround(); });
  std::fesetround(FE_TONEAREST);
  EXPECT_THAT(modes, testing::Each(FE_UPWARD));
}

TEST_F(Parallel, WhatTasksWroteIsSeenByTheCaller) {
  set_thread_count(3);
  std::vector<std::int64_t> values(1000);  // plain memory: the pool itself must order the accesses
  for (int repeat = 1; repeat <= 50; ++repeat) {
    parallel_for(1000, [&](std::int64_t index) { values[static_cast<std::size_t>(index)] += index; });
  }
  for (std::int64_t index = 0; index < 1000; ++index) ASSERT_EQ(values[static_cast<std::size_t>(index)], 50 * index);
}

TEST_F(Parallel, AForkedChildStartsAPoolOfItsOwn) {
  SKIP_WHERE_A_FORKED_CHILD_MAY_NOT_START_THREADS();
  set_thread_count(3);
  ASSERT_TRUE(runs_on_at_least(3));  // the parent's pool is up
  EXPECT_TRUE(holds_in_forked_child([] { return every_index_is_called_once(1000) && runs_on_at_least(3); }));
  EXPECT_TRUE(runs_on_at_least(3)) << "the parent's pool works on";
}

TEST_F(Parallel, AGrandchildStartsAPoolOfItsOwnToo) {
  SKIP_WHERE_A_FORKED_CHILD_MAY_NOT_START_THREADS();
  set_thread_count(2);
  ASSERT_TRUE(runs_on_at_least(2));
  EXPECT_TRUE(holds_in_forked_child([] {
    return runs_on_at_least(2) && holds_in_forked_child([] { return runs_on_at_least(2); }) && runs_on_at_least(2);
  }));
}

TEST_F(Parallel, ForkWhileAnotherThreadIsInsideAParallelForIsSafe) {
  SKIP_WHERE_A_FORKED_CHILD_MAY_NOT_START_THREADS();
  set_thread_count(3);
  ASSERT_TRUE(runs_on_at_least(3));
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done.load()) parallel_for(50, [&](std::int64_t) { std::this_thread::yield(); });
  });
  for (int repeat = 0; repeat < 10; ++repeat) {
    EXPECT_TRUE(holds_in_forked_child([] { return every_index_is_called_once(1000) && runs_on_at_least(3); }));
  }
  done.store(true);
  busy.join();
}

TEST_F(Parallel, AChildForkedInsideATaskMayUseThreads) {
  SKIP_WHERE_A_FORKED_CHILD_MAY_NOT_START_THREADS();
  set_thread_count(2);
  std::atomic<int> held = 0;
  parallel_for(2, [&](std::int64_t) {
    if (holds_in_forked_child([] { return runs_on_at_least(2); })) held.fetch_add(1);
  });
  EXPECT_EQ(held.load(), 2);
}

TEST_F(Parallel, SetThreadCountOverridesAndZeroReturnsToTheDefault) {
  const int usual = thread_count();
  EXPECT_GE(usual, 1);
  set_thread_count(usual + 5);
  EXPECT_EQ(thread_count(), usual + 5);
  set_thread_count(0);
  EXPECT_EQ(thread_count(), usual);
}

TEST_F(Parallel, AnImpossibleThreadCountIsRefused) {
  for (const int threads : {-1, core::kMaxThreads + 1}) {
    try {
      set_thread_count(threads);
      FAIL() << threads;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "set_thread_count: " + std::to_string(threads) +
                                  " threads were requested; give 1 to 1024, or 0 for the default");
    }
  }
}

TEST_F(Parallel, TheEnvironmentSetsTheDefaultAndGarbageThereIsIgnored) {
  const auto default_with = [](const char* text, int expected) {
    return holds_in_forked_child([=] {  // a fresh process: the default is looked up again
      setenv("RAPT_NUM_THREADS", text, 1);
      return thread_count() == expected;
    });
  };
  EXPECT_TRUE(default_with("5", 5));
  EXPECT_TRUE(default_with(" 1 ", 1));
  EXPECT_TRUE(default_with("99999", core::kMaxThreads));
  for (const char* garbage : {"", "many", "3.5", "0", "-2", "4 threads", "0x10"}) {
    EXPECT_TRUE(default_with(garbage, core::available_cpus())) << garbage;
  }
}

#if defined(__linux__)
TEST_F(Parallel, TheDefaultHonoursAffinity) {
  EXPECT_TRUE(holds_in_forked_child([] {
    unsetenv("RAPT_NUM_THREADS");
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    std::size_t first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return false;
    return core::cpus_in_affinity() == 1 && thread_count() == 1 && every_index_is_called_once(100);
  }));
}
#endif

}  // namespace
}  // namespace rapt
