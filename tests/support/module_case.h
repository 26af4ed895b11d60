// One call of torch.nn.MultiheadAttention from tests/data/modules, and the same call of rapt.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rapt/multi_head_attention.h"

namespace rapt::test {

struct ModuleCase {
  std::string name;
  nlohmann::json args, call, f32_error;  // as tests/data/make_modules.py wrote them

  bool has_answer(const std::string& what) const { return f32_error.contains(what); }
  Tensor answer(const std::string& what) const;  // "out" or "weights", in f64
  // 2e-6, or twice PyTorch's own error in f32, whichever is larger.
  double f32_bound(const std::string& what) const;
  bool hides_a_row() const { return call.contains("hides_a_row"); }
};

const std::vector<ModuleCase>& module_cases();

// The layer that a case describes, with the parameters of PyTorch's layer.
MultiHeadAttention layer_of(const ModuleCase& module, DType dtype);

// Our result for the case's call.
LayerResult run_module(const ModuleCase& module, const MultiHeadAttention& layer, Engine engine = Engine::automatic);

// Numbers in [-1, 1) that depend only on the name and the index: make_modules.py generates the same.
Tensor drawn(const std::string& name, const Dims& shape);

}  // namespace rapt::test
