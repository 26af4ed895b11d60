// Safetensors files: named tensors, read where they lie in the file.
//
//   const SafetensorsFile file("model.safetensors");
//   for (const std::string& name : file.names()) …
//   const ConstTensorView weight = file.at("in_proj_weight");  // valid while `file` lives
//
//   write_safetensors("model.safetensors", layer.parameters(), {{"format", "pt"}});
//
// A broken file throws rapt::Error when it is opened, with the file, the tensor and the byte in its text:
//   safetensors: m.safetensors: tensor "w" ends at byte 4096, the file has 1000
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

// What a file's header says of one tensor.
struct SafetensorsEntry {
  std::string name;
  std::string type;                 // in the file's words: "F32", "BF16", "I64"
  std::optional<DType> dtype;       // in ours; none where rapt has no such type
  std::vector<std::int64_t> shape;  // may have a higher rank than a view can
  std::uint64_t begin = 0;          // its bytes, counted from the start of the file
  std::uint64_t end = 0;
};

// An open file. Opening one maps it and reads its header, whatever its size; a tensor's bytes come into memory when
// they are first touched. The file may be replaced meanwhile (as write_safetensors does), but must not be cut short.
// Reading from several threads is safe. A moved file keeps its views.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  // A file that is in memory already, and stays there; `name` is what errors call it.
  SafetensorsFile(std::span<const std::byte> bytes, const std::string& name);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  // In the header's order.
  const std::vector<SafetensorsEntry>& entries() const;
  std::vector<std::string> names() const;
  const std::map<std::string, std::string>& metadata() const;

  const SafetensorsEntry* entry(std::string_view name) const;  // nullptr where there is none of that name
  // Views into the map. Two kinds of tensor are copied when first asked for, and kept by the file: one that does not
  // start at a multiple of its type's size, and a bool one with bytes other than 0 and 1 (they become 1).
  // A tensor of a type or rank that rapt does not have is refused here, not on opening.
  std::optional<ConstTensorView> find(std::string_view name) const;  // none where there is none of that name
  ConstTensorView at(std::string_view name) const;                   // throws, saying which names there are

 private:
  struct [[gnu::visibility("hidden")]] State;
  ConstTensorView view_of(std::size_t index) const;

  std::unique_ptr<State> state_;
};

// Writes views of any strides. The header has the given order; in the data the widest types come first, so that every
// tensor is aligned to its type. The file is whole or absent: it is written beside `path` under another name and
// renamed when it is on the disk. A file that was there before keeps its permissions, and stays when writing fails.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
// The same, in memory.
std::vector<std::byte> safetensors_bytes(const std::vector<NamedTensor>& tensors,
                                         const std::map<std::string, std::string>& metadata = {});

}  // namespace rapt
#pragma GCC visibility pop
