#include "bench/harness/mha_rounds.h"

#include <cstddef>
#include <memory>

#include <fmt/format.h>

#include "bench/harness/mha_check.h"
#include "bench/harness/sgemm_baseline.h"

namespace rapt::bench {
namespace {

// One variant with one number of threads.
class MhaContestant {
 public:
  MhaContestant(MhaLayer& layer, const MhaCall& call, double flops) : layer_(&layer), call_(call), flops_(flops) {}

  // Makes the first call. A fast call is then timed again with warm caches, to find how often a sample repeats it.
  void warm_up(double shortest) {
    const double taken = seconds([&] { run(); });
    if (taken < shortest) repeats_ = repeats_for(shortest, [&] { run(); });
  }
  void sample(MhaResult& result) {
    const double each = seconds_of_each(repeats_, [&] { run(); });
    result.ms.add(each * 1e3);
    result.gflops.add(flops_ / each / 1e9);
  }
  const MhaCall& call() const { return call_; }

 private:
  void run() { layer_->run(call_); }

  MhaLayer* layer_;
  MhaCall call_;
  double flops_;
  std::int64_t repeats_ = 1;
};

class SgemmRates {
 public:
  SgemmRates(std::vector<MhaBaseline>& baselines, const Progress& progress) : baselines_(baselines) {
    for (MhaBaseline& each : baselines_) {
      progress(fmt::format("warming up: sgemm, {} threads", each.threads));
      libraries_.push_back(sgemm_.fastest(each.threads));
      if (libraries_.back() != nullptr) each.library = libraries_.back()->name();
    }
  }

  void sample(std::size_t which) {
    if (libraries_[which] == nullptr) return;
    MhaBaseline& baseline = baselines_[which];
    baseline.sgemm_gflops.add(sgemm_.gflops(*libraries_[which], baseline.threads));
  }

 private:
  std::vector<MhaBaseline>& baselines_;
  SgemmBaseline sgemm_;
  std::vector<const SgemmLibrary*> libraries_;
};

}  // namespace

double MhaSizes::flops(MhaVariant variant) const {
  const auto e = static_cast<double>(embed), width = static_cast<double>(2 * embed + 2 * key_width());
  const auto length = static_cast<double>(tokens);
  const double pairs = causal ? length * (length + 1.0) / 2.0 : length * length;
  const double of_projections = 2.0 * length * e * width, of_pairs = 4.0 * e * pairs;  // H · D = E
  return static_cast<double>(batch) *
         (trains(variant) ? 3.0 * of_projections + 3.5 * of_pairs : of_projections + of_pairs);
}

std::string MhaResult::name() const {
  std::string text(words_of(variant));
  if (threads != 1) text += fmt::format(" t{}", threads);
  return text;
}

std::optional<double> MhaReport::time_over_sgemm(const MhaResult& result) const {
  for (const MhaBaseline& each : baselines) {
    if (each.threads == result.threads) return median_ratio(each.sgemm_gflops, result.gflops);
  }
  return std::nullopt;
}

std::optional<double> MhaReport::time_over_packed(const MhaResult& result) const {
  for (const MhaResult& each : results) {
    if (each.variant == MhaVariant::packed && each.threads == result.threads) return median_ratio(result.ms, each.ms);
  }
  return std::nullopt;
}

MhaReport run_mha_rounds(const MhaPlan& plan) {
  const MhaSizes& sizes = plan.sizes;
  MhaMemory memory(sizes, plan.variants);
  MhaChecker checker(sizes, memory);
  std::vector<std::unique_ptr<MhaLayer>> layers;
  std::vector<BenchCheck> first_checks;
  for (const MhaVariant variant : plan.variants) {
    plan.progress(fmt::format("checking {}", words_of(variant)));
    layers.push_back(MhaLayer::make(variant, sizes, checker.parameters()));
    first_checks.push_back(checker.check_few(variant, *layers.back(), static_cast<int>(plan.threads[0])));
  }

  MhaReport report;
  std::vector<MhaContestant> contestants;
  bool all_good = true;
  for (const std::int64_t threads : plan.threads) {
    report.baselines.push_back({.threads = static_cast<int>(threads)});
    for (std::size_t n = 0; n < layers.size(); ++n) {
      const MhaVariant variant = plan.variants[n];
      MhaResult result{.variant = variant, .threads = static_cast<int>(threads), .check = first_checks[n]};
      plan.progress("checking all of " + result.name());
      const MhaCall call = memory.call(variant, result.threads, sizes.batch, sizes.tokens);
      contestants.emplace_back(*layers[n], call, sizes.flops(variant));
      contestants.back().warm_up(plan.shortest_sample);
      result.check = worse_check(result.check, checker.check_all(variant, call));
      all_good = all_good && result.check.good();
      report.results.push_back(std::move(result));
    }
  }
  if (!all_good) return report;

  SgemmRates sgemm(report.baselines, plan.progress);
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    for (std::size_t t = 0; t < plan.threads.size(); ++t) {
      sgemm.sample(t);
      for (std::size_t n = t * layers.size(); n < (t + 1) * layers.size(); ++n) {
        plan.progress(fmt::format("round {} of {}: {}", round + 1, plan.rounds, report.results[n].name()));
        contestants[n].sample(report.results[n]);
      }
    }
  }
  return report;
}

}  // namespace rapt::bench
