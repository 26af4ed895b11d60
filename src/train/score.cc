#include "train/score.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rapt::train {

void Score::add(const Batch& batch, const Tensor& logits) {
  const std::int64_t length = logits.shape()[1], vocabulary = logits.shape()[2];
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    bool all_right = true;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int32_t target = batch.targets[static_cast<std::size_t>(row * length + i)];
      if (target == kNoTarget) continue;
      const float* first = logits.values<float>().data() + (row * length + i) * vocabulary;
      const float* largest = std::max_element(first, first + vocabulary);
      double sum = 0.0;
      for (std::int64_t n = 0; n < vocabulary; ++n) sum += std::exp(double{first[n]} - double{*largest});
      loss += std::log(sum) + double{*largest} - double{first[target]};
      const bool is_right = largest - first == target;
      right += is_right ? 1 : 0;
      ++targets;
      all_right = all_right && is_right;
    }
    rows_right += all_right ? 1 : 0;
    ++rows;
  }
}

}  // namespace rapt::train
