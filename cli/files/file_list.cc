#include "cli/files/file_list.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/files/array_files.h"

namespace rapt::cli {
namespace {

FileEntry entry_of(const std::string& name, const NpyInfo& info) {
  FileEntry entry{name, info.type, info.dtype, info.shape};
  if (!info.dtype) return entry;
  entry.bytes = size_of(*info.dtype);
  for (const std::int64_t size : info.shape) entry.bytes *= static_cast<std::uint64_t>(size);
  return entry;
}

}  // namespace

TensorFile::Kind kind_of(const std::string& path) {
  if (path.ends_with(".safetensors")) return TensorFile::Kind::safetensors;
  if (path.ends_with(".npz")) return TensorFile::Kind::npz;
  if (path.ends_with(".npy")) return TensorFile::Kind::npy;
  throw UsageError(fmt::format("{}: unknown file extension; expected .safetensors, .npz or .npy", path));
}

std::string shape_words(const std::vector<std::int64_t>& shape) {
  std::string words;
  for (const std::int64_t size : shape) words += fmt::format("{}{}", words.empty() ? "(" : ", ", size);
  return words.empty() ? "()" : words + ")";
}

TensorFile::TensorFile(const std::string& path) : path_(path) {
  require_file("", path);  // before the extension, which may have the typo
  kind_ = kind_of(path);
  std::error_code error;
  bytes_ = std::filesystem::file_size(path, error);
  switch (kind_) {
    case Kind::safetensors:
      safetensors_ = std::make_unique<SafetensorsFile>(path);
      for (const SafetensorsEntry& e : safetensors_->entries()) {
        entries_.push_back({e.name, e.type, e.dtype, e.shape, e.end - e.begin});
      }
      break;
    case Kind::npz:
      npz_ = std::make_unique<NpzFile>(path);
      for (const std::string& name : npz_->names()) entries_.push_back(entry_of(name, npz_->info(name)));
      break;
    case Kind::npy: entries_.push_back(entry_of("", npy_info(path))); break;
  }
}

std::map<std::string, std::string> TensorFile::metadata() const {
  return safetensors_ != nullptr ? safetensors_->metadata() : std::map<std::string, std::string>();
}

std::vector<FoundLayer> TensorFile::layers() const {
  if (safetensors_ != nullptr) return find_attention_layers(*safetensors_);
  // Names and shapes are enough to find a layer, so these views have no data.
  std::vector<NamedTensor> named;
  for (const FileEntry& entry : entries_) {
    if (!entry.name.empty() && entry.readable()) {
      named.push_back({entry.name, ConstTensorView(nullptr, *entry.dtype, Dims(std::span(entry.shape)))});
    }
  }
  return find_attention_layers(named);
}

ConstTensorView TensorFile::read(const FileEntry& entry) {
  if (safetensors_ != nullptr) return safetensors_->at(entry.name);
  array_ = npz_ != nullptr ? npz_->at(entry.name) : read_npy(path_);
  return array_.view();
}

}  // namespace rapt::cli
