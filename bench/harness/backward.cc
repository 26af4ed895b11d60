#include "bench/harness/backward.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <span>
#include <vector>

#include "bench/harness/numbers.h"

namespace rapt::bench {
namespace {

// The error of some gradients. The gradient of a score is p · (g − Σ p g), which is nearly 0 in a row that sees few
// keys, although its rounding error is not. So the error is relative to the norm of the expected result plus a fraction
// of the norm of the subtracted terms.
class Difference {
 public:
  explicit Difference(double size_of_a_row) : size_(size_of_a_row) {}

  void add(const ConstTensorView& got, std::span<const double> wanted) {
    const Tensor numbers = Tensor::copy_of(got, DType::f64);
    for (std::size_t n = 0; n < wanted.size(); ++n) {
      wrong_ += std::pow(numbers.values<double>()[n] - wanted[n], 2);
      right_ += wanted[n] * wanted[n];
    }
    beside_ += size_ * size_;
  }
  double error() const { return wrong_ == 0.0 ? 0.0 : std::sqrt(wrong_) / (std::sqrt(right_) + std::sqrt(beside_)); }

 private:
  double size_, wrong_ = 0.0, right_ = 0.0, beside_ = 0.0;
};

// A twentieth of the typical scale · |g| · |k|, where all inputs are in ±1 and the scale is 1/√D.
double small_part_of_a_row(const BenchCase& c) {
  return 0.05 * std::sqrt(static_cast<double>(c.dim)) / std::sqrt(27.0);
}

bool is_visible(const BenchCase& c, std::int64_t i, std::int64_t j) {
  const std::int64_t position = i + c.offset();
  return !(c.causal && j > position) && !(c.window.left && j < position - *c.window.left) &&
         !(c.window.right && j > position + *c.window.right);
}

// Checks dq of one query in every head of a group against the reference engine, which can compute it from this query
// alone.
void compare_query(const BenchCase& c, const BenchCall& call, std::int64_t b, std::int64_t kv, std::int64_t i,
                   Difference& difference) {
  const std::int64_t group = c.heads / c.kv_heads;
  const auto of_query = [&](const ConstTensorView& view) {
    return view.slice(0, b, b + 1).slice(1, kv * group, (kv + 1) * group).slice(2, i, i + 1);
  };
  const auto of_keys = [&](const ConstTensorView& view) { return view.slice(0, b, b + 1).slice(1, kv, kv + 1); };
  AttentionOptions options{.causal = c.causal, .window = c.window};
  options.alignment = Alignment::offset(c.offset() + i);
  for (const Mask& mask : call.options.masks) {
    options.masks.push_back(
        {mask.kind, is_full(c.mask) ? of_query(mask.view) : mask.view.slice(2, i, i + 1), mask.value});
  }
  const auto exact = [](const ConstTensorView& view) { return Tensor::copy_of(view, DType::f64); };
  const Tensor query = exact(of_query(call.query)), dout = exact(of_query(call.upstream.dout));
  Tensor dquery(query.shape(), DType::f64);
  attention_backward({.dquery = dquery}, {.dout = dout}, query, exact(of_keys(call.key)), exact(of_keys(call.value)),
                     options);
  for (std::int64_t h = 0; h < group; ++h) {
    const std::span<const double> wanted = std::as_const(dquery).values<double>();
    difference.add(of_query(call.gradients.dquery).select(0, 0).select(0, h).select(0, 0),
                   wanted.subspan(static_cast<std::size_t>(h * c.dim), static_cast<std::size_t>(c.dim)));
  }
}

// Computes in double what one query head adds to dk and dv of a key: a sum over all queries of the head. Weights are
// computed from forward's lse, and delta from forward's out, because recomputing them for all queries would take as
// long as forward.
class Head {
 public:
  Head(const BenchCase& c, const BenchCall& call, std::int64_t b, std::int64_t h)
      : c_(c),
        call_(call),
        b_(b),
        h_(h),
        query_(of(call.query)),
        out_(of(call.upstream.out)),
        dout_(of(call.upstream.dout)),
        lse_(of(call.upstream.lse)) {}

