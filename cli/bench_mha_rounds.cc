#include "bench_mha_rounds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "bench_arguments.h"
#include "bench_mha_variants.h"
#include "bench_numbers.h"
#include "bench_sgemm_baseline.h"

namespace rapt::cli {
namespace {

// What calls read and write: x and the output in each type, and one plane for weights or scores, which all share.
class MhaMemory {
 public:
  MhaMemory(const MhaSizes& sizes, const std::vector<MhaVariant>& variants) : heads_(sizes.heads) {
    const Dims shape{sizes.batch, sizes.tokens, sizes.embed};
    const Tensor all = numbers(sizes.batch * sizes.tokens * sizes.embed, 1, DType::f32);
    std::int64_t plane = 0;
    for (const MhaVariant variant : variants) {
      const DType type = type_of(variant);
      if (!x_.contains(type)) {
        x_.emplace(type, Tensor::copy_of(all.view().reshape(shape), type));
        out_.emplace(type, Tensor(shape, type));
      }
      if (!has_plane(variant)) continue;
      const bool mean = weights_of(variant) == ReturnWeights::mean;
      plane = std::max(plane, sizes.batch * (mean ? 1 : sizes.heads) * sizes.tokens * sizes.tokens);
    }
    plane_ = Tensor({plane});
  }

  // The first tokens of the first rows of the batch.
  MhaCall call(MhaVariant variant, int threads, std::int64_t batch, std::int64_t tokens) {
    const DType type = type_of(variant);
    MhaCall call{.threads = threads};
    const auto part = [&](const auto& all) { return all.slice(0, 0, batch).slice(1, 0, tokens); };
    call.x = part(x_.at(type).view());
    call.out = part(out_.at(type).view());
    if (!has_plane(variant)) return call;
    const bool mean = weights_of(variant) == ReturnWeights::mean;
    const Dims shape = mean ? Dims{batch, tokens, tokens} : Dims{batch, heads_, tokens, tokens};
    const TensorView plane = plane_.view().slice(0, 0, Layout::contiguous(shape).count()).reshape(shape);
    (variant == MhaVariant::plain ? call.scores : call.weights) = plane;
    return call;
  }

 private:
  static bool has_plane(MhaVariant variant) {
    return variant == MhaVariant::plain || weights_of(variant) != ReturnWeights::none;
  }

  std::int64_t heads_;
  std::map<DType, Tensor> x_, out_;
  Tensor plane_;
};

// Of the worst token: |a − b| / |b|. Both are (B, L, …).
double token_error(const ConstTensorView& a, const ConstTensorView& b) {
  double error = 0.0;
  for (std::int64_t n = 0; n < b.size(0); ++n) {
    for (std::int64_t i = 0; i < b.size(1); ++i) {
      error = worse(error, relative_error(a.select(0, n).select(0, i), b.select(0, n).select(0, i)));
    }
  }
  return error;
}

// Compares answers: a few tokens with the reference, and all of them with packed qkv in f32.
class Checker {
 public:
  Checker(const MhaSizes& sizes, MhaMemory& memory)
      : sizes_(sizes), memory_(memory), parameters_(packed_layer(sizes, DType::f32)) {
    // About as long as a timed call, however wide the layer is.
    const double tokens = 0x1p27 / (static_cast<double>(sizes.embed) * static_cast<double>(sizes.embed));
    tokens_ = std::min(sizes.tokens, static_cast<std::int64_t>(std::clamp(tokens, 16.0, 128.0)));
  }

  const MultiHeadAttention& parameters() const { return parameters_; }

  // The layer in f64, which the reference engine computes, with parameters and input as this variant has them.
  BenchCheck check_few(MhaVariant variant, MhaLayer& layer, int threads) {
    const MhaCall call = memory_.call(variant, threads, 1, tokens_);
    layer.forward(call);
    const MultiHeadAttention rounded = packed_layer(sizes_, type_of(variant), &parameters_);
    LayerOptions options;
    options.attention.causal = sizes_.causal;
    options.weights = weights_of(variant);
    const LayerResult right =
        packed_layer(sizes_, DType::f64, &rounded).forward(Tensor::copy_of(call.x, DType::f64), options);
    BenchCheck check{token_error(call.out, right.out), f32_limit() + rounding(variant)};
    if (call.weights.defined()) {
      // (B, Hq, L, L): a row of weights is one of a head
      const bool mean = options.weights == ReturnWeights::mean;
      const ConstTensorView got = mean ? ConstTensorView(call.weights) : call.weights.merge(0);
      check.error = worse(check.error, token_error(got, mean ? right.weights.view() : right.weights.view().merge(0)));
    }
    return check;
  }

