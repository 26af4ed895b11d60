// Loss and accuracy of logits on a batch.
#pragma once

#include <cstdint>

#include "rapt/tensor.h"
#include "train/task.h"

namespace rapt::train {

// Totals over the targets of one or more batches.
struct Score {
  double loss = 0.0;  // sum of −log p(target)
  std::int64_t right = 0, targets = 0;
  std::int64_t rows_right = 0, rows = 0;  // rows in which every target is right

  // Logits (B, L, V) for the batch's tokens.
  void add(const Batch& batch, const Tensor& logits);

  double mean_loss() const { return targets == 0 ? 0.0 : loss / static_cast<double>(targets); }
  double accuracy() const { return targets == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(targets); }
  double row_accuracy() const { return rows == 0 ? 0.0 : static_cast<double>(rows_right) / static_cast<double>(rows); }
};

}  // namespace rapt::train
