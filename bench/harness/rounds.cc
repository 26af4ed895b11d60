#include "bench/harness/rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "bench/harness/peak.h"
#include "bench/harness/sgemm_baseline.h"
#include "bench/harness/stream.h"

namespace rapt::bench {
namespace {

constexpr double kFmaSeconds = 0.02;
constexpr std::size_t kStreamBytes = std::size_t{256} << 20;  // more than the caches of common machines hold

// The baselines for each number of threads.
class Baselines {
 public:
  explicit Baselines(const BenchPlan& plan, std::vector<BenchBaseline>& results) : plan_(plan), results_(results) {
    for (const BenchCase& c : plan.cases) {
      const auto same = [&](const BenchBaseline& each) { return each.threads == c.threads; };
      if (std::none_of(results.begin(), results.end(), same)) results.push_back({.threads = c.threads});
    }
    for (BenchBaseline& each : results) {
      plan.progress(fmt::format("warming up: sgemm, {} threads", each.threads));
      libraries_.push_back(sgemm_.fastest(each.threads));
      if (libraries_.back() != nullptr) each.sgemm_library = libraries_.back()->name();
      plan.progress(fmt::format("warming up: stream, {} threads", each.threads));
      streams_.emplace_back(kStreamBytes, each.threads);
      each.stream_way = streams_.back().way();
    }
    // After a warm-up, finds how many rounds take kFmaSeconds.
    constexpr std::int64_t kTrial = 1 << 20;
    fma_rounds(kTrial);
    const double taken = seconds([] { fma_rounds(kTrial); });
    fma_count_ = std::max<std::int64_t>(1, std::llround(kFmaSeconds / taken * static_cast<double>(kTrial)));
  }

  void sample() {
    for (std::size_t n = 0; n < results_.size(); ++n) {
      BenchBaseline& each = results_[n];
      plan_.progress(fmt::format("baseline, {} threads", each.threads));
      if (libraries_[n] != nullptr) each.sgemm_gflops.add(sgemm_.gflops(*libraries_[n], each.threads));

      const double operations = fma_rounds(1) * static_cast<double>(fma_count_) * each.threads;
      const double fma = seconds_on_threads(each.threads, [&](int) { fma_rounds(fma_count_); });
      each.fma_gflops.add(operations / fma / 1e9);

      each.stream_gbps.add(streams_[n].gbps(1));
    }
  }

 private:
  const BenchPlan& plan_;
  std::vector<BenchBaseline>& results_;
  SgemmBaseline sgemm_;
  std::vector<const SgemmLibrary*> libraries_;
  std::vector<FastestRead> streams_;
  std::int64_t fma_count_ = 1;
};

std::int64_t repeats_of(double shortest, double taken) {
  constexpr double kMostRepeats = 1e6;
  return std::llround(std::clamp(std::ceil(shortest / taken), 1.0, kMostRepeats));
}

struct TimedCall {
  BenchCall call;
  std::int64_t repeats = 1;
  std::optional<FastestRead> stream{};  // of the call's own keys and values
};

FastestRead stream_of(const BenchCall& call) {
  std::vector<FastestRead::Bytes> bytes;
  for (const ConstTensorView& view : {call.key, call.value}) {
    bytes.emplace_back(static_cast<const std::byte*>(view.data()),
                       static_cast<std::size_t>(view.count()) * size_of(view.dtype()));
  }
  return {bytes, call.options.threads};
}

// The time to enqueue a call on an idle device, averaged over so few calls that the queue holds them all.
double host_seconds(const BenchCall& call) {
  constexpr int kTimes = 20;
  call.wait();
  const double taken = seconds([&] {
    for (int n = 0; n < kTimes; ++n) call.run();
  });
  call.wait();
  return taken / kTimes;
}

double device_seconds(const TimedCall& timed) {
  timed.call.run();
  timed.call.wait();
  const double taken = seconds([&] {
    for (std::int64_t n = 0; n < timed.repeats; ++n) timed.call.run();
    timed.call.wait();
  });
  return taken / static_cast<double>(timed.repeats);
}

void sample(const TimedCall& timed, BenchResult& result) {
  const bool on_cpu = timed.call.query.device().kind == Device::Kind::cpu;
  const double each = on_cpu ? seconds_of_each(timed.repeats, [&] { timed.call.run(); }) : device_seconds(timed);
  if (!on_cpu) result.host_us.add(host_seconds(timed.call) * 1e6);
  result.ms.add(each * 1e3);
  result.gflops.add(result.parameters.flops() / each / 1e9);
  result.gbps.add(result.parameters.key_value_bytes() / each / 1e9);
  if (!timed.stream) return;
  result.stream_gbps.add(timed.stream->gbps(timed.repeats));
  result.streams_gbps.add(timed.stream->gbps_of_all(timed.repeats));
}

}  // namespace

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::int64_t repeats_for(double shortest, const std::function<void()>& work) {
  work();
  return repeats_of(shortest, seconds(work));
}

double seconds_of_each(std::int64_t repeats, const std::function<void()>& work) {
  if (repeats > 1) work();  // warms the caches, which are cold after other cases
  const double taken = seconds([&] {
    for (std::int64_t n = 0; n < repeats; ++n) work();
  });
  return taken / static_cast<double>(repeats);
}

void settle(int threads) {
  if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

double Samples::quantile(double fraction) const {
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

std::optional<double> median_ratio(const Samples& a, const Samples& b) {
  if (a.empty() || a.values().size() != b.values().size()) return std::nullopt;
  Samples ratios;
  for (std::size_t n = 0; n < a.values().size(); ++n) ratios.add(a.values()[n] / b.values()[n]);
  return ratios.median();
}

const BenchBaseline* BenchReport::baseline_of(const BenchResult& result) const {
  for (const BenchBaseline& each : baselines) {
    if (each.threads == result.parameters.threads) return &each;
  }
  return nullptr;
}

BenchReport run_rounds(const BenchPlan& plan) {
  BenchReport report;
  BenchMemory memory(plan.cases, plan.device);
  std::vector<TimedCall> calls;
  bool all_good = true;
  for (const BenchCase& c : plan.cases) {
    plan.progress("checking " + c.name());
    calls.push_back({BenchCall(c, memory, plan.engine)});
    report.results.push_back({.parameters = c, .check = check(c, calls.back().call)});
    all_good = all_good && report.results.back().check.good();
  }
  if (!all_good) return report;

  for (TimedCall& timed : calls) {  // the check ran each case before, so these calls are warm
    timed.repeats = repeats_of(plan.shortest_sample, seconds([&] {
                                 timed.call.run();
                                 timed.call.wait();
                               }));
  }
  std::unique_ptr<Baselines> baselines;
  if (plan.baseline) {
    baselines = std::make_unique<Baselines>(plan, report.baselines);
    for (std::size_t n = 0; n < calls.size(); ++n) {
      if (plan.cases[n].backward) continue;  // not limited by the time to read keys and values
      plan.progress("warming up: stream of " + plan.cases[n].name());
      calls[n].stream = stream_of(calls[n].call);
      report.results[n].stream_way = calls[n].stream->way();
    }
  }
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    if (baselines != nullptr) baselines->sample();
    for (std::size_t n = 0; n < calls.size(); ++n) {
      plan.progress(fmt::format("round {} of {}: {}", round + 1, plan.rounds, plan.cases[n].name()));
      sample(calls[n], report.results[n]);
    }
  }
  plan.progress("");
  return report;
}

}  // namespace rapt::bench
