#include "cases/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>
#include <utility>

namespace rapt::cases {

double relative_error(const ConstTensorView& got, const ConstTensorView& wanted) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (got.shape() != wanted.shape()) return kInfinity;
  Tensor copies[2];
  const auto numbers = [](const ConstTensorView& view, Tensor& copy) -> std::span<const double> {
    const auto count = static_cast<std::size_t>(view.count());
    if (view.dtype() == DType::f64 && view.is_contiguous()) return {view.data_as<double>(), count};
    copy = Tensor::copy_of(view, DType::f64);
    return std::as_const(copy).values<double>();
  };
  const std::span<const double> of_a = numbers(got, copies[0]), of_b = numbers(wanted, copies[1]);
  double difference = 0.0;
  double norm = 0.0;
  bool differs = false;  // squares of tiny numbers vanish
  for (std::size_t n = 0; n < of_a.size(); ++n) {
    const double x = of_a[n];
    const double y = of_b[n];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (x == y) continue;
      return kInfinity;
    }
    differs = differs || x != y;
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  if (!differs) return 0.0;
  return norm == 0.0 ? kInfinity : std::sqrt(difference / norm);
}

namespace {

// About how large scores are: products of two inputs, and ALiBi's slope times the longest distance.
double score_size(const CaseSpec& spec) {
  double size = 16.0 * spec.spread * spec.spread;
  if (!spec.alibi) return size;
  double offset = 0.0;
  for (const std::int64_t value : spec.alignment.values)
    offset = std::max(offset, std::abs(static_cast<double>(value)));
  const double slope = std::exp2(-8.0 / static_cast<double>(std::max<std::int64_t>(1, spec.query_heads)));
  return size + slope * (static_cast<double>(spec.queries + spec.keys) + offset);
}

// The norm of the difference over that of the answer, each number counting as at least 1: what matters of a logarithm,
// or of a score that becomes an exponent, is its absolute error.
double absolute_error(const Tensor& got, const Tensor& wanted) {
  const double relative = relative_error(got, wanted);
  if (relative == 0.0 || std::isinf(relative)) return got.count() == 0 ? 0.0 : relative;
  double norm = 0.0;
  double finite = 0.0;
  for (const double value : wanted.values<double>()) {
    if (!std::isfinite(value)) continue;
    norm += value * value;
    finite += 1.0;
  }
  return relative * std::sqrt(norm / std::max(norm, finite));
}

// Near 0 the numbers of f16 are 2^-24 apart, whatever their size: what rounding to them may add to a relative error.
double subnormal_rounding(DType output, const Tensor& wanted) {
  if (output != DType::f16) return 0.0;
  double norm = 0.0;
  for (const double value : wanted.values<double>()) norm += std::isfinite(value) ? value * value : 0.0;
  return norm == 0.0 ? 0.0 : 0x1p-25 * std::sqrt(static_cast<double>(wanted.count()) / norm);
}

// Half a unit in the last place, relative.
double rounding_to(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0.0; }

// What scores of that size do to weights, in units of 2^-24. A score is one chain of D products: its partial sums grow
// to it about evenly, so the chain carries √(D/3) roundings of its size. Softmax cancels most of that, since the
// largest score stands in every weight of a row and in their sum, and the size of a score has room for the rest.
// Dropout may take the largest weight away. What is left of the row then has the whole error, that of the difference of
// two scores: in Random8943 the largest weight of all seven heads is dropped, and a kept weight whose score is off by
// 80 stands against a dropped one that is off by −245. Inputs are uniform in ±1.7 · spread, so scores have a deviation
// of 0.96 · spread² · |scale| · √D, and hardly one of them is beyond four of it.
double weight_error(const CaseSpec& spec, bool dropped) {
  const double cancelled = std::max(16.0, score_size(spec));
  if (!dropped || spec.dropout.rate == 0.0) return cancelled;
  const auto size = static_cast<double>(spec.head_size);
  const double scale = spec.has_scale ? std::abs(spec.scale) * std::sqrt(size) : 1.0;
  const double largest = 4.0 * 0.96 * spec.spread * spec.spread * scale;
  return std::max(cancelled, largest * std::sqrt(size / 3.0));
}

// What an engine that works in f32 may differ by, for an output of this type: one rounding at the end, and the sums.
// `dropped`: weights after dropout go into it.
double tolerance(const CaseSpec& spec, DType output, bool dropped) {
  if (spec.query_type == DType::f64) return 1e-12;
  // Half a unit in the last place of the output, the most that one rounding can do.
  const double rounding = rounding_to(output);
  // A score carries its error into the exponent, hence into the weight; a chunk's sum of n weights is one chain and
  // carries about √n roundings.
  const double chain = std::sqrt(static_cast<double>(std::min<std::int64_t>(spec.keys, 256)));
  return rounding + 0x1p-24 * (weight_error(spec, dropped) + chain);
}

// Gradients of scores are p · (g − Σ p g), and what makes them small may be that the two are alike: with one key they
// are equal. Their rounding errors are those of g. About how large the gradient would be if it were not for that, as a
// norm over all its numbers.
double difference_size(const CaseSpec& spec, const std::string& name) {
  if (name == "dvalue") return 0.0;
  const double number = 0.58;  // the root of the mean square of what is uniform in ±1
  const double keep = spec.dropout.rate < 1.0 ? 1.0 / (1.0 - spec.dropout.rate) : 0.0;
  const double arriving = static_cast<double>(spec.captures.size() + (spec.lse ? 1 : 0));
  const double g = keep * number * number * std::sqrt(static_cast<double>(spec.value_size)) + arriving;
  const double rows = std::sqrt(static_cast<double>(spec.batch * spec.query_heads * spec.queries));
  if (name == "dsinks" || name == "dmask") return g * rows;
  const double size = static_cast<double>(spec.head_size);
  const double scale = spec.has_scale ? std::abs(spec.scale) : 1.0 / std::sqrt(size);
  return scale * g * spec.spread * std::sqrt(size) * rows;
}

// What an engine that works in f32 may differ by: the roundings of forward, and sums over all rows in one chain.
double gradient_tolerance(const CaseSpec& spec, DType written) {
  if (spec.query_type == DType::f64) return 1e-12;
  const double handed = handed_to_backward(spec) == Handed::out_and_lse ? rounding_to(spec.query_type) : 0.0;
  const auto rows = static_cast<double>(
      spec.queries * std::max<std::int64_t>(1, spec.query_heads / std::max<std::int64_t>(1, spec.kv_heads)));
  return handed + tolerance(spec, written, true) + 0x1p-24 * std::sqrt(rows);
}

}  // namespace

