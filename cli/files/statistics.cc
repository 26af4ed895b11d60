#include "cli/files/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rapt::cli {
namespace {

// Calls visit(data, count) with the numbers in their own type. A bool is read as a byte, because memory may hold values
// other than 0 and 1.
template <class Visit>
void with_numbers(const ConstTensorView& tensor, const Visit& visit) {
  const Tensor copy = tensor.is_contiguous() ? Tensor() : Tensor::copy_of(tensor);
  const ConstTensorView flat = tensor.is_contiguous() ? tensor : copy.view();
  const auto call = [&](auto type) { visit(static_cast<const decltype(type)*>(flat.data()), flat.count()); };
  switch (tensor.dtype()) {
    case DType::f32: return call(float{});
    case DType::f64: return call(double{});
    case DType::bf16: return call(bfloat16{});
    case DType::f16: return call(float16{});
    case DType::i8: return call(std::int8_t{});
    case DType::boolean: return call(std::uint8_t{});
  }
}

Tensor first_of(const ConstTensorView& tensor, std::int64_t most) {
  const std::int64_t count = std::min(tensor.count(), most);
  Tensor numbers({count}, DType::f64);
  for (std::int64_t n = 0; n < count; ++n) {
    ConstTensorView at = tensor;
    std::int64_t rest = n;
    std::array<std::int64_t, Dims::kMaxRank> index{};
    for (int d = tensor.rank() - 1; d >= 0; rest /= tensor.size(d), --d) {
      index[static_cast<std::size_t>(d)] = rest % tensor.size(d);
    }
    for (int d = 0; d < tensor.rank(); ++d) at = at.select(0, index[static_cast<std::size_t>(d)]);
    copy(at, numbers.view().select(0, n));
  }
  return numbers;
}

}  // namespace

Statistics statistics_of(const ConstTensorView& tensor) {
  Statistics result;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  double sum = 0;
  double squares = 0;
  with_numbers(tensor, [&](const auto* data, std::int64_t count) {
    result.count = count;
    std::int64_t finite = 0;
    for (std::int64_t n = 0; n < count; ++n) {
      const auto value = static_cast<double>(data[n]);
      result.zeros += value == 0.0 ? 1 : 0;
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? result.nans : result.infinities);
        continue;
      }
      ++finite;
      least = std::min(least, value), most = std::max(most, value);
      sum += value;
    }
    if (finite == 0) return;
    result.min = least, result.max = most, result.mean = sum / static_cast<double>(finite);
    for (std::int64_t n = 0; n < count; ++n) {  // two passes, so that a large mean does not cancel digits
      const double off = static_cast<double>(data[n]) - result.mean;
      if (std::isfinite(off)) squares += off * off;
    }
    result.deviation = std::sqrt(squares / static_cast<double>(finite));
  });
  return result;
}

std::string shape_words(const Dims& shape) { return to_string(shape); }

nlohmann::ordered_json shape_json(const Dims& shape) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::int64_t size : shape) list.push_back(size);
  return list;
}

nlohmann::ordered_json statistics_json(const Statistics& s) {
  return {{"count", s.count},         {"min", s.min},     {"max", s.max},   {"mean", s.mean},
          {"deviation", s.deviation}, {"zeros", s.zeros}, {"nans", s.nans}, {"infinities", s.infinities}};
}

std::string statistics_words(const Statistics& s) {
  if (s.count == 0) return "empty";
  std::string words = fmt::format("min {:.4g}  mean {:.4g}  max {:.4g}", s.min, s.mean, s.max);
  if (s.nans > 0) words += fmt::format("  {} NaN", s.nans);
  if (s.infinities > 0) words += fmt::format("  {} infinite", s.infinities);
  return words;
}

std::string bytes_words(std::uint64_t bytes) {
  static constexpr std::array kUnits{"B", "KB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (size >= 1000.0 && unit + 1 < kUnits.size()) size /= 1000.0, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string first_numbers(const ConstTensorView& tensor, std::int64_t most) {
  std::string words;
  const Tensor numbers = first_of(tensor, most);
  for (const double value : numbers.values<double>()) words += fmt::format("{}{:.4g}", words.empty() ? "" : " ", value);
  return tensor.count() > most ? words + " …" : words;
}

nlohmann::ordered_json first_numbers_json(const ConstTensorView& tensor, std::int64_t most) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const Tensor numbers = first_of(tensor, most);
  for (const double value : numbers.values<double>()) list.push_back(value);  // non-finite numbers become null
  return list;
}

}  // namespace rapt::cli
