// The text task: a character-level model of a text file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/task.h"

namespace rapt::train {

class Text final : public Task {
 public:
  // `text` is UTF-8; errors call it `name`. The last tenth is never trained on.
  Text(const std::string& text, const std::string& name, const Recipe& recipe = standard_recipe());
  static Recipe standard_recipe();

  std::string name() const override { return "text"; }
  Batch batch(std::uint64_t seed, std::int64_t step) const override;
  Evaluation evaluate(const Transformer& model) const override;
  std::map<std::string, std::string> settings() const override { return {{"text", fingerprint_}}; }

  std::int64_t characters_trained() const { return static_cast<std::int64_t>(trained_.size()); }
  std::int64_t characters_held_out() const { return static_cast<std::int64_t>(held_out_.size()); }

 private:
  Text(const std::u32string& points, const std::string& text, const std::string& name, const Recipe& recipe);

  std::vector<std::int32_t> trained_, held_out_;
  std::string fingerprint_;
};

}  // namespace rapt::train