std::vector<Comparison> compare(const CaseSpec& spec, const Answer& got, const Answer& wanted) {
  const double in_sums = tolerance(spec, spec.query_type == DType::f64 ? DType::f64 : DType::f32, false);
  std::vector<Comparison> all;
  all.push_back({"out", relative_error(got.out, wanted.out),
                 tolerance(spec, spec.query_type, true) + subnormal_rounding(spec.query_type, wanted.out)});
  if (spec.lse) all.push_back({"lse", absolute_error(got.lse, wanted.lse), in_sums});
  for (std::size_t n = 0; n < got.captures.size(); ++n) {
    const Stage stage = spec.captures[n].first;
    const bool weights = stage == Stage::weights || stage == Stage::dropped_weights;
    const double error = weights ? relative_error(got.captures[n], wanted.captures[n])
                                 : absolute_error(got.captures[n], wanted.captures[n]);
    const DType type = spec.type_of(stage);
    all.push_back(
        {"capture " + std::to_string(n), error,
         tolerance(spec, type, stage == Stage::dropped_weights) + subnormal_rounding(type, wanted.captures[n])});
  }
  return all;
}

std::vector<Comparison> compare(const CaseSpec& spec, const Gradients& got, const Gradients& wanted) {
  std::vector<Comparison> all;
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    const Gradient& gradient = got[n];
    const auto norm_of = [](const Tensor& tensor) {
      double norm = 0.0;
      for (const double value : tensor.values<double>()) norm += std::isfinite(value) ? value * value : 0.0;
      return std::sqrt(norm);
    };
    const double norm = norm_of(wanted[n].values);
    const double beside = norm + difference_size(spec, gradient.name);
    Comparison one{gradient.name, relative_error(gradient.values, wanted[n].values), 0.0};
    if (norm == 0.0 && one.error > 0.0 && beside > 0.0) {  // a difference that is exactly 0 in the truth
      one.error = relative_error(wanted[n].values, gradient.values) * norm_of(gradient.values) / beside;
    } else if (one.error > 0.0 && std::isfinite(one.error)) {
      one.error *= norm / beside;
    }
    one.allowed = gradient_tolerance(spec, gradient.written);
    if (gradient.written == DType::f16) {  // near 0 its numbers are 2^-24 apart
      one.allowed += 0x1p-25 * std::sqrt(static_cast<double>(gradient.values.count())) / std::max(beside, 1e-300);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string mismatch(const CaseSpec& spec, const Answer& got, const Answer& wanted) {
  return mismatch(compare(spec, got, wanted));
}

std::string mismatch(const std::vector<Comparison>& all) {
  std::ostringstream text;
  for (const Comparison& one : all) {
    if (one.error <= one.allowed) continue;
    text << one.output << " differs by " << one.error << ", allowed " << one.allowed << "; ";
  }
  return text.str();
}

}  // namespace rapt::cases
