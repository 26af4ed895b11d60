// The files of a model as people have them: a folder with config.json, a tokenizer and safetensors files. A page has
// the same files in memory.
//
//   const ModelFiles files = ModelFiles::folder("all-MiniLM-L6-v2");
//   const Model model = Model::read(files);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/safetensors.h"

namespace rapt::models {

class ModelFiles {
 public:
  // The files of a folder that a model may consist of: *.json, *.txt and *.safetensors. Safetensors files are
  // memory-mapped; of the others, those that are longer than kMostText are refused when they are asked for.
  static ModelFiles folder(const std::string& path);

  // Adds a file in memory. A safetensors file must outlive this object; a text is copied.
  void add(std::string name, std::span<const std::byte> bytes);

  // Used in messages: the path of the folder, or the name that a page gives.
  const std::string& where() const { return where_; }
  void set_where(std::string where) { where_ = std::move(where); }

  bool has(std::string_view name) const;
  // The whole text of a file. Throws FileError, which says what the folder has instead.
  std::string_view text(std::string_view name) const;
  // The safetensors files, in the order of their names.
  std::span<const SafetensorsFile> weights() const { return weights_; }

  static constexpr std::size_t kMostText = 64U << 20U;  // bytes; the largest tokenizer.json in use has a fifth of it

 private:
  std::string where_;
  std::map<std::string, std::string, std::less<>> texts_;
  std::map<std::string, std::uintmax_t, std::less<>>
      too_long_;  // files of a folder that were not read, with their sizes
  std::vector<SafetensorsFile> weights_;
};

}  // namespace rapt::models
