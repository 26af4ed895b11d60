// Arrays named on the command line: x.npy, m.safetensors:name, m.npz:name, and - for standard input.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rapt/npy.h"
#include "rapt/safetensors.h"
#include "rapt/tensor.h"

namespace rapt::cli {

// "m.safetensors:layer.weight" is a file and a name in it.
struct ArrayName {
  std::string file;
  std::string tensor;  // "" if none is named
};
ArrayName array_name(const std::string& text);

// Opened files and the arrays read from them; views into them are valid as long as this object.
class ArrayFiles {
 public:
  // `option` is the name in errors: "--input".
  ConstTensorView read(const std::string& option, const std::string& text, const NpyOptions& options = {});
  const SafetensorsFile& safetensors(const std::string& path);
  // Adds a tensor derived from what was read.
  ConstTensorView keep(Tensor tensor) { return keep(NpyArray(std::move(tensor), /*fortran_order=*/false)); }

 private:
  ConstTensorView keep(NpyArray array);
  ConstTensorView from_npz(const std::string& option, const ArrayName& name, const NpyOptions& options);
  ConstTensorView from_safetensors(const std::string& option, const ArrayName& name);

  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
  std::vector<std::unique_ptr<NpyArray>> arrays_;
  bool stdin_taken_ = false;
};

// The name in the list that is closest to `text`, if there is a similar one: a few letters wrong, missing or added.
std::optional<std::string> nearest(std::string_view text, const std::vector<std::string>& names);
std::optional<std::string> nearest_file(const std::string& path, const std::vector<std::string>& paths);

// Throws if there is no such file, with a similar name as a suggestion. `option` may be empty.
void require_file(const std::string& option, const std::string& path);

// "-" is standard output. An output that cannot be written is rejected before any work is done.
void check_output(const std::string& option, const std::string& path);
void write_array(const std::string& path, const ConstTensorView& array);

}  // namespace rapt::cli
