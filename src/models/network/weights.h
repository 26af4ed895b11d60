// The tensors of a model by their plain names, wherever its files put them: under a prefix such as "bert.", in several
// files, with the old names of layer norms. Every shape is checked against config.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rapt/safetensors.h"
#include "rapt/tensor.h"

namespace rapt::models {

class ModelFiles;

// A size of a tensor and the entry of config.json that gives it: `times` · value.
struct Size {
  std::string_view entry;
  std::int64_t value = 0;
  std::int64_t times = 1;
};
using Shape = std::vector<Size>;

class Weights {
 public:
  // `anchor` is a tensor that every model of the family has; what comes before its name is the prefix of all.
  Weights(const ModelFiles& files, std::string_view anchor);

  const std::string& prefix() const { return prefix_; }
  bool has(std::string_view name) const { return !found(prefix_ + std::string(name)).empty(); }

  // As stored: f32, f16, bf16 or f64. Valid while the files are alive.
  ConstTensorView view(std::string_view name, const Shape& shape) const;
  Tensor f32(std::string_view name, const Shape& shape) const;

  // The same tensors seen from one level up, where a model keeps its prediction head: "" beside "bert.".
  Weights above() const;

 private:
  using Names = std::unordered_map<std::string, const SafetensorsFile*>;

  std::string found(const std::string& name) const;  // as the files name it; "" if there is none
  void find_prefix(std::string_view anchor);

  std::string where_;
  std::string prefix_;
  Names names_;
};

}  // namespace rapt::models
