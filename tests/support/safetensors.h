// A small, strict reader of safetensors files, for test data only.
//
// A file is: u64 header size (little-endian), a JSON header, then the tensors' bytes. Each header entry has a dtype, a
// shape and [begin, end) in those bytes; "__metadata__" maps strings to strings.
#pragma once

#include <map>
#include <string>

#include "rapt/tensor.h"

namespace rapt::test {

struct Safetensors {
  std::map<std::string, Tensor> tensors;  // F64, F32, BF16, F16 and BOOL
  std::map<std::string, std::string> metadata;

  bool has(const std::string& name) const { return tensors.contains(name); }
  // Throws std::runtime_error with the name if there is no such tensor.
  const Tensor& at(const std::string& name) const;
};

// Throws std::runtime_error, naming the file, unless every byte is accounted for exactly once.
Safetensors read_safetensors(const std::string& path);

}  // namespace rapt::test
