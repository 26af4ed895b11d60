// Times cases and baselines in rounds: everything once, then everything again. So a temporary slowdown affects all of
// them, and ratios are taken within a round.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/attention.h"
#include "bench/harness/case.h"

namespace rapt::bench {

// Receives progress messages.
using Progress = std::function<void(const std::string& now)>;

double seconds(const std::function<void()>& work);

// How many calls make a sample last about `shortest` seconds. The number is estimated by calling `work` twice: a
// warm-up, then a timed call.
std::int64_t repeats_for(double shortest, const std::function<void()>& work);
// The time of a call, averaged over `repeats` calls.
double seconds_of_each(std::int64_t repeats, const std::function<void()>& work);

// Waits long enough for another library's threads to fall asleep after their last job.
void settle(int threads);

// One number per round.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  double median() const { return quantile(0.5); }
  double min() const { return quantile(0.0); }
  double max() const { return quantile(1.0); }
  double quantile(double fraction) const;  // interpolated linearly between samples
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

// The median over rounds of a / b; none if a or b was not measured.
std::optional<double> median_ratio(const Samples& a, const Samples& b);

// The rates that the machine reaches with a number of threads.
struct BenchBaseline {
  int threads = 1;
  std::string sgemm_library{};  // empty: none was found
  Samples sgemm_gflops{};
  Samples fma_gflops{};
  std::string stream_way{};  // the fastest way to read, "avx512, prefetch"
  Samples stream_gbps{};
};

struct BenchResult {
  BenchCase parameters{};
  BenchCheck check{};
  Samples ms{};
  Samples gflops{};
  Samples gbps{};
  std::string stream_way{};  // the fastest way to read the case's keys and values; empty: not requested
  Samples stream_gbps{};
  Samples streams_gbps{};  // the same memory, read as several streams at once if that is faster
  Samples host_us{};       // time until a call on a GPU is enqueued
};

struct BenchReport {
  std::vector<BenchBaseline> baselines;  // one per number of threads; empty: not requested
  std::vector<BenchResult> results;

  const BenchBaseline* baseline_of(const BenchResult& result) const;
};

struct BenchPlan {
  std::vector<BenchCase> cases;
  Engine engine = Engine::automatic;
  Device device{};
  bool baseline = false;
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds; faster calls are repeated within a sample
  Progress progress{};
};

// Checks every case, then times the rounds. If a result is wrong, nothing is timed and the samples stay empty.
BenchReport run_rounds(const BenchPlan& plan);

}  // namespace rapt::bench
