#include "attention/overlap.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace rapt {

namespace {

// Whether Σ step_n · z_n = target has a solution with 0 ≤ z_n ≤ most_n.
class BoundedSum {
 public:
  void add(std::int64_t step, std::int64_t most) {
    if (most <= 0 || step == 0) return;
    const auto end = terms_.begin() + count_;
    const auto place = std::find_if(terms_.begin(), end, [&](const Term& term) { return term.step <= step; });
    if (place != end && place->step == step) {
      place->most += most;  // z + z' takes every value up to the sum of both bounds
      return;
    }
    std::copy_backward(place, end, end + 1);
    *place = {step, most};
    ++count_;
  }

  bool reaches(std::int64_t target) {
    std::int64_t sum = 0, divisor = 0;
    for (auto n = count_; n-- > 0;) {
      Term& term = terms_[static_cast<std::size_t>(n)];
      term.rest = sum;
      sum += term.step * term.most;
      term.divisor = divisor = std::gcd(divisor, term.step);
    }
    return target <= sum && search(0, target);
  }

 private:
  struct Term {
    std::int64_t step = 0, most = 0;
    std::int64_t rest = 0;     // the largest sum of the later terms
    std::int64_t divisor = 0;  // gcd of this step and the later ones
  };

  // If strides nest, each term leaves one or two choices of z.
  bool search(std::ptrdiff_t n, std::int64_t target) {  // NOLINT(misc-no-recursion): as deep as there are terms
    if (target == 0) return true;
    if (n == count_) return false;
    const auto& [step, most, rest, divisor] = terms_[static_cast<std::size_t>(n)];
    if (target % divisor != 0) return false;
    const std::int64_t least = std::max<std::int64_t>(0, (target - rest + step - 1) / step);
    for (std::int64_t z = std::min(most, target / step); z >= least; --z) {
      if (--choices_ < 0 || search(n + 1, target - z * step)) return true;
    }
    return false;
  }

  std::array<Term, 2 * Dims::kMaxRank + 2> terms_;  // steps descend
  std::ptrdiff_t count_ = 0;
  int choices_ = 1 << 14;
};

}  // namespace

ByteRange byte_range(const void* data, DType dtype, const Dims& shape, const Dims& strides) {
  std::int64_t below = 0, above = 0;  // extent of the elements, relative to the first one
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] == 0) return {};
    const std::int64_t reach = (shape[dim] - 1) * strides[dim];
    (reach < 0 ? below : above) += reach;
  }
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  return {first + static_cast<std::uintptr_t>(below * size), first + static_cast<std::uintptr_t>((above + 1) * size)};
}

// The tensors overlap if byte Σ a_i x_i + e of a and byte Σ b_j y_j + f of b, each counted from its tensor's lowest
// address, can be the same byte. Counting y_j and f down from their largest values makes all coefficients positive,
// which leaves one bounded sum.
bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  const ByteRange of_a = byte_range(a), of_b = byte_range(b);
  if (!of_a.meets(of_b)) return false;
  const auto size_a = static_cast<std::int64_t>(size_of(a.dtype())),
             size_b = static_cast<std::int64_t>(size_of(b.dtype()));
  const auto target = static_cast<std::int64_t>(of_b.end - of_a.begin) - 1;
  // Counts in the largest common unit: elements, if both tensors have the same element size and alignment.
  const std::int64_t unit = std::gcd(std::gcd(size_a, size_b), target + 1);
  BoundedSum sum;
  for (int dim = 0; dim < a.rank(); ++dim) sum.add(std::abs(a.stride(dim)) * (size_a / unit), a.size(dim) - 1);
  for (int dim = 0; dim < b.rank(); ++dim) sum.add(std::abs(b.stride(dim)) * (size_b / unit), b.size(dim) - 1);
  sum.add(1, (size_a + size_b) / unit - 2);
  return sum.reaches((target + 1) / unit - 1);
}

}  // namespace rapt
