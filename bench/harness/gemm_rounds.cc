#include "bench/harness/gemm_rounds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "bench/harness/sgemm.h"
#include "bench/harness/stream.h"
#include "rapt/packed_matrix.h"

namespace rapt::bench {
namespace {

Tensor filled(const Dims& shape, std::uint32_t seed) {
  Tensor tensor(shape);
  for (float& value : tensor.values<float>()) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8) * 0x1p-23F - 1.0F;
  }
  return tensor;
}

void require_possible(const GemmCase& c) {
  constexpr double kMostElements = 1e10;
  const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  const double largest =
      std::max({size(c.shape.inputs, c.shape.outputs), size(c.rows, c.shape.inputs), size(c.rows, c.shape.outputs)});
  if (largest > kMostElements) {
    throw std::invalid_argument(
        fmt::format("{} needs matrices of {:.1e} elements; use smaller sizes", c.name(), largest));
  }
}

std::vector<GemmCase> cases_of(const GemmPlan& plan) {
  std::vector<GemmCase> cases;
  for (const GemmShape& shape : plan.shapes) {
    for (const DType type : plan.types) {
      for (const std::int64_t rows : plan.rows) {
        for (const std::int64_t threads : plan.threads) {
          cases.push_back({rows, shape, type, static_cast<int>(threads)});
          require_possible(cases.back());
        }
      }
    }
  }
  return cases;
}

// A case as a call: its memory, the product, its check, and the same product by a BLAS library.
class GemmCall {
 public:
  explicit GemmCall(const GemmCase& c)
      : case_(c),
        weights_(filled({c.shape.outputs, c.shape.inputs}, 1)),
        packed_(weights_, {.dtype = c.type}),
        x_(filled({c.rows, c.shape.inputs}, 2)),
        y_({c.rows, c.shape.outputs}),
        workspace_(packed_.workspace_bytes(x_, y_, {.threads = c.threads})),
        options_{.threads = c.threads, .workspace = workspace_} {}

  void run() { packed_.multiply(x_, y_, options_); }
  void run(const SgemmLibrary& library) {
    library.multiply({.m = case_.rows,
                      .n = case_.shape.outputs,
                      .k = case_.shape.inputs,
                      .a = x_.values<float>().data(),
                      .b = weights_.values<float>().data(),
                      .b_transposed = true,
                      .c = y_.values<float>().data()});
  }

  // Compares some rows of y with the formula in double. `type` is that of the weights: f32 after a BLAS library has
  // run.
  BenchCheck check(DType type) const {
    const Tensor weights = weights_.to(type).to(DType::f64);
    BenchCheck worst{0.0, 0x1p-22 * std::sqrt(static_cast<double>(case_.shape.inputs) + 16.0)};
    for (const std::int64_t row : {std::int64_t{0}, case_.rows / 2, case_.rows - 1}) {
      const std::span<const float> x = x_.values<float>().subspan(static_cast<std::size_t>(row * case_.shape.inputs),
                                                                  static_cast<std::size_t>(case_.shape.inputs));
      double difference = 0.0, size = 0.0;
      for (std::int64_t n = 0; n < case_.shape.outputs; ++n) {
        const double* w = weights.values<double>().data() + n * case_.shape.inputs;
        double sum = 0.0;
        for (std::size_t k = 0; k < x.size(); ++k) sum += static_cast<double>(x[k]) * w[k];
        const double got = static_cast<double>(y_.view().at<float>(row, n));
        difference += (got - sum) * (got - sum), size += sum * sum;
      }
      const double error = std::sqrt(difference / size);
      if (!(error <= worst.error)) worst.error = error;  // or if the error is NaN
    }
    return worst;
  }

 private:
  GemmCase case_;
  Tensor weights_;
  PackedMatrix packed_;
  Tensor x_, y_;
  std::vector<std::byte> workspace_;
  ProductOptions options_;
};

