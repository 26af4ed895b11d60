// Calls from several threads at once, from inside a parallel loop, and after fork: each gives the same bits as a single
// call.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case.h"
#include "rapt/parallel.h"
#include "support/every_instruction_set.h"
#include "support/forked_child.h"
#include "support/sanitizers.h"

namespace rapt::test {
namespace {

class Concurrency : public EveryInstructionSet {
 protected:
  void TearDown() override {
    set_thread_count(0);
    EveryInstructionSet::TearDown();
  }
};
RAPT_ON_EVERY_INSTRUCTION_SET(Concurrency);

// A call with several blocks of work, enough for several threads.
class Call {
 public:
  explicit Call(std::uint64_t seed) : test_(spec(seed)), wanted_(cases::run(test_)) {}

  bool has_its_bits(const ParallelFor& parallel_for = {}, int threads = 0) const {
    AttentionOptions options = test_.options;
    options.parallel_for = parallel_for;
    options.threads = threads;
    const Tensor got = attention(test_.query, test_.key, test_.value, options).to(DType::f64);
    return std::memcmp(got.view().data(), wanted_.out.view().data(),
                       static_cast<std::size_t>(got.count()) * sizeof(double)) == 0;
  }

 private:
  static cases::CaseSpec spec(std::uint64_t seed) {
    cases::CaseSpec spec{.name = "Concurrent", .queries = 150, .keys = 280, .head_size = 16, .causal = true};
    spec.query_heads = 4, spec.value_size = 16, spec.alignment = Alignment::bottom_right(), spec.seed = seed;
    spec.masks = {{.kind = Mask::Kind::add, .one_batch = true}};
    return spec;
  }

  cases::Case test_;
  cases::Answer wanted_;
};

TEST_P(Concurrency, SeveralUserThreadsMayCallAtOnce) {
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const Call calls[] = {Call(1), Call(2), Call(3)};
    std::atomic<int> wrong = 0;
    std::vector<std::thread> users;
    for (const Call& call : calls) {
      users.emplace_back([&wrong, &call] {
        for (int repeat = 0; repeat < 10; ++repeat) wrong += call.has_its_bits() ? 0 : 1;
      });
    }
    for (std::thread& user : users) user.join();
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST_P(Concurrency, ACallInsideAParallelForWorks) {
  set_thread_count(3);
  const Call call(4);
  std::atomic<int> wrong = 0;
  parallel_for(12, [&](std::int64_t) { wrong += call.has_its_bits() ? 0 : 1; });
  EXPECT_EQ(wrong.load(), 0);
}

// A pool that starts new threads for each loop, as a naive caller might provide.
void on_new_threads(std::int64_t count, const Task& task) {
  std::vector<std::thread> threads;
  for (std::int64_t n = 0; n < count; ++n) threads.emplace_back([&task, n] { task(n); });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Concurrency, TheCallersParallelForMayUseThreadsOfItsOwn) {
  const Call call(5);
  for (const int threads : {1, 2, 5}) EXPECT_TRUE(call.has_its_bits(on_new_threads, threads)) << threads;
}

TEST_P(Concurrency, ACallInsideTheCallersParallelForWorks) {
  set_thread_count(2);
  const Call call(6);
  std::atomic<int> wrong = 0;
  on_new_threads(4, [&](std::int64_t n) {
    const bool right = n % 2 == 0 ? call.has_its_bits() : call.has_its_bits(on_new_threads, 2);
    wrong += right ? 0 : 1;
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Concurrency, MoreThreadsThanWorkChangeNothing) {
  set_thread_count(16);
  const Call call(7);
  EXPECT_TRUE(call.has_its_bits());
  EXPECT_TRUE(call.has_its_bits({}, 1000));
}

TEST_P(Concurrency, ACallAfterForkWorksInTheChildAndInTheParent) {
  SKIP_WHERE_A_FORKED_CHILD_MAY_NOT_START_THREADS();
  set_thread_count(3);
  const Call call(8);
  ASSERT_TRUE(call.has_its_bits());  // the parent's pool has started
  EXPECT_TRUE(test::holds_in_forked_child([&] { return call.has_its_bits() && call.has_its_bits(); }));
  EXPECT_TRUE(call.has_its_bits());
}

// The instruction set in use may change while calls run; each call keeps the one that it started with.
TEST(ConcurrencyOfInstructionSets, ACallKeepsToTheOneItBeganWith) {
  const std::string before = instruction_set_in_use();
  const std::vector<std::string> sets = instruction_sets_here();
  const cases::Case test({.name = "Changing", .queries = 60, .keys = 300});
  std::vector<Tensor> possible;
  for (const std::string& set : sets) {
    use_instruction_set(set);
    possible.push_back(cases::run(test).out);
  }
  std::atomic<bool> done = false;
  std::thread changer([&] {
    for (std::size_t n = 0; !done.load(); ++n) use_instruction_set(sets[n % sets.size()]);
  });
  for (int repeat = 0; repeat < 50; ++repeat) {
    const Tensor got = cases::run(test).out;
    const bool known = std::any_of(possible.begin(), possible.end(), [&](const Tensor& out) {
      return std::memcmp(got.view().data(), out.view().data(),
                         static_cast<std::size_t>(got.count()) * sizeof(double)) == 0;
    });
    EXPECT_TRUE(known) << "the bits of no instruction set";
  }
  done.store(true);
  changer.join();
  use_instruction_set(before);
}

}  // namespace
}  // namespace rapt::test
