#include "models/files.h"

#include <utility>

#include "core/text.h"
#include "models/tokenizer/quoted.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

constexpr std::string_view kWeights = ".safetensors";

}  // namespace

void ModelFiles::add(std::string name, std::span<const std::byte> bytes) {
  if (name.ends_with(kWeights)) {
    weights_.emplace_back(bytes, name);
    return;
  }
  texts_[std::move(name)] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool ModelFiles::has(std::string_view name) const { return texts_.contains(name) || too_long_.contains(name); }

std::string_view ModelFiles::text(std::string_view name) const {
  const auto refuse_length = [&](std::uintmax_t bytes) {
    throw FileError(rapt::text("model: ", where_, ": ", name, " has ", bytes, " bytes; rapt reads up to ", kMostText));
  };
  if (const auto long_one = too_long_.find(name); long_one != too_long_.end()) refuse_length(long_one->second);
  const auto found = texts_.find(name);
  if (found == texts_.end()) {
    std::string others;
    for (const auto& [other, content] : texts_) others += (others.empty() ? "" : ", ") + quoted(other);
    if (!weights_.empty()) others += rapt::text(others.empty() ? "" : ", ", weights_.size(), " of safetensors");
    throw FileError(
        rapt::text("model: ", where_, ": there is no ", name, "; the files are: ", others.empty() ? "none" : others));
  }
  if (found->second.size() > kMostText) refuse_length(found->second.size());
  return found->second;
}

}  // namespace rapt::models