// One case, with the BLAS libraries and the streaming read that it is compared with. They alternate, so that all run
// under the same conditions.
class GemmContest {
 public:
  GemmContest(const GemmCase& c, const std::vector<SgemmLibrary>& libraries, double shortest)
      : case_(c), call_(c), libraries_(libraries) {
    call_.run();
    result_.parameters = c;
    result_.check = call_.check(c.type);
    repeats_.push_back(repeats_for(shortest, [&] { call_.run(); }));
    for (const SgemmLibrary& library : libraries_) {
      library.set_threads(c.threads);
      repeats_.push_back(repeats_for(shortest, [&] { call_.run(library); }));
      if (!call_.check(DType::f32).good()) {
        throw std::runtime_error(fmt::format("bench: the matrix product of {} is wrong", library.name()));
      }
      result_.libraries.push_back({library.name(), {}});
      settle(c.threads);
    }
    if (!c.is_read()) return;
    stream_ = std::make_unique<FastestRead>(static_cast<std::size_t>(c.weight_bytes()), c.threads);
    result_.stream_way = stream_->way();
  }

  void run_round() {
    const double own = seconds_of_each(repeats_[0], [&] { call_.run(); });
    result_.ms.add(own * 1e3);
    result_.gflops.add(case_.flops() / own / 1e9);
    result_.gbps.add(case_.weight_bytes() / own / 1e9);
    if (stream_ != nullptr) result_.stream_gbps.add(stream_->gbps(repeats_[0]));
    for (std::size_t n = 0; n < libraries_.size(); ++n) {
      libraries_[n].set_threads(case_.threads);
      const double taken = seconds_of_each(repeats_[n + 1], [&] { call_.run(libraries_[n]); });
      result_.libraries[n].gflops.add(case_.flops() / taken / 1e9);
      settle(case_.threads);
    }
  }

  const GemmResult& result() const { return result_; }

 private:
  GemmCase case_;
  GemmCall call_;
  const std::vector<SgemmLibrary>& libraries_;
  std::vector<std::int64_t> repeats_;  // of rapt, then of each library
  std::unique_ptr<FastestRead> stream_;
  GemmResult result_;
};

}  // namespace

std::string GemmCase::name() const {
  std::string text = fmt::format("m{} k{} n{}", rows, shape.inputs, shape.outputs);
  if (type != DType::f32) text += fmt::format(" {}", name_of(type));
  if (threads != 1) text += fmt::format(" t{}", threads);
  return text;
}

double GemmCase::flops() const {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(shape.inputs) * static_cast<double>(shape.outputs);
}

double GemmCase::weight_bytes() const {
  return static_cast<double>(shape.inputs) * static_cast<double>(shape.outputs) * static_cast<double>(size_of(type));
}

const LibrarySamples* GemmResult::best_library() const {
  const LibrarySamples* best = nullptr;
  for (const LibrarySamples& each : libraries) {
    if (!each.gflops.empty() && (best == nullptr || each.gflops.median() > best->gflops.median())) best = &each;
  }
  return best;
}

std::vector<GemmResult> run_gemm_rounds(const GemmPlan& plan) {
  const std::vector<SgemmLibrary> libraries = SgemmLibrary::find();
  std::vector<GemmContest> contests;
  bool all_good = true;
  for (const GemmCase& c : cases_of(plan)) {
    plan.progress("checking " + c.name());
    contests.emplace_back(c, libraries, plan.shortest_sample);
    all_good = all_good && contests.back().result().check.good();
  }
  for (std::int64_t round = 0; all_good && round < plan.rounds; ++round) {
    for (GemmContest& contest : contests) {
      plan.progress(fmt::format("round {} of {}: {}", round + 1, plan.rounds, contest.result().parameters.name()));
      contest.run_round();
    }
  }
  std::vector<GemmResult> results;
  for (const GemmContest& contest : contests) results.push_back(contest.result());
  return results;
}

}  // namespace rapt::bench
