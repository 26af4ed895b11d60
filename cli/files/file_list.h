// A tensor file of any format: its list of tensors, and each tensor on demand.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rapt/layer_names.h"
#include "rapt/npy.h"
#include "rapt/safetensors.h"

namespace rapt::cli {

struct FileEntry {
  std::string name;            // "" for the array of an .npy
  std::string type;            // the file's name for it
  std::optional<DType> dtype;  // rapt's type; none if it is not supported
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;  // of the data; 0 if unknown

  bool readable() const { return dtype.has_value() && shape.size() <= static_cast<std::size_t>(Dims::kMaxRank); }
};

// Safetensors, npz or npy, by file extension. Opening reads only the headers, not the data.
class TensorFile {
 public:
  enum class Kind : std::uint8_t { safetensors, npz, npy };

  explicit TensorFile(const std::string& path);

  Kind kind() const { return kind_; }
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<FileEntry>& entries() const { return entries_; }
  std::map<std::string, std::string> metadata() const;
  std::vector<FoundLayer> layers() const;  // none in an npy

  // A view that is valid as long as this object; for an npz or npy, until the next call of read.
  ConstTensorView read(const FileEntry& entry);

 private:
  std::string path_;
  Kind kind_ = Kind::npy;
  std::uint64_t bytes_ = 0;
  std::vector<FileEntry> entries_;
  std::unique_ptr<SafetensorsFile> safetensors_;
  std::unique_ptr<NpzFile> npz_;
  NpyArray array_;
};

// The format by file extension. Throws on an unknown extension, with the supported ones.
TensorFile::Kind kind_of(const std::string& path);
// "(2, 3)"; a file's shape may have more dimensions than rapt's tensors.
std::string shape_words(const std::vector<std::int64_t>& shape);

}  // namespace rapt::cli
