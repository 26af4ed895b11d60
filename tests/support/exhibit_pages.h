// Helpers for the tests of exhibits: find blocks on a page.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "exhibits/exhibit.h"
#include "rapt/error.h"

namespace rapt::test {

template <class Kind>
std::vector<const Kind*> all_of(const exhibits::Exhibit& exhibit) {
  std::vector<const Kind*> found;
  for (const exhibits::Block& block : exhibit.blocks) {
    if (const Kind* each = std::get_if<Kind>(&block)) found.push_back(each);
  }
  return found;
}

inline std::vector<std::string> prose_of(const exhibits::Exhibit& exhibit) {
  std::vector<std::string> texts;
  for (const exhibits::Prose* prose : all_of<exhibits::Prose>(exhibit)) texts.push_back(prose->text);
  return texts;
}

inline std::vector<double> row_of(const exhibits::Matrix& matrix, std::size_t row) {
  const std::size_t across = matrix.columns.size();
  const auto begin = matrix.values.begin() + static_cast<std::ptrdiff_t>(row * across);
  return {begin, begin + static_cast<std::ptrdiff_t>(across)};
}

inline double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// The first matrix whose title contains these words.
inline exhibits::Matrix titled(const exhibits::Exhibit& exhibit, const std::string& title) {
  for (const exhibits::Matrix* matrix : all_of<exhibits::Matrix>(exhibit)) {
    if (matrix->title.find(title) != std::string::npos) return *matrix;
  }
  throw Error("no matrix " + title);
}

}  // namespace rapt::test
