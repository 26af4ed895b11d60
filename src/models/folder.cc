#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "models/files.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = ".safetensors";

std::string whole_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) throw FileError("model: " + path.string() + ": cannot be read");
  return text;
}

}  // namespace

// In a hub's cache, a snapshot is a folder of links to files elsewhere. A link is read like its file, and the files
// beside a link are those beside it, not beside what it leads to.
ModelFiles ModelFiles::folder(const std::string& path) {
  std::error_code none;
  const bool one_file = path.ends_with(kWeights) && fs::is_regular_file(path, none);
  fs::path folder = one_file ? fs::path(path).parent_path() : fs::path(path);
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, none)) {
    throw FileError("model: " + path + (fs::exists(path, none) ? ": is not a folder" : ": there is no such folder") +
                    "; a model is a folder with config.json, a tokenizer and safetensors files, or one of its "
                    "safetensors files");
  }
  ModelFiles files;
  files.where_ = path;
  std::vector<std::string> weights;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!at->is_regular_file(none)) continue;
    const fs::path& name = at->path().filename();
    if (name.extension() == kWeights) {
      weights.push_back(at->path().string());
    } else if (name.extension() == ".json" || name.extension() == ".txt") {
      const std::uintmax_t size = at->file_size(none);
      if (size > kMostText) {
        files.too_long_.emplace(name.string(), size);
      } else {
        files.texts_.emplace(name.string(), whole_text(at->path()));
      }
    }
  }
  if (error) throw FileError("model: " + path + ": the folder cannot be read: " + error.message());
  std::sort(weights.begin(), weights.end());
  if (one_file) weights = {path};
  for (const std::string& each : weights) files.weights_.emplace_back(each);
  return files;
}

}  // namespace rapt::models
