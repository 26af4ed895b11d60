// The number of heads of a model, which the shapes of its tensors do not determine: as the metadata of its file states
// it, or config.json in the same folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rapt/layer_names.h"

namespace rapt::cli {

inline constexpr const char* kKvHeadsKey = "num_key_value_heads";

struct ModelHeads {
  std::int64_t heads = 0;     // 0: not stated
  std::int64_t kv_heads = 0;  // 0: not stated
  std::string key;            // "num_attention_heads"
  std::string place;          // "config.json", "the metadata of the file"
  std::string problem;        // why a statement cannot be used, as a sentence; "" if it can, or if there is none

  std::string source() const { return key + " in " + place; }
};

// What is stated about the model in this file. The metadata of the file comes first: it was written with the tensors.
ModelHeads stated_heads(const std::string& model, const std::map<std::string, std::string>& metadata);

// The same for one layer: numbers that contradict its shapes become a problem.
ModelHeads heads_of_layer(const ModelHeads& stated, const FoundLayer& layer);

}  // namespace rapt::cli
