#include "support/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace rapt::test {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes are used as they lie in the file");

void require(bool holds, const std::string& path, const std::string& what) {
  if (!holds) throw std::runtime_error(path + ": " + what);
}

DType dtype_named(const std::string& name, const std::string& path) {
  static const std::map<std::string, DType> kTypes = {
      {"F64", DType::f64}, {"F32", DType::f32}, {"BF16", DType::bf16}, {"F16", DType::f16}, {"BOOL", DType::boolean}};
  const auto found = kTypes.find(name);
  require(found != kTypes.end(), path, "unknown dtype " + name);
  return found->second;
}

// The tensor that one header entry describes. `bytes` is everything after the header.
Tensor tensor_from(const nlohmann::json& entry, const std::vector<char>& bytes, std::size_t data_start,
                   const std::string& path) {
  const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
  const auto range = entry.at("data_offsets").get<std::vector<std::size_t>>();
  Tensor tensor(Dims{std::span<const std::int64_t>(shape)}, dtype_named(entry.at("dtype").get<std::string>(), path));
  require(range.size() == 2 && range[0] <= range[1] && range[1] <= bytes.size() - data_start, path, "bad data_offsets");
  const std::size_t size = static_cast<std::size_t>(tensor.count()) * size_of(tensor.dtype());
  require(range[1] - range[0] == size, path, "shape and data_offsets disagree");
  if (size > 0) std::memcpy(tensor.view().data(), bytes.data() + data_start + range[0], size);
  return tensor;
}

}  // namespace

const Tensor& Safetensors::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw std::runtime_error("no tensor " + name);
  return found->second;
}

Safetensors read_safetensors(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  require(stream.good(), path, "cannot be opened");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};

  std::uint64_t header_size = 0;
  require(bytes.size() >= sizeof header_size, path, "has no header");
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  require(header_size <= bytes.size() - sizeof header_size, path, "is truncated in its header");
  const std::size_t data_start = sizeof header_size + header_size;
  const auto header = nlohmann::json::parse(bytes.data() + sizeof header_size, bytes.data() + data_start);

  Safetensors file;
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      file.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    file.tensors.emplace(name, tensor_from(entry, bytes, data_start, path + ": " + name));
    ranges.emplace_back(entry.at("data_offsets").at(0), entry.at("data_offsets").at(1));
  }
  std::sort(ranges.begin(), ranges.end());
  std::size_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    require(begin == covered, path, "tensors overlap or leave a gap");
    covered = end;
  }
  require(covered == bytes.size() - data_start, path, "has bytes that belong to no tensor");
  return file;
}

}  // namespace rapt::test
