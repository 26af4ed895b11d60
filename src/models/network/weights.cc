#include "models/network/weights.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "models/files.h"
#include "models/tokenizer/quoted.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

std::string words_of(const std::vector<std::int64_t>& shape) {
  std::string words;
  for (const std::int64_t size : shape) words += text(words.empty() ? "(" : ", ", size);
  return words.empty() ? "()" : words + ")";
}

bool is_prefix(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~' && c != '"'; });
  return plain && (text.empty() || text.back() == '.' || text.back() == '/');
}

}  // namespace

Weights::Weights(const ModelFiles& files, std::string_view anchor) : where_("model: " + files.where()) {
  for (const SafetensorsFile& file : files.weights()) {
    for (const SafetensorsEntry& entry : file.entries()) {
      if (names_.emplace(entry.name, &file).second) continue;
      throw FileError(text(where_, ": two safetensors files have a tensor ", quoted(entry.name),
                           "; give the path of the file to use"));
    }
  }
  if (files.weights().empty()) throw FileError(text(where_, " has no safetensors file with weights"));
  find_prefix(anchor);
}

void Weights::find_prefix(std::string_view anchor) {
  std::vector<std::string> prefixes;
  for (const auto& [name, file] : names_) {
    if (!name.ends_with(anchor)) continue;
    const std::string prefix = name.substr(0, name.size() - anchor.size());
    if (is_prefix(prefix)) prefixes.push_back(prefix);
  }
  std::sort(prefixes.begin(), prefixes.end());
  if (prefixes.empty()) {
    throw FileError(text(where_, ": no weights have the name \"", anchor, "\", with or without a prefix; ",
                         "config.json says what kind of model the weights are for"));
  }
  if (prefixes.size() > 1) {
    throw FileError(text(where_, ": the weights hold ", prefixes.size(), " models, under \"", prefixes[0], "\" and \"",
                         prefixes[1], "\"; rapt runs one"));
  }
  prefix_ = prefixes[0];
}

std::string Weights::found(const std::string& name) const {
  if (names_.contains(name)) return name;
  // What layer norms called their weight and bias in the first files of BERT.
  std::string old = name;
  for (const auto& [now, before] : {std::pair(".weight", ".gamma"), std::pair(".bias", ".beta")}) {
    if (name.ends_with(now)) old.replace(old.rfind('.'), std::string::npos, before);
  }
  return old != name && names_.contains(old) ? old : "";
}

ConstTensorView Weights::view(std::string_view name, const Shape& shape) const {
  const std::string full = prefix_ + std::string(name);
  const std::string stored = found(full);
  if (stored.empty()) throw FileError(text(where_, ": the weights have no \"", full, "\""));
  const SafetensorsFile& file = *names_.at(stored);
  const SafetensorsEntry& entry = *file.entry(stored);
  if (!entry.dtype || !is_float(*entry.dtype)) {
    throw FileError(text(where_, ": \"", stored, "\" holds ", quoted(entry.type), "; weights are F32, F16 or BF16"));
  }
  if (entry.shape.size() != shape.size()) {
    throw FileError(
        text(where_, ": \"", stored, "\" has shape ", words_of(entry.shape), "; its rank must be ", shape.size()));
  }
  for (std::size_t n = 0; n < shape.size(); ++n) {
    const auto& [says, value, times] = shape[n];
    if (entry.shape[n] == value * times) continue;
    throw FileError(text(where_, ": config.json says ", says, " is ", value, ", so size ", n, " of \"", stored,
                         "\" must be ", value * times, "; it is ", entry.shape[n], " in ", words_of(entry.shape)));
  }
  return file.at(stored);
}

Tensor Weights::f32(std::string_view name, const Shape& shape) const {
  return Tensor::copy_of(view(name, shape), DType::f32);
}

Weights Weights::above() const {
  Weights all = *this;
  const std::size_t end = prefix_.empty() ? std::string::npos : prefix_.find_last_of("./", prefix_.size() - 2);
  all.prefix_ = end == std::string::npos ? "" : prefix_.substr(0, end + 1);
  return all;
}

}  // namespace rapt::models
