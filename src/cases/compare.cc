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
  bool differs = false;  // squares of tiny numbers underflow
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

// The approximate magnitude of scores: products of two inputs, and ALiBi's slope times the longest distance.
double score_size(const CaseSpec& spec) {
  double size = 16.0 * spec.spread * spec.spread;
  if (!spec.alibi) return size;
  double offset = 0.0;
  for (const std::int64_t value : spec.alignment.values)
    offset = std::max(offset, std::abs(static_cast<double>(value)));
  const double slope = std::exp2(-8.0 / static_cast<double>(std::max<std::int64_t>(1, spec.query_heads)));
  return size + slope * (static_cast<double>(spec.queries + spec.keys) + offset);
}

// The norm of the difference relative to the norm of the n finite expected values or, if that is larger, to √n: for a
// logarithm, or a score that becomes an exponent, the absolute error matters.
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

// What rounding to subnormal f16 numbers, which are 2^-24 apart, may add to a relative error.
double subnormal_rounding(DType output, const Tensor& wanted) {
  if (output != DType::f16) return 0.0;
  double norm = 0.0;
  for (const double value : wanted.values<double>()) norm += std::isfinite(value) ? value * value : 0.0;
  return norm == 0.0 ? 0.0 : 0x1p-25 * std::sqrt(static_cast<double>(wanted.count()) / norm);
}

// Half a unit in the last place, relative to the value.
double rounding_to(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0.0; }

// The error of a case's weights, in units of 2^-24. A score is one chain of D products whose partial sums grow about
// evenly, so the chain accumulates √(D/3) rounding errors of its magnitude. Softmax cancels most of this, because the
// largest score appears in every weight of a row and in their sum; about one rounding error of a score remains. Dropout
// may remove the largest weight. The remaining weights then show the full error of the difference of two scores: in
// case Random8943 the largest weight is dropped in all seven heads, and a kept weight depends on the difference between
// its own score, which is off by 80 of these units, and a dropped one, which is off by −245. Inputs are uniform in ±1.7
// · spread, so scores have a standard deviation of 0.96 · spread² · |scale| · √D, and four of these cover nearly all of
// them.
double weight_error(const CaseSpec& spec, bool dropped) {
  const double cancelled = std::max(16.0, score_size(spec));
  if (!dropped || spec.dropout.rate == 0.0) return cancelled;
  const auto size = static_cast<double>(spec.head_size);
  const double scale = spec.has_scale ? std::abs(spec.scale) * std::sqrt(size) : 1.0;
  const double largest = 4.0 * 0.96 * spec.spread * spec.spread * scale;
  return std::max(cancelled, largest * std::sqrt(size / 3.0));
}

// The error limit of an f32 engine for an output of this type. The error has two sources: the final rounding and the
// sums. `dropped`: the output depends on weights after dropout.
double tolerance(const CaseSpec& spec, DType output, bool dropped) {
  if (spec.query_type == DType::f64) return 1e-12;
  // Half a unit in the last place of the output: the largest error of one rounding.
  const double rounding = rounding_to(output);
  // The error of a score enters the exponent, and so the weight; a chunk's sum of n weights is one chain and
  // accumulates about √n rounding errors.
  const double chain = std::sqrt(static_cast<double>(std::min<std::int64_t>(spec.keys, 256)));
  return rounding + 0x1p-24 * (weight_error(spec, dropped) + chain);
}

// Gradients of scores are p · (g − Σ p g). They may be small because the two terms cancel: with one key they are equal.
// Their rounding errors are still those of g. This is the approximate norm of the gradient without cancellation.
double difference_size(const CaseSpec& spec, const std::string& name) {
  if (name == "dvalue") return 0.0;
  const double number = 0.58;  // root mean square of uniform numbers in ±1
  const double keep = spec.dropout.rate < 1.0 ? 1.0 / (1.0 - spec.dropout.rate) : 0.0;
  const double arriving = static_cast<double>(spec.captures.size() + (spec.lse ? 1 : 0));
  const double g = keep * number * number * std::sqrt(static_cast<double>(spec.value_size)) + arriving;
  const double rows = std::sqrt(static_cast<double>(spec.batch * spec.query_heads * spec.queries));
  if (name == "dsinks" || name == "dmask") return g * rows;
  const double size = static_cast<double>(spec.head_size);
  const double scale = spec.has_scale ? std::abs(spec.scale) : 1.0 / std::sqrt(size);
  return scale * g * spec.spread * std::sqrt(size) * rows;
}

// The error limit of an f32 engine: the rounding errors of forward, and those of sums over all rows, as if each sum
// were one chain.
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
    if (norm == 0.0 && one.error > 0.0 && beside > 0.0) {  // a difference whose exact value is 0
      one.error = relative_error(wanted[n].values, gradient.values) * norm_of(gradient.values) / beside;
    } else if (one.error > 0.0 && std::isfinite(one.error)) {
      one.error *= norm / beside;
    }
    one.allowed = gradient_tolerance(spec, gradient.written);
    if (gradient.written == DType::f16) {  // subnormal numbers are 2^-24 apart
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
