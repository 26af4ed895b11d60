// A model as a safetensors file: parameters, the config in the metadata and, to continue training, the state of Adam.
#include <map>
#include <utility>

#include "attention/checks.h"
#include "core/number_words.h"
#include "core/text.h"
#include "nn/transformer_model.h"
#include "rapt/safetensors.h"

namespace rapt {

namespace {

constexpr const char* kFormat = "rapt.transformer.1";
constexpr const char* kCausal = "causal";
constexpr std::string_view kFirst = "adam.first.", kSecond = "adam.second.";

// The numbers of a config, by the names they have in a file.
template <class Config, class Visit>
void for_each_number(Config& config, const Visit& visit) {
  visit("vocabulary", config.vocabulary), visit("context", config.context), visit("width", config.width);
  visit("layers", config.layers), visit("heads", config.heads), visit("hidden", config.hidden);
}

template <class Number>
Number number_of(const std::string& path, const std::map<std::string, std::string>& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  Number number{};
  if (found != metadata.end() && reads(found->second, number)) return number;
  throw Error(
      text("Transformer::load: ", path, ": the metadata has ",
           found == metadata.end() ? "no " + name : name + " \"" + found->second + "\", which is not a number"));
}

bool causal_of(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(kCausal);
  if (found == metadata.end() || found->second == "true") return true;
  if (found->second == "false") return false;
  throw Error(
      text("Transformer::load: ", path, ": the metadata has causal \"", found->second, "\"; it must be true or false"));
}

// The sizes in the metadata must match the tensors. This is checked before memory is allocated for them.
void check_sizes(const std::string& path, const SafetensorsFile& file, const TransformerConfig& config) {
  const auto check = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    const Dims shape = file.at(name).shape();
    if (shape.rank() == 2 && shape[0] == rows && shape[1] == columns) return;
    throw Error(text("Transformer::load: ", path, ": ", name, " has shape ", shape, ", the metadata says (", rows, ", ",
                     columns, ")"));
  };
  check("tokens.weight", config.vocabulary, config.width);
  check("positions.weight", config.context, config.width);
  const std::int64_t last = config.layers - 1;
  if (last < 0) return;  // rejected with the rest of the config
  check(text("layers.", last, ".attention.out_proj.weight"), config.width, config.width);
  if (config.hidden > 0) check(text("layers.", last, ".mlp.up.weight"), config.hidden, config.width);
}

}  // namespace

void Transformer::save(const std::string& path, bool training, const std::map<std::string, std::string>& more) const {
  std::map<std::string, std::string> metadata{{"format", kFormat}};
  for_each_number(model_->config,
                  [&](const char* name, std::int64_t value) { metadata[name] = std::to_string(value); });
  metadata["dropout"] = words_of(model_->config.dropout);
  if (!model_->config.causal) metadata[kCausal] = "false";  // absent if true, as in files older than this option
  std::vector<NamedTensor> tensors = parameters();
  if (training) {
    model_->begin_training();
    metadata["steps"] = std::to_string(model_->progress[0].adam.steps());
    for (std::size_t n = 0; n < model_->list.size(); ++n) {
      const Adam& adam = model_->progress[n].adam;
      tensors.push_back({std::string(kFirst) + model_->list[n].name, adam.first().view()});
      tensors.push_back({std::string(kSecond) + model_->list[n].name, adam.second().view()});
    }
  }
  for (const auto& [key, value] : more) {
    Checks("Transformer::save")
        .require(key != "steps" && key != kCausal && metadata.emplace(key, value).second, "metadata has the key \"",
                 key, "\", which is reserved; choose another");
  }
  write_safetensors(path, tensors, metadata);
}

Transformer Transformer::load(const std::string& path) { return load(SafetensorsFile(path), path); }

Transformer Transformer::load(const SafetensorsFile& file, const std::string& path) {
  const std::map<std::string, std::string>& metadata = file.metadata();
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormat) {
    throw Error(text("Transformer::load: ", path, " is not a rapt model: its metadata says format \"",
                     format == metadata.end() ? "" : format->second, "\" instead of \"", kFormat, "\""));
  }
  TransformerConfig config;
  for_each_number(
      config, [&](const char* name, std::int64_t& value) { value = number_of<std::int64_t>(path, metadata, name); });
  config.dropout = number_of<double>(path, metadata, "dropout");
  config.causal = causal_of(path, metadata);
  config.dtype = file.at("tokens.weight").dtype();
  check_sizes(path, file, config);
  Transformer loaded(config);
  for (const NamedTensor& parameter : loaded.parameters())
    loaded.set_parameter(parameter.name, file.at(parameter.name));
  if (!metadata.contains("steps")) return loaded;
  const auto steps = number_of<std::int64_t>(path, metadata, "steps");
  Model& model = *loaded.model_;
  model.begin_training();
  for (std::size_t n = 0; n < model.list.size(); ++n) {
    const std::string& name = model.list[n].name;
    model.progress[n].adam.restore(steps, file.at(std::string(kFirst) + name), file.at(std::string(kSecond) + name));
  }
  return loaded;
}

}  // namespace rapt