  void add_to(std::int64_t j, std::span<const double> key, std::span<const double> value, std::span<double> dkey,
              std::span<double> dvalue) const {
    const double scale = 1.0 / std::sqrt(static_cast<double>(c_.dim));
    for (std::int64_t i = 0; i < c_.queries; ++i) {
      if (!is_visible(c_, i, j) || is_dropped(i, j)) continue;
      const std::span<const double> q = row(query_, i), above = row(dout_, i);
      const double score = scale * dot(q, key) + added(i, j);
      const double p = std::exp(score - lse_.values<double>()[static_cast<std::size_t>(i)]);
      const double ds = scale * p * (dot(above, value) - dot(above, row(out_, i)));
      for (std::size_t d = 0; d < dkey.size(); ++d) dkey[d] += ds * q[d], dvalue[d] += p * above[d];
    }
  }

 private:
  Tensor of(const ConstTensorView& view) const { return Tensor::copy_of(view.select(0, b_).select(0, h_), DType::f64); }
  std::span<const double> row(const Tensor& tensor, std::int64_t i) const {
    return tensor.values<double>().subspan(static_cast<std::size_t>(i * c_.dim), static_cast<std::size_t>(c_.dim));
  }
  static double dot(std::span<const double> a, std::span<const double> b) {
    double sum = 0.0;
    for (std::size_t n = 0; n < a.size(); ++n) sum += a[n] * b[n];
    return sum;
  }
  ConstTensorView mask_at(std::int64_t i) const {
    const ConstTensorView& mask = call_.options.masks[0].view;
    return (is_full(c_.mask) ? mask.select(0, b_).select(0, h_) : mask.select(0, 0).select(0, 0)).select(0, i);
  }
  bool is_dropped(std::int64_t i, std::int64_t j) const { return is_bool(c_.mask) && !mask_at(i).at<bool>(j); }
  double added(std::int64_t i, std::int64_t j) const {
    return c_.mask == BenchMask::none || is_bool(c_.mask) ? 0.0 : static_cast<double>(mask_at(i).at<float>(j));
  }

  const BenchCase& c_;
  const BenchCall& call_;
  std::int64_t b_, h_;
  Tensor query_, out_, dout_, lse_;
};

std::set<std::int64_t> some_of(std::int64_t count) {
  return {0, std::min<std::int64_t>(1, count - 1), count / 3, count / 2, count - 1};
}

}  // namespace

BenchCheck compare_backward(const BenchCase& c, const BenchCall& call) {
  const double part = small_part_of_a_row(c);
  Difference of_dquery(part), of_dkey(part), of_dvalue(0.0);
  const std::int64_t group = c.heads / c.kv_heads;
  for (const std::int64_t b : std::set<std::int64_t>{0, c.batch - 1}) {
    for (const std::int64_t kv : std::set<std::int64_t>{0, c.kv_heads - 1}) {
      for (const std::int64_t i : some_of(c.queries)) compare_query(c, call, b, kv, i, of_dquery);
      std::vector<Head> heads;
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) heads.emplace_back(c, call, b, h);
      for (const std::int64_t j : some_of(c.keys)) {
        const auto row = [&](const ConstTensorView& view) { return view.select(0, b).select(0, kv).select(0, j); };
        const Tensor key = Tensor::copy_of(row(call.key), DType::f64),
                     value = Tensor::copy_of(row(call.value), DType::f64);
        std::vector<double> dkey(static_cast<std::size_t>(c.dim)), dvalue(dkey.size());
        for (const Head& head : heads) head.add_to(j, key.values<double>(), value.values<double>(), dkey, dvalue);
        of_dkey.add(row(call.gradients.dkey), dkey);
        of_dvalue.add(row(call.gradients.dvalue), dvalue);
      }
    }
  }
  // Twice the limit for forward, because the sums of backward add their own error.
  return {worse(of_dquery.error(), worse(of_dkey.error(), of_dvalue.error())), 2.0 * error_limit(c.dtype)};
}

}  // namespace rapt::bench
