// A tensor file in the engine's memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <emscripten/val.h>

#include "array.h"
#include "rapt/layer_names.h"
#include "rapt/multi_head_attention.h"
#include "rapt/npy.h"
#include "rapt/safetensors.h"

namespace rapt::wasm {

class File {
 public:
  // `bytes` is a Uint8Array; the file extension gives the format. The bytes are copied once.
  File(const std::string& name, const val& bytes);
  // The beginning of a safetensors file of `size` bytes. It must include the header, and only the header is read: it
  // gives the offsets, with which the page reads the tensors itself.
  File(const std::string& name, const val& beginning, double size);

  // [{name, type, shape}], in the file's order; the one array of a .npy has no name. A safetensors file adds `bytes`,
  // [begin, end].
  val entries() const;
  val metadata() const;  // of a safetensors file
  Array tensor(const std::string& name) const;
  std::vector<FoundLayer> layers() const;
  LoadedLayer layer(const LoadOptions& options) const;

 private:
  void require_whole() const;
  std::vector<NamedTensor> named_tensors(std::vector<Array>& keep) const;

  std::string name_;
  bool whole_ = true;
  std::shared_ptr<std::vector<std::byte>> bytes_;
  std::shared_ptr<SafetensorsFile> safetensors_;  // one of these two, or neither for .npy
  std::shared_ptr<NpzFile> npz_;
};

}  // namespace rapt::wasm
