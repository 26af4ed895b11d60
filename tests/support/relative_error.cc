#include "support/relative_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace rapt::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHuge = 1e8;

struct Norms {
  double difference = 0.0;
  double answer = 0.0;

  void add(double result, double wanted) {
    difference = std::hypot(difference, result - wanted);
    answer = std::hypot(answer, wanted);
  }
  double ratio() const {
    if (difference == 0.0) return 0.0;
    return answer == 0.0 ? kInfinity : difference / answer;
  }
};

bool same_special(double result, double answer) { return std::isnan(answer) ? std::isnan(result) : result == answer; }

}  // namespace

double relative_error(const ConstTensorView& result, const ConstTensorView& answer) {
  if (result.shape() != answer.shape()) return kInfinity;
  const Tensor result_copy = Tensor::copy_of(result, DType::f64);
  const Tensor answer_copy = Tensor::copy_of(answer, DType::f64);
  const std::span<const double> results = result_copy.values<double>();
  const std::span<const double> answers = answer_copy.values<double>();
  std::array<Norms, 2> norms;  // for ordinary numbers and for huge ones
  for (std::size_t n = 0; n < answers.size(); ++n) {
    if (!std::isfinite(answers[n]) || !std::isfinite(results[n])) {
      if (!same_special(results[n], answers[n])) return kInfinity;
      continue;
    }
    norms[std::abs(answers[n]) >= kHuge ? 1 : 0].add(results[n], answers[n]);
  }
  return std::max(norms[0].ratio(), norms[1].ratio());
}

::testing::AssertionResult is_near(const ConstTensorView& result, const ConstTensorView& answer, double bound) {
  const double error = relative_error(result, answer);
  if (error <= bound) return ::testing::AssertionSuccess();
  auto failure = ::testing::AssertionFailure() << "relative error " << error << ", allowed " << bound;
  if (result.shape() != answer.shape()) {
    return failure << "; shape " << to_string(result.shape()) << ", the answer has " << to_string(answer.shape());
  }
  const Tensor result_copy = Tensor::copy_of(result, DType::f64);
  const Tensor answer_copy = Tensor::copy_of(answer, DType::f64);
  std::size_t worst = 0;
  double largest = -1.0;
  for (std::size_t n = 0; n < answer_copy.values<double>().size(); ++n) {
    const double got = result_copy.values<double>()[n];
    const double wanted = answer_copy.values<double>()[n];
    const double difference = same_special(got, wanted) ? 0.0 : std::abs(got - wanted);
    if (difference > largest || std::isnan(difference)) {
      largest = std::isnan(difference) ? kInfinity : difference;
      worst = n;
    }
  }
  return failure << "; worst at element " << worst << " of " << to_string(answer.shape()) << ": got "
                 << result_copy.values<double>()[worst] << ", the answer is " << answer_copy.values<double>()[worst];
}

double f32_bound(const ConstTensorView& f32_answer, const ConstTensorView& f64_answer) {
  const double own = relative_error(f32_answer, f64_answer);
  return std::max(2e-6, std::isfinite(own) ? 2.0 * own : 0.0);
}

}  // namespace rapt::test
