#include "models/heads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/shares.h"

namespace rapt::models {
namespace {

constexpr double kMostly = 0.5;

// One row is no evidence of a habit.
constexpr std::int64_t kFewestRows = 2;

// The mean weight on delimiters, over the rows that count. A delimiter's weight on itself is not counted: that is what
// `itself` means.
double share_on_delimiters(const ConstTensorView& weights, std::span<const TokenKind> tokens, bool all_count) {
  double sum = 0;
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!all_count && tokens[i].special) continue;
    ++rows;
    for (std::size_t j = 0; j < tokens.size(); ++j) {
      if (tokens[j].delimiter && i != j) sum += double{weights.at<float>(i, j)};
    }
  }
  return rows == 0 ? 0.0 : sum / static_cast<double>(rows);
}

}  // namespace

bool is_delimiter(const std::string& text, bool special, bool first) {
  if (special) return !first;
  constexpr std::array<const char*, 11> kMarks{".", ",", ";", ":", "!", "?", "。", "，", "；", "！", "？"};
  const std::size_t begin = text.find_first_not_of(' ');
  return begin != std::string::npos &&
         std::any_of(kMarks.begin(), kMarks.end(), [&](const char* mark) { return text.substr(begin) == mark; });
}

HeadSummary summarize(const ConstTensorView& weights, std::span<const TokenKind> tokens) {
  std::vector<std::int32_t> ids;
  for (const TokenKind& token : tokens) ids.push_back(token.id);
  // In a text of special tokens only, all rows count.
  const bool all_count =
      std::all_of(tokens.begin(), tokens.end(), [](const TokenKind& token) { return token.special; });
  const Shares shares = shares_of<float>(weights, std::span<const std::int32_t>(ids), [&](std::int64_t i) {
    return all_count || !tokens[static_cast<std::size_t>(i)].special;
  });
  // Of equal shares, the first in this list: the most specific one.
  const std::array<std::pair<double, Habit>, 7> candidates{{
      {shares.rows_followed < kFewestRows ? 0.0 : shares.followed, Habit::induction},
      {shares.rows_elsewhere < kFewestRows ? 0.0 : shares.elsewhere, Habit::same},
      {shares.previous, Habit::previous},
      {shares.next, Habit::next},
      {shares.itself, Habit::itself},
      {share_on_delimiters(weights, tokens, all_count), Habit::delimiter},
      {shares.first, Habit::first},
  }};
  const auto* best = std::max_element(candidates.begin(), candidates.end(),
                                      [](const auto& a, const auto& b) { return a.first < b.first; });
  const double keys = std::exp(shares.entropy);
  if (best->first < kMostly) return {Habit::spread, 0.0, keys};
  return {best->second, best->first, keys};
}

std::vector<HeadSummary> summarize_all(const ConstTensorView& weights, std::span<const TokenKind> tokens) {
  std::vector<HeadSummary> all;
  for (std::int64_t layer = 0; layer < weights.size(0); ++layer) {
    for (std::int64_t head = 0; head < weights.size(1); ++head) {
      all.push_back(summarize(weights.select(0, layer).select(0, head), tokens));
    }
  }
  return all;
}

}  // namespace rapt::models
