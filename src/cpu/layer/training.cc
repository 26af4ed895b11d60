// Embedding, loss and optimizer.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cpu/layer/layer_kernels.h"
#include "cpu/layer/layer_ops.h"
#include "cpu/layer/rows.h"
#include "rapt/layers.h"

namespace rapt::cpu {

void embed(const TensorView& y, std::span<const std::int32_t> tokens, const ConstTensorView& table,
           const Workers& workers) {
  with_float_type(y.dtype(), [&](auto type) {
    using T = decltype(type);
    for_rows(workers, y.size(0), y.size(1), [&](std::int64_t t) {
      std::copy_n(row_of<T>(table, tokens[static_cast<std::size_t>(t)]), y.size(1), row_of<T>(y, t));
    });
  });
}

// In every column, tokens ascend, so that each element is one chain.
void embed_backward(const TensorView& dtable, const ConstTensorView& dy, std::span<const std::int32_t> tokens,
                    const Workers& workers) {
  with_float_type(dy.dtype(), [&](auto type) {
    using T = decltype(type);
    for_parts(workers, dy.size(1), dy.count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = 0; t < dy.size(0); ++t) {
        const T* from = row_of<T>(dy, t);
        T* to = row_of<T>(dtable, tokens[static_cast<std::size_t>(t)]);
        for (std::int64_t n = begin; n < end; ++n) to[n] += from[n];
      }
    });
  });
}

double cross_entropy(const CrossEntropyProblem& problem, const Workers& workers) {
  const ConstTensorView& logits = problem.logits;
  const std::int64_t classes = logits.size(1);
  std::vector<double> losses(problem.targets.size(), 0.0);  // summed in order, whichever thread computed them
  with_float_type(logits.dtype(), [&](auto type) {
    using T = decltype(type);
    for_rows(workers, logits.size(0), 40 * classes, [&](std::int64_t t) {
      const std::int32_t target = problem.targets[static_cast<std::size_t>(t)];
      T* to = problem.dlogits.defined() ? row_of<T>(problem.dlogits, t) : nullptr;
      if (target == kNoTarget) {
        if (to != nullptr) std::fill_n(to, classes, T());
        return;
      }
      const T* row = row_of<T>(logits, t);
      const double largest = *std::max_element(row, row + classes);
      double sum = 0.0;
      for (std::int64_t n = 0; n < classes; ++n) sum += std::exp(row[n] - largest);
      losses[static_cast<std::size_t>(t)] = std::log(sum) + largest - row[target];
      if (to == nullptr) return;
      for (std::int64_t n = 0; n < classes; ++n) {
        const double weight = std::exp(row[n] - largest) / sum;
        to[n] = static_cast<T>((weight - (n == target ? 1.0 : 0.0)) * problem.share * problem.scale);
      }
    });
  });
  double total = 0.0;
  for (const double loss : losses) total += loss;
  return total;
}

double add_squares(double start, const ConstTensorView& x, const Workers& /*one chain*/) {
  with_float_type(x.dtype(), [&](auto type) {
    const auto* values = static_cast<const decltype(type)*>(x.data());
    for (std::int64_t n = 0; n < x.count(); ++n) start += static_cast<double>(values[n]) * values[n];
  });
  return start;
}

void scale(const TensorView& x, double factor, const Workers& workers) {
  with_float_type(x.dtype(), [&](auto type) {
    using T = decltype(type);
    auto* values = static_cast<T*>(x.data());
    for_parts(workers, x.count(), x.count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) values[n] = static_cast<T>(values[n] * factor);
    });
  });
}

void adam(const AdamProblem& problem, const Workers& workers) {
  const std::int64_t count = problem.parameter.count();
  with_float_type(problem.parameter.dtype(), [&](auto type) {
    using T = decltype(type);
    const auto* g = static_cast<const T*>(problem.gradient.data());
    auto* first = static_cast<T*>(problem.first.data());
    auto* second = static_cast<T*>(problem.second.data());
    auto* p = static_cast<T*>(problem.parameter.data());
    const auto keep1 = static_cast<T>(problem.beta1), take1 = static_cast<T>(1.0 - problem.beta1);
    const auto keep2 = static_cast<T>(problem.beta2), take2 = static_cast<T>(1.0 - problem.beta2);
    const auto kept = static_cast<T>(problem.kept), step = static_cast<T>(problem.step);
    const auto inverse = static_cast<T>(problem.inverse), tiny = static_cast<T>(problem.epsilon);
    for_parts(workers, count, 8 * count, [&](std::int64_t begin, std::int64_t end) {
      if constexpr (std::is_same_v<T, float>) {
        layer_kernels().adam({keep1, take1, keep2, take2, kept, step, inverse, tiny}, g + begin, first + begin,
                             second + begin, p + begin, end - begin);
      } else {
        for (std::int64_t n = begin; n < end; ++n) {
          first[n] = keep1 * first[n] + take1 * g[n];
          second[n] = keep2 * second[n] + take2 * g[n] * g[n];
          p[n] = kept * p[n] - step * first[n] / (std::sqrt(second[n]) * inverse + tiny);
        }
      }
    });
  });
}

}  // namespace rapt::cpu
