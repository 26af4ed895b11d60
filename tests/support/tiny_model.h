// The tiny models of tests/data/models (make_models.py), in memory, where a test can change them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/files.h"
#include "rapt/tensor.h"
#include "support/safetensors.h"

namespace rapt::test {

struct TinyModel {
  explicit TinyModel(const std::string& name);  // bert, distilbert, roberta, gpt2

  // Renames every tensor: rename(name) is the new name.
  void rename(const std::function<std::string(const std::string&)>& rename);
  void store_as(DType dtype);

  // The files, with the tensors divided among `count` safetensors files. Valid while this object is alive.
  models::ModelFiles files(std::size_t count = 1);

  std::vector<std::int32_t> ids() const { return whole_numbers("ids"); }
  std::vector<std::int32_t> whole_numbers(const std::string& expected) const;

  std::string name;
  nlohmann::json config;
  std::map<std::string, Tensor> tensors;
  Safetensors expected;

 private:
  std::list<std::vector<std::byte>> bytes_;  // of the files
};

// The largest difference of two tensors of the same shape, in f32.
double largest_difference(const ConstTensorView& a, const ConstTensorView& b);

}  // namespace rapt::test
