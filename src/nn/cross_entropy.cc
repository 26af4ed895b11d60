#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "attention/apart.h"
#include "nn/row_work.h"
#include "rapt/layers.h"

namespace rapt {

double cross_entropy(const TensorView& dlogits, const ConstTensorView& logits, std::span<const std::int32_t> targets,
                     double scale) {
  const Checks checks("cross_entropy");
  nn::check_matrix(checks, "logits", logits, logits.dtype());
  checks.require(std::ssize(targets) == logits.size(0), "there are ", targets.size(), " targets for ", logits.size(0),
                 " rows of logits; give one for each, or kNoTarget to ignore it");
  const std::int64_t classes = logits.size(1);
  std::int64_t counted = 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] == kNoTarget) continue;
    checks.require(targets[t] >= 0 && targets[t] < classes, "targets[", t, "] is ", targets[t],
                   "; it must be less than ", classes, ", the columns of logits, and at least 0, or kNoTarget");
    ++counted;
  }
  if (dlogits.defined()) {
    nn::check_matrix(checks, "dlogits", dlogits, logits.dtype());
    checks.shaped("dlogits", dlogits, logits.shape(), "that of logits");
    Apart tensors(checks);
    tensors.add_input("logits", logits);
    tensors.add_output("dlogits", dlogits, "logits");
  }
  const double share = counted == 0 ? 0.0 : 1.0 / static_cast<double>(counted);
  std::vector<double> losses(targets.size(), 0.0);  // summed in their order, whichever thread found them
  nn::with_float_type(logits.dtype(), [&](auto type) {
    using T = decltype(type);
    nn::for_rows(logits.size(0), 40 * classes, [&](std::int64_t t) {
      const std::int32_t target = targets[static_cast<std::size_t>(t)];
      T* to = dlogits.defined() ? nn::row_of<T>(dlogits, t) : nullptr;
      if (target == kNoTarget) {
        if (to != nullptr) std::fill_n(to, classes, T());
        return;
      }
      const T* row = nn::row_of<T>(logits, t);
      const double largest = *std::max_element(row, row + classes);
      double sum = 0.0;
      for (std::int64_t n = 0; n < classes; ++n) sum += std::exp(row[n] - largest);
      losses[static_cast<std::size_t>(t)] = std::log(sum) + largest - row[target];
      if (to == nullptr) return;
      for (std::int64_t n = 0; n < classes; ++n) {
        const double weight = std::exp(row[n] - largest) / sum;
        to[n] = static_cast<T>((weight - (n == target ? 1.0 : 0.0)) * share * scale);
      }
    });
  });
  double total = 0.0;
  for (const double loss : losses) total += loss;
  return total * share;
}

}  // namespace rapt
