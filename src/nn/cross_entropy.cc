#include <cstddef>

#include "attention/apart.h"
#include "core/engine.h"
#include "nn/matrix_checks.h"
#include "rapt/layers.h"

namespace rapt {

double cross_entropy(const TensorView& dlogits, const ConstTensorView& logits, std::span<const std::int32_t> targets,
                     double scale) {
  const Checks checks("cross_entropy", logits.device());
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
  const LayerOps& ops = *device_row(logits.device()).layer;
  return ops.cross_entropy({dlogits, logits, targets, share, scale}, core::pool_workers()) * share;
}

}  // namespace rapt
