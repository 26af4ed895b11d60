// What config.json says about a model: its kind and its sizes. Nothing in it is trusted: every number must be in a sane
// range here, and agree with the shapes of the weights when they are read (weights.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rapt::models {

class ModelFiles;

enum class Family : std::uint8_t { bert, distilbert, roberta, gpt2 };
std::string_view name_of(Family family);  // as model_type names it

enum class Activation : std::uint8_t {
  gelu,       // x · Φ(x)
  gelu_tanh,  // its approximation with tanh, "gelu_new" in GPT-2
  relu,
};

// The entries of config.json that give the sizes, which messages name.
struct SizeEntries {
  std::string_view layers, heads, width, hidden, vocabulary, positions, types;
};
const SizeEntries& size_entries(Family family);

struct ModelConfig {
  Family family = Family::bert;
  std::int64_t layers = 0;      // L
  std::int64_t heads = 0;       // H, a divisor of E
  std::int64_t width = 0;       // E
  std::int64_t hidden = 0;      // hidden size of the MLP
  std::int64_t vocabulary = 0;  // V
  std::int64_t positions = 0;   // rows of the position table
  std::int64_t types = 0;       // rows of the token type table; 0: there is none
  double epsilon = 0;           // of the layer norms
  Activation activation = Activation::gelu;
  std::int64_t padding = -1;        // the id of the padding token, which RoBERTa gives no position
  std::int64_t first_position = 0;  // the row of the first token: padding + 1 in RoBERTa, 0 in the others
  bool scales_scores = true;        // false: q·k is not divided by sqrt(head size)
  bool scales_by_layer = false;     // true: scores of layer n are also divided by n + 1
  bool tied = true;                 // the matrix of the logits is the table of the token embeddings
  std::optional<std::int64_t> end_token;

  // Throws FileError, which names the entry, what it says and what would work.
  static ModelConfig read(const ModelFiles& files);

  std::int64_t head_size() const { return width / heads; }
  bool causal() const { return family == Family::gpt2; }
  std::int64_t most_tokens() const { return positions - first_position; }  // in one text
};

}  // namespace rapt::models
