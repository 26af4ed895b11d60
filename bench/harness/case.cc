#include "bench/harness/case.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

namespace rapt::bench {
namespace {

// Combines every case so far with every value of one parameter.
template <class Value, class Set>
void multiply(std::vector<BenchCase>& cases, const std::vector<Value>& values, const Set& set) {
  std::vector<BenchCase> more;
  for (const BenchCase& each : cases) {
    for (const auto& value : values) {
      more.push_back(each);
      set(more.back(), value);
    }
  }
  cases = std::move(more);
}

void require_possible(const BenchCase& c) {
  if (c.heads % c.kv_heads != 0) {
    throw std::invalid_argument(
        fmt::format("{} head{} cannot share {} kv head{} evenly; --kv-heads must divide --heads", c.heads,
                    c.heads == 1 ? "" : "s", c.kv_heads, c.kv_heads == 1 ? "" : "s"));
  }
  // Limits the sizes that a run allocates: a larger number of elements is a typing mistake.
  constexpr double kMostElements = 1e11;
  const double rows = static_cast<double>(c.batch) * static_cast<double>(c.heads);
  const double inputs = rows * static_cast<double>(std::max(c.queries, c.keys)) * static_cast<double>(c.dim);
  const bool has_plane = is_full(c.mask) || c.weights != BenchWeights::none;
  const double plane = has_plane ? rows * static_cast<double>(c.queries) * static_cast<double>(c.keys) : 0.0;
  if (std::max(inputs, plane) > kMostElements) {
    throw std::invalid_argument(
        fmt::format("{} needs tensors of {:.1e} elements; use smaller sizes", c.name(), std::max(inputs, plane)));
  }
}

}  // namespace

std::string_view name_of(BenchMask mask) {
  switch (mask) {
    case BenchMask::none: return "none";
    case BenchMask::bool_full: return "bool";
    case BenchMask::float_full: return "float";
    case BenchMask::bool_plane: return "bool-plane";
    case BenchMask::float_plane: return "float-plane";
  }
  return "?";
}

std::string_view name_of(BenchWeights weights) {
  switch (weights) {
    case BenchWeights::none: return "none";
    case BenchWeights::mean: return "mean";
    case BenchWeights::all: return "all";
  }
  return "?";
}

std::string name_of(const Window& window) {
  if (is_open(window)) return "none";
  const auto side = [](const std::optional<std::int64_t>& keys) { return keys ? std::to_string(*keys) : "open"; };
  return side(window.left) + "," + side(window.right);
}

std::string BenchCase::name() const {
  std::string text = fmt::format("b{} h{}", batch, heads);
  if (kv_heads != heads) text += fmt::format("/{}", kv_heads);
  text += queries == keys ? fmt::format(" n{}", queries) : fmt::format(" q{} k{}", queries, keys);
  text += fmt::format(" d{}", dim);
  if (dtype != DType::f32) text += fmt::format(" {}", rapt::name_of(dtype));
  if (causal) text += " causal";
  if (!is_open(window)) text += fmt::format(" window {}", name_of(window));
  if (mask != BenchMask::none) text += fmt::format(" {} mask", name_of(mask));
  if (weights != BenchWeights::none) text += fmt::format(" {} weights", name_of(weights));
  if (threads != 1) text += fmt::format(" t{}", threads);
  return text;
}

double BenchCase::pairs() const {
  if (!causal && is_open(window)) return static_cast<double>(queries) * static_cast<double>(keys);
  double total = 0.0;
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t position = i + offset();
    std::int64_t first = 0;
    std::int64_t last = causal ? std::min(position, keys - 1) : keys - 1;
    if (window.left) first = std::max(first, position - *window.left);
    if (window.right) last = std::min(last, position + *window.right);
    total += static_cast<double>(std::max<std::int64_t>(0, last - first + 1));
  }
  return total;
}

double BenchCase::flops() const { return (backward ? 10.0 : 4.0) * static_cast<double>(batch * heads * dim) * pairs(); }

double BenchCase::key_value_bytes() const {
  return 2.0 * static_cast<double>(batch * kv_heads * keys * dim) * static_cast<double>(size_of(dtype));
}

std::vector<BenchCase> cases_of(const BenchSweep& sweep) {
  using Number = std::int64_t;
  std::vector<BenchCase> cases{{.backward = sweep.backward}};
  multiply(cases, sweep.batch, [](BenchCase& c, Number n) { c.batch = n; });
  multiply(cases, sweep.heads, [](BenchCase& c, Number n) { c.heads = c.kv_heads = n; });
  if (!sweep.kv_heads.empty()) multiply(cases, sweep.kv_heads, [](BenchCase& c, Number n) { c.kv_heads = n; });
  multiply(cases, sweep.queries, [](BenchCase& c, Number n) { c.queries = c.keys = n; });
  if (!sweep.keys.empty()) multiply(cases, sweep.keys, [](BenchCase& c, Number n) { c.keys = n; });
  multiply(cases, sweep.dim, [](BenchCase& c, Number n) { c.dim = n; });
  multiply(cases, sweep.dtype, [](BenchCase& c, DType d) { c.dtype = d; });
  multiply(cases, sweep.causal, [](BenchCase& c, bool on) { c.causal = on; });
  multiply(cases, sweep.window, [](BenchCase& c, const Window& w) { c.window = w; });
  multiply(cases, sweep.mask, [](BenchCase& c, BenchMask m) { c.mask = m; });
  multiply(cases, sweep.weights, [](BenchCase& c, BenchWeights w) { c.weights = w; });
  multiply(cases, sweep.threads, [](BenchCase& c, Number n) { c.threads = static_cast<int>(n); });
  for (const BenchCase& each : cases) require_possible(each);
  return cases;
}

}  // namespace rapt::bench
