// The tiny models of tests/data/models (make_models.py), in memory, where a test can change them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/files.h"
#include "rapt/safetensors.h"
#include "rapt/tensor.h"
#include "support/files.h"
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

// ---------------------------------------------------------------- what the functions do

inline TinyModel::TinyModel(const std::string& named)
    : name(named),
      config(nlohmann::json::parse(read_raw(RAPT_TEST_DATA "/models/" + named + "/config.json"))),
      tensors(read_safetensors(RAPT_TEST_DATA "/models/" + named + "/model.safetensors").tensors),
      expected(read_safetensors(RAPT_TEST_DATA "/models/" + named + ".expected.safetensors")) {}

inline void TinyModel::rename(const std::function<std::string(const std::string&)>& rename) {
  std::map<std::string, Tensor> renamed;
  for (auto& [old, tensor] : tensors) renamed.emplace(rename(old), std::move(tensor));
  tensors = std::move(renamed);
}

inline void TinyModel::store_as(DType dtype) {
  for (auto& [tensor_name, tensor] : tensors) tensor = tensor.to(dtype);
}

inline models::ModelFiles TinyModel::files(std::size_t count) {
  models::ModelFiles files;
  files.set_where(name);
  const std::string text = config.dump();
  files.add("config.json", bytes_of(text));
  std::vector<std::vector<NamedTensor>> parts(count);
  std::size_t n = 0;
  for (const auto& [tensor_name, tensor] : tensors) parts[n++ % count].push_back({tensor_name, tensor.view()});
  for (std::size_t part = 0; part < count; ++part) {
    bytes_.push_back(safetensors_bytes(parts[part]));
    files.add("model-" + std::to_string(part) + ".safetensors", bytes_.back());
  }
  return files;
}

inline std::vector<std::int32_t> TinyModel::whole_numbers(const std::string& of) const {
  std::vector<std::int32_t> numbers;
  for (const float number : expected.at(of).values<float>()) numbers.push_back(static_cast<std::int32_t>(number));
  return numbers;
}

// The largest difference of two tensors of the same shape.
inline double largest_difference(const ConstTensorView& a, const ConstTensorView& b) {
  EXPECT_EQ(a.shape(), b.shape());
  if (a.shape() != b.shape()) return INFINITY;
  const Tensor x = Tensor::copy_of(a, DType::f64), y = Tensor::copy_of(b, DType::f64);
  double largest = 0;
  for (std::size_t n = 0; n < x.values<double>().size(); ++n) {
    const double difference = std::abs(x.values<double>()[n] - y.values<double>()[n]);
    if (!(difference <= largest)) largest = difference;  // also if it is NaN
  }
  return largest;
}

}  // namespace rapt::test
