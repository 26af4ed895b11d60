#include "reference/steps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elements.h"

namespace rapt::reference {

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

double mask_value(const Row& row, const Mask& mask, std::size_t j) {
  const ConstTensorView& view = mask.view;
  return load(view.data(), view.dtype(),
              row.batch() * view.stride(0) + row.head * view.stride(1) + row.query() * view.stride(2) +
                  row.key(j) * view.stride(3));
}

// Addition in the type of the sums: f32, or f64 for f64 input. In f32, −1e9 + s is −1e9, so a row of such scores gets
// uniform weights, as in common implementations. A term of −inf masks the key even if the score is NaN: NaN + −inf
// would be NaN.
double add(const Row& row, double s, double term) {
  if (term == kHidden) return kHidden;
  return row.problem.sums_in_f64() ? s + term : static_cast<double>(static_cast<float>(s + term));
}

double alibi(const Row& row, std::size_t j) {
  const double distance = std::abs(static_cast<double>(row.i + row.sequence.offset - static_cast<std::int64_t>(j)));
  return -row.problem.alibi_slopes[static_cast<std::size_t>(row.head)] * distance;
}

bool is_hidden(const Row& row, std::size_t j) {
  const auto key = static_cast<std::int64_t>(j);
  if (!row.problem.is_visible(row.sequence, row.i, key)) return true;
  return std::any_of(row.problem.masks.begin(), row.problem.masks.end(), [&](const Mask& mask) {
    if (mask.kind == Mask::Kind::keep) return mask_value(row, mask, j) == 0.0;
    if (mask.kind == Mask::Kind::drop) return mask_value(row, mask, j) != 0.0;
    return false;
  });
}

}  // namespace

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

void scores(const Row& row, const Inputs& inputs, std::span<double> s) {
  const std::span<const double> q = inputs.query(row.batch(), row.head, row.query());
  for (std::size_t j = 0; j < s.size(); ++j) {
    s[j] = row.problem.scale * dot(q, inputs.key(row.batch(), row.kv_head(), row.key(j)));
  }
}

void cap(const Row& row, std::span<double> s) {
  const double softcap = row.problem.softcap;
  if (softcap == 0.0) return;
  for (double& score : s) score = softcap * std::tanh(score / softcap);
}

void apply_mask(const Row& row, std::span<double> s) {
  for (std::size_t j = 0; j < s.size(); ++j) {
    for (const Mask& mask : row.problem.masks) {
      if (mask.kind == Mask::Kind::add) s[j] = add(row, s[j], mask_value(row, mask, j));
    }
    if (!row.problem.alibi_slopes.empty()) s[j] = add(row, s[j], alibi(row, j));
    for (const Mask& mask : row.problem.masks) {
      if (mask.kind == Mask::Kind::fill && mask_value(row, mask, j) != 0.0) s[j] = mask.value;
    }
    if (is_hidden(row, j)) s[j] = kHidden;
  }
}

void find_seen(std::span<const double> s, std::span<bool> seen) {
  std::transform(s.begin(), s.end(), seen.begin(), [](double score) { return score != kHidden; });
}

bool is_filled(const Row& row, std::size_t j) {
  return std::any_of(row.problem.masks.begin(), row.problem.masks.end(), [&](const Mask& mask) {
    return mask.kind == Mask::Kind::fill && mask_value(row, mask, j) != 0.0;
  });
}

Softmax softmax(const Row& row, std::span<double> s) {
  const ConstTensorView& sinks = row.problem.sinks;
  const double sink = sinks.defined() ? load(sinks.data(), sinks.dtype(), row.head * sinks.stride(0)) : kHidden;

  double m = sink;
  for (const double score : s) m = score > m || std::isnan(score) ? score : m;  // NaN propagates
  if (m == kHidden) {                                                           // fully masked: 0, never NaN
    std::fill(s.begin(), s.end(), 0.0);
    return {kHidden, 0.0};
  }

  double sum = std::exp(sink - m);
  for (double& score : s) {
    score = std::exp(score - m);
    sum += score;
  }
  for (double& weight : s) weight /= sum;
  return {m + std::log(sum), std::exp(sink - m) / sum};
}

void dropout(const Row& row, std::span<double> p) {
  const ResolvedDropout& dropout = row.problem.dropout;
  if (!dropout.on) return;
  for (std::size_t j = 0; j < p.size(); ++j) {
    const bool keep = dropout.keeps(row.sequence.index, row.head, row.i, static_cast<std::int64_t>(j));
    p[j] *= keep ? dropout.keep_scale : 0.0;
  }
}

void weighted_sum(const Row& row, const Inputs& inputs, std::span<const bool> seen, std::span<const double> p,
                  std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t j = 0; j < p.size(); ++j) {
    if (!seen[j]) continue;
    const std::span<const double> v = inputs.value(row.batch(), row.kv_head(), row.key(j));
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += p[j] * v[d];
  }
}

}  // namespace rapt::reference