  // The answer of a whole call, which is still in memory.
  BenchCheck check_all(MhaVariant variant, const MhaCall& call) {
    if (expected_.count() == 0) {
      const auto layer = MhaLayer::make(MhaVariant::packed, sizes_, parameters_);
      Tensor out(call.out.shape());
      const Tensor x = numbers(out.count(), 1, DType::f32);
      layer->forward({.x = x.view().reshape(out.shape()), .out = out, .threads = call.threads});
      expected_ = std::move(out);
    }
    // 16 bits: x, the parameters and what becomes of them were rounded too.
    return {token_error(call.out, expected_), 2.0 * f32_limit() + 5.0 * rounding(variant)};
  }

 private:
  // Sums of E products, and of L weights.
  double f32_limit() const {
    return 0x1p-21 * std::sqrt(static_cast<double>(std::max(sizes_.embed, sizes_.tokens)) + 16.0);
  }
  static double rounding(MhaVariant variant) {
    return type_of(variant) == DType::bf16 ? 4e-3 : type_of(variant) == DType::f16 ? 5e-4 : 0.0;
  }

  MhaSizes sizes_;
  MhaMemory& memory_;
  MultiHeadAttention parameters_;
  std::int64_t tokens_ = 1;
  Tensor expected_;
};

// The worse of two, each by its own limit.
BenchCheck worse_check(const BenchCheck& a, const BenchCheck& b) {
  if (!a.good() || !b.good()) return a.good() ? b : a;
  return a.error / a.limit > b.error / b.limit ? a : b;
}

// One variant with one number of threads.
class MhaContestant {
 public:
  MhaContestant(MhaLayer& layer, const MhaCall& call, double flops) : layer_(&layer), call_(call), flops_(flops) {}

  // The first call; fast ones are then timed again, warm, to find how often a sample repeats them.
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
  void run() { layer_->forward(call_); }

  MhaLayer* layer_;
  MhaCall call_;
  double flops_;
  std::int64_t repeats_ = 1;
};

class SgemmRates {
 public:
  explicit SgemmRates(std::vector<MhaBaseline>& baselines) : baselines_(baselines) {
    for (MhaBaseline& each : baselines_) {
      show_progress(fmt::format("warming up: sgemm, {} threads", each.threads));
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

double MhaSizes::flops() const {
  const auto e = static_cast<double>(embed), width = static_cast<double>(2 * embed + 2 * key_width());
  const auto length = static_cast<double>(tokens);
  const double pairs = causal ? length * (length + 1.0) / 2.0 : length * length;
  return static_cast<double>(batch) * (2.0 * length * e * width + 4.0 * e * pairs);  // H · D = E
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

MhaReport run_mha_rounds(const MhaOptions& options) {
  const MhaSizes& sizes = options.sizes;
  MhaMemory memory(sizes, options.variants);
  Checker checker(sizes, memory);
  std::vector<std::unique_ptr<MhaLayer>> layers;
  std::vector<BenchCheck> first_checks;
  for (const MhaVariant variant : options.variants) {
    show_progress(fmt::format("checking {}", words_of(variant)));
    layers.push_back(MhaLayer::make(variant, sizes, checker.parameters()));
    first_checks.push_back(checker.check_few(variant, *layers.back(), static_cast<int>(options.threads[0])));
  }

  MhaReport report;
  std::vector<MhaContestant> contestants;
  bool all_good = true;
  for (const std::int64_t threads : options.threads) {
    report.baselines.push_back({.threads = static_cast<int>(threads)});
    for (std::size_t n = 0; n < layers.size(); ++n) {
      const MhaVariant variant = options.variants[n];
      MhaResult result{.variant = variant, .threads = static_cast<int>(threads), .check = first_checks[n]};
      show_progress("checking all of " + result.name());
      const MhaCall call = memory.call(variant, result.threads, sizes.batch, sizes.tokens);
      contestants.emplace_back(*layers[n], call, sizes.flops());
      contestants.back().warm_up(options.shortest_sample);
      result.check = worse_check(result.check, checker.check_all(variant, call));
      all_good = all_good && result.check.good();
      report.results.push_back(std::move(result));
    }
  }
  if (!all_good) return report;

  SgemmRates sgemm(report.baselines);
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    for (std::size_t t = 0; t < options.threads.size(); ++t) {
      sgemm.sample(t);
      for (std::size_t n = t * layers.size(); n < (t + 1) * layers.size(); ++n) {
        show_progress(fmt::format("round {} of {}: {}", round + 1, options.rounds, report.results[n].name()));
        contestants[n].sample(report.results[n]);
      }
    }
  }
  show_progress("");
  return report;
}

}  // namespace rapt::cli
