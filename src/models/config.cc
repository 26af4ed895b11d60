#include "models/config.h"

#include <array>
#include <cstddef>
#include <utility>
#include <variant>

#include "core/text.h"
#include "models/files.h"
#include "models/tokenizer/json_value.h"
#include "models/tokenizer/quoted.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

constexpr std::string_view kFile = "config.json";
constexpr const char* kWhatWorks = "bert (also MiniLM), distilbert, roberta and gpt2";

// No model in use comes near these sizes; within them, no product of two sizes overflows.
constexpr std::int64_t kMostLayers = 1024, kMostHeads = 1024;
constexpr std::int64_t kMostWidth = 1 << 16, kMostRows = 1 << 24;

constexpr std::array<std::pair<std::string_view, Family>, 4> kFamilies{
    {{"bert", Family::bert}, {"distilbert", Family::distilbert}, {"roberta", Family::roberta}, {"gpt2", Family::gpt2}}};
// The beginning of a name in `architectures`, for a config without model_type.
constexpr std::array<std::pair<std::string_view, Family>, 4> kArchitectures{
    {{"Bert", Family::bert}, {"DistilBert", Family::distilbert}, {"Roberta", Family::roberta}, {"GPT2", Family::gpt2}}};
constexpr std::array<std::pair<std::string_view, Activation>, 6> kActivations{
    {{"gelu", Activation::gelu},
     {"gelu_python", Activation::gelu},
     {"gelu_new", Activation::gelu_tanh},
     {"gelu_fast", Activation::gelu_tanh},
     {"gelu_pytorch_tanh", Activation::gelu_tanh},
     {"relu", Activation::relu}}};

// A value in a message.
std::string words_of(const JsonValue& value) {
  struct Words {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return text(value); }
    std::string operator()(double value) const { return text(value); }
    std::string operator()(const std::string& value) const { return quoted(value); }
    std::string operator()(const JsonValue::Array&) const { return "an array"; }
    std::string operator()(const JsonValue::Object&) const { return "an object"; }
  };
  return std::visit(Words(), value.value);
}

// The entries of config.json. An entry that is null counts as absent.
class Entries {
 public:
  explicit Entries(const ModelFiles& files)
      : where_(text("model: ", files.where(), ": ", kFile)), all_(parse_json(files.text(kFile), where_ + ": ")) {
    if (!std::holds_alternative<JsonValue::Object>(all_.value)) fail("is not an object with entries");
  }

  template <class... Pieces>
  [[noreturn]] void fail(const Pieces&... pieces) const {
    throw FileError(text(where_, " ", pieces...));
  }

  const JsonValue* find(std::string_view name) const {
    for (const JsonMember& member : std::get<JsonValue::Object>(all_.value)) {
      if (member.key == name)
        return std::holds_alternative<std::nullptr_t>(member.value.value) ? nullptr : &member.value;
    }
    return nullptr;
  }

  std::int64_t whole(std::string_view name, std::int64_t least, std::int64_t most) const {
    if (find(name) == nullptr) fail("has no ", name, ", an integer from ", least, " to ", most);
    return whole_or(name, least, least, most);
  }
  std::int64_t whole_or(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
    const JsonValue* value = find(name);
    if (value == nullptr) return otherwise;
    const auto* found = std::get_if<std::int64_t>(&value->value);
    if (found == nullptr || *found < least || *found > most) {
      fail("says ", name, " is ", words_of(*value), "; it must be an integer from ", least, " to ", most);
    }
    return *found;
  }
  bool flag_or(std::string_view name, bool otherwise) const { return value_or(name, otherwise, "true or false"); }
  std::string word_or(std::string_view name, const std::string& otherwise) const {
    return value_or(name, otherwise, "a string");
  }
  double epsilon(std::string_view name, double otherwise) const {
    const JsonValue* value = find(name);
    if (value == nullptr) return otherwise;
    const auto* real = std::get_if<double>(&value->value);
    const auto* whole = std::get_if<std::int64_t>(&value->value);
    const double epsilon = real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : -1.0;
    if (!(epsilon >= 0.0 && epsilon <= 1.0)) {
      fail("says ", name, " is ", words_of(*value), "; it must be a number from 0 to 1");
    }
    return epsilon;
  }

 private:
  template <class Value>
  Value value_or(std::string_view name, const Value& otherwise, const char* kind) const {
    const JsonValue* value = find(name);
    if (value == nullptr) return otherwise;
    const auto* found = std::get_if<Value>(&value->value);
    if (found == nullptr) fail("says ", name, " is ", words_of(*value), "; it must be ", kind);
    return *found;
  }

  std::string where_;
  JsonValue all_;
};

Family family_of(const Entries& entries) {
  const std::string type = entries.word_or("model_type", "");
  for (const auto& [name, family] : kFamilies) {
    if (type == name) return family;
  }
  if (!type.empty()) entries.fail("says model_type is ", quoted(type), "; rapt runs ", kWhatWorks);
  const JsonValue* entry = entries.find("architectures");
  const auto* list = entry == nullptr ? nullptr : std::get_if<JsonValue::Array>(&entry->value);
  const auto* name = list == nullptr || list->empty() ? nullptr : std::get_if<std::string>(&list->front().value);
  if (name == nullptr) entries.fail("has neither model_type nor architectures; rapt runs ", kWhatWorks);
  for (const auto& [beginning, family] : kArchitectures) {
    if (name->starts_with(beginning)) return family;
  }
  entries.fail("says architectures is ", quoted(*name), "; rapt runs ", kWhatWorks);
}

