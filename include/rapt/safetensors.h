// Safetensors files: named tensors, memory-mapped and read in place.
//
//   const SafetensorsFile file("model.safetensors");
//   for (const std::string& name : file.names()) …
//   const ConstTensorView weight = file.at("in_proj_weight");  // valid while `file` is alive
//
//   write_safetensors("model.safetensors", layer.parameters(), {{"format", "pt"}});
//
// Opening a corrupt file throws rapt::FileError. The message names the file, the tensor and the byte:
//   safetensors: m.safetensors: tensor "w" ends at byte 4096, the file has 1000 bytes: …
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/named_tensor.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// The header entry of one tensor.
struct SafetensorsEntry {
  std::string name;
  std::string type;                 // the type's name in the file: "F32", "BF16", "I64"
  std::optional<DType> dtype;       // rapt's type; none if rapt does not support it
  std::vector<std::int64_t> shape;  // the rank may be higher than a view supports
  std::uint64_t begin = 0;          // the range of the tensor's bytes, from the start of the file
  std::uint64_t end = 0;
};

// An open, memory-mapped file. Opening it reads only the header, whatever the file size; tensor data is loaded on first
// access. The file may be replaced while it is open (as write_safetensors does), but must not be truncated. Reading
// from several threads is safe. Views stay valid when the object is moved.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  // A file in memory, which must outlive this object; `name` is used in error messages.
  SafetensorsFile(std::span<const std::byte> bytes, const std::string& name);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  // In header order.
  const std::vector<SafetensorsEntry>& entries() const;
  std::vector<std::string> names() const;
  const std::map<std::string, std::string>& metadata() const;

  const SafetensorsEntry* entry(std::string_view name) const;  // nullptr if there is no such tensor
  // Views into the mapping. Two kinds of tensor are copied on first access, and this object keeps the copy: tensors not
  // aligned to their type's size, and bool tensors with bytes other than 0 and 1 (which become 1). A tensor with a type
  // or rank that rapt does not support is rejected here, not on opening.
  std::optional<ConstTensorView> find(std::string_view name) const;  // nullopt if there is no such tensor
  ConstTensorView at(std::string_view name) const;                   // throws if there is none, and lists the names

 private:
  struct [[gnu::visibility("hidden")]] State;
  ConstTensorView view_of(std::size_t index) const;

  std::unique_ptr<State> state_;
};

// Writes views with any strides. The header keeps the given order; in the data, the widest types come first, so that
// every tensor is aligned to its type. Writing is atomic: the data goes to a temporary file beside `path`, which is
// renamed once it is on disk. An existing file keeps its permissions, and is left intact if writing fails.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
// Like write_safetensors, but in memory.
std::vector<std::byte> safetensors_bytes(const std::vector<NamedTensor>& tensors,
                                         const std::map<std::string, std::string>& metadata = {});

}  // namespace rapt
#pragma GCC visibility pop
