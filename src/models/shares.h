// How much of a head's weight goes where: the evidence for saying what the head does.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "rapt/tensor.h"

namespace rapt::models {

// Mean weights over those rows of a head that have such a target; 0 if none has.
struct Shares {
  double previous = 0;   // the token before
  double next = 0;       // the token after
  double first = 0;      // token 0, from later rows
  double itself = 0;     // the token itself
  double same = 0;       // the token itself and its equals
  double elsewhere = 0;  // its equals only
  double followed = 0;   // tokens that followed an earlier equal: what an induction head attends to
  double entropy = 0;    // the mean over rows, in nats
  std::int64_t rows_elsewhere = 0, rows_followed = 0;  // how many rows have such a target
  bool repeats = false;                                // whether a token has an equal
};

// `weights` is (L, L), with elements of type T; ids are equal for equal tokens. `counts(i)` tells whether row i counts.
template <class T, class Id, class Counts>
Shares shares_of(const ConstTensorView& weights, std::span<const Id> ids, const Counts& counts) {
  const auto length = static_cast<std::int64_t>(ids.size());
  const auto is_equal = [&](std::int64_t a, std::int64_t b) {
    return ids[static_cast<std::size_t>(a)] == ids[static_cast<std::size_t>(b)];
  };
  Shares sums;
  std::int64_t rows = 0, after_first = 0, before_last = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    if (!counts(i)) continue;
    ++rows;
    if (i > 0) ++after_first;
    if (i + 1 < length) ++before_last;
    if (i > 0) sums.previous += double{weights.at<T>(i, i - 1)};
    if (i > 0) sums.first += double{weights.at<T>(i, 0)};
    if (i + 1 < length) sums.next += double{weights.at<T>(i, i + 1)};
    sums.itself += double{weights.at<T>(i, i)};
    bool elsewhere = false, followed = false;
    for (std::int64_t j = 0; j < length; ++j) {
      const double p = double{weights.at<T>(i, j)};
      if (is_equal(i, j)) sums.same += p;
      if (is_equal(i, j) && i != j) sums.elsewhere += p, elsewhere = true;
      if (j > 0 && j <= i && is_equal(i, j - 1) && j - 1 != i) sums.followed += p, followed = true;
      if (p > 0) sums.entropy -= p * std::log(p);
    }
    sums.rows_elsewhere += elsewhere ? 1 : 0;
    sums.rows_followed += followed ? 1 : 0;
  }
  sums.repeats = sums.rows_elsewhere > 0;
  const auto divide = [](double& sum, std::int64_t count) {
    sum = count == 0 ? 0.0 : sum / static_cast<double>(count);
  };
  divide(sums.previous, after_first), divide(sums.first, after_first), divide(sums.next, before_last);
  divide(sums.itself, rows), divide(sums.same, rows), divide(sums.entropy, rows);
  divide(sums.elsewhere, sums.rows_elsewhere), divide(sums.followed, sums.rows_followed);
  return sums;
}

}  // namespace rapt::models
