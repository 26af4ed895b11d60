// One run of a note's code from tests/data/notes: its inputs and parameters, PyTorch's results, and the steps around
// attention (linear projections, splitting and combining heads) that the notes' modules have.
#pragma once

#include <string>
#include <vector>

#include "rapt/attention.h"
#include "support/safetensors.h"

namespace rapt::test {

// The results of a note's attention: the combined heads, before the output projection, and the weights.
struct Attended {
  Tensor memory;   // (B, Lq, E)
  Tensor weights;  // (B, H, Lq, Lk)

  ConstTensorView combined() const { return memory.view(); }
};

class NoteRun {
 public:
  // `note` is a file's name without its extension; results are computed and compared in `dtype`, f64 or f32.
  NoteRun(const std::string& note, const std::string& run, DType dtype);

  bool has(const std::string& name) const { return file_->has(run_ + "/" + name); }
  // An input or a parameter, in the run's type (bool stays bool).
  Tensor tensor(const std::string& name) const;
  // nn.Linear by its state-dict name: x · weightᵀ + bias over the last dimension of x (B, L, in), summed in double.
  Tensor linear(const std::string& name, const ConstTensorView& x) const;
  Tensor linear_from(const std::string& weight, const std::string& bias, const ConstTensorView& x) const;

  // Compares a result with PyTorch's, with a tolerance of 1e-12 in f64; in f32, 2e-6 or twice PyTorch's own error.
  void expect(const std::string& answer, const ConstTensorView& result) const;

 private:
  const Safetensors* file_;
  std::string run_;
  DType dtype_;
};

// Attention on q, k and v of (B, H, L, D). The output is written to (B, L, E) memory, through split_heads.
Attended attend(const ConstTensorView& q, const ConstTensorView& k, const ConstTensorView& v,
                const AttentionOptions& options = {});

// mask == 0, as in masked_fill(mask == 0, -1e9).
Tensor is_zero(const ConstTensorView& mask);

}  // namespace rapt::test
