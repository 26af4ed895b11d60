// Whether a GPU's tensor cores compute as the library assumes: random dot products, compared bit by bit with a model of
// their arithmetic. `rapt check --tensor-core` prints the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rapt/dtype.h"

#pragma GCC visibility push(default)
namespace rapt::cuda {

// The result for the random dot products of one kind and element type.
struct TensorCoreScore {
  std::string kind;  // "cancelling", "near overflow", …
  DType type = DType::bf16;
  std::int64_t dots = 0;   // dot products, each computed by every instruction
  std::int64_t wrong = 0;  // results that differ from the model, over all instructions
};

struct TensorCoreReport {
  std::string device;                     // the device's name
  std::vector<std::string> instructions;  // the name of each, and where its operands are
  std::vector<TensorCoreScore> scores;    // for each type, every kind
  std::vector<std::string> failures;      // the first few, with all operands as bits
  double seconds = 0.0;

  bool good() const {
    for (const TensorCoreScore& score : scores) {
      if (score.wrong != 0) return false;
    }
    return true;
  }
};

// Computes 25 million dot products on a CUDA device, which takes a few seconds. Throws rapt::Error if there is no such
// device, or if the model does not describe its tensor cores.
TensorCoreReport check_tensor_core(int device = 0);

}  // namespace rapt::cuda
#pragma GCC visibility pop
