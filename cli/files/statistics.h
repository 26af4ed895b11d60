// Summary statistics of a tensor.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "rapt/tensor.h"

namespace rapt::cli {

struct Statistics {
  std::int64_t count = 0;
  std::int64_t zeros = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  double min = 0, max = 0, mean = 0, deviation = 0;  // of the finite numbers; bool counts as 0 and 1
};

Statistics statistics_of(const ConstTensorView& tensor);

std::string shape_words(const Dims& shape);
nlohmann::ordered_json shape_json(const Dims& shape);
nlohmann::ordered_json statistics_json(const Statistics& statistics);
// "min -1.2  mean 0.03  max 4.1"
std::string statistics_words(const Statistics& statistics);
std::string bytes_words(std::uint64_t bytes);  // "4.0 KB"

// The first numbers, row by row, as text that fits a line.
std::string first_numbers(const ConstTensorView& tensor, std::int64_t most);
nlohmann::ordered_json first_numbers_json(const ConstTensorView& tensor, std::int64_t most);

}  // namespace rapt::cli