Activation activation_of(const Entries& entries, std::string_view entry, const std::string& otherwise) {
  const std::string word = entries.word_or(entry, otherwise);
  std::string names;
  for (const auto& [name, activation] : kActivations) {
    if (word == name) return activation;
    names += text(names.empty() ? "" : ", ", name);
  }
  entries.fail("says ", entry, " is ", quoted(word), "; rapt has ", names);
}

// What changes the attention of a model in a way that rapt does not compute.
void refuse_others(const Entries& entries) {
  const std::string positions = entries.word_or("position_embedding_type", "absolute");
  if (positions != "absolute") {
    entries.fail("says position_embedding_type is ", quoted(positions), "; rapt has only \"absolute\"");
  }
  if (entries.flag_or("add_cross_attention", false)) {
    entries.fail("says add_cross_attention is true; rapt runs models of one text, without it");
  }
  const JsonValue* pruned = entries.find("pruned_heads");
  const auto* layers = pruned == nullptr ? nullptr : std::get_if<JsonValue::Object>(&pruned->value);
  if (layers != nullptr && !layers->empty()) {
    entries.fail("has pruned_heads in ", layers->size(), " layers; rapt runs models with all of their heads");
  }
}

}  // namespace

std::string_view name_of(Family family) {
  for (const auto& [name, each] : kFamilies) {
    if (each == family) return name;
  }
  return "?";
}

const SizeEntries& size_entries(Family family) {
  static constexpr SizeEntries kBert{"num_hidden_layers", "num_attention_heads", "hidden_size",
                                     "intermediate_size", "vocab_size",          "max_position_embeddings",
                                     "type_vocab_size"};
  static constexpr SizeEntries kDistilBert{
      "n_layers", "n_heads", "dim", "hidden_dim", "vocab_size", "max_position_embeddings", ""};
  static constexpr SizeEntries kGpt2{"n_layer", "n_head", "n_embd", "n_inner", "vocab_size", "n_positions", ""};
  switch (family) {
    case Family::distilbert: return kDistilBert;
    case Family::gpt2: return kGpt2;
    case Family::bert:
    case Family::roberta: break;
  }
  return kBert;
}

ModelConfig ModelConfig::read(const ModelFiles& files) {
  const Entries entries(files);
  ModelConfig config;
  config.family = family_of(entries);
  refuse_others(entries);
  const SizeEntries& names = size_entries(config.family);
  const bool gpt2 = config.family == Family::gpt2;
  config.layers = entries.whole(names.layers, 1, kMostLayers);
  config.heads = entries.whole(names.heads, 1, kMostHeads);
  config.width = entries.whole(names.width, 1, kMostWidth);
  if (config.width % config.heads != 0) {
    entries.fail("says ", names.heads, " is ", config.heads, " and ", names.width, " is ", config.width,
                 "; the number of heads must divide the width");
  }
  config.hidden = gpt2 ? entries.whole_or(names.hidden, 4 * config.width, 1, 4 * kMostWidth)
                       : entries.whole(names.hidden, 1, 4 * kMostWidth);
  config.vocabulary = entries.whole(names.vocabulary, 1, kMostRows);
  config.positions = entries.whole(names.positions, 1, kMostRows);
  if (!names.types.empty()) config.types = entries.whole_or(names.types, 2, 1, kMostRows);
  config.tied = entries.flag_or("tie_word_embeddings", true);

  if (gpt2) {
    config.epsilon = entries.epsilon("layer_norm_epsilon", 1e-5);
    config.activation = activation_of(entries, "activation_function", "gelu_new");
    config.scales_scores = entries.flag_or("scale_attn_weights", true);
    config.scales_by_layer = entries.flag_or("scale_attn_by_inverse_layer_idx", false);
    const std::int64_t end = entries.whole_or("eos_token_id", -1, -1, kMostRows);
    if (end >= 0) config.end_token = end;
    return config;
  }
  if (entries.flag_or("is_decoder", false)) {
    entries.fail("says is_decoder is true; rapt runs ", name_of(config.family), " as an encoder");
  }
  if (config.family == Family::distilbert) {
    config.epsilon = 1e-12;  // DistilBERT has no entry for it
    config.activation = activation_of(entries, "activation", "gelu");
    return config;
  }
  config.epsilon = entries.epsilon("layer_norm_eps", 1e-12);
  config.activation = activation_of(entries, "hidden_act", "gelu");
  if (config.family == Family::roberta) {
    config.padding = entries.whole_or("pad_token_id", 1, 0, kMostRows);
    config.first_position = config.padding + 1;
    if (config.positions <= config.first_position) {
      entries.fail("says ", names.positions, " is ", config.positions, " and pad_token_id is ", config.padding,
                   "; positions start after the padding token's, so none is left");
    }
  }
  return config;
}

}  // namespace rapt::models
