#include "support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "rapt/safetensors.h"
#include "support/files.h"

namespace rapt::test {

TinyModel::TinyModel(const std::string& named)
    : name(named),
      config(nlohmann::json::parse(read_raw(RAPT_TEST_DATA "/models/" + named + "/config.json"))),
      tensors(read_safetensors(RAPT_TEST_DATA "/models/" + named + "/model.safetensors").tensors),
      expected(read_safetensors(RAPT_TEST_DATA "/models/" + named + ".expected.safetensors")) {}

void TinyModel::rename(const std::function<std::string(const std::string&)>& rename) {
  std::map<std::string, Tensor> renamed;
  for (auto& [old, tensor] : tensors) renamed.emplace(rename(old), std::move(tensor));
  tensors = std::move(renamed);
}

void TinyModel::store_as(DType dtype) {
  for (auto& [tensor_name, tensor] : tensors) tensor = tensor.to(dtype);
}

models::ModelFiles TinyModel::files(std::size_t count) {
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

std::vector<std::int32_t> TinyModel::whole_numbers(const std::string& of) const {
  std::vector<std::int32_t> numbers;
  for (const float number : expected.at(of).values<float>()) numbers.push_back(static_cast<std::int32_t>(number));
  return numbers;
}

double largest_difference(const ConstTensorView& a, const ConstTensorView& b) {
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
