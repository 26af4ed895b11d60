#include "layer/config.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "dtypes.h"
#include "numbers.h"

namespace rapt::python {

namespace {

constexpr const char* kLayer = "MultiheadAttention";          // as in the library's own messages
constexpr std::array kPairs = {"half_split", "interleaved"};  // by RotaryPairs
constexpr std::array kScalings = {"none", "linear", "ntk", "dynamic", "yarn", "llama3"};  // by RotaryScaling::Kind

// Reads the items of a tuple in order, each with its name for errors.
class Fields {
 public:
  Fields(const char* function, nb::tuple items) : function_(function), items_(std::move(items)) {}

  nb::object object() { return items_[next_++]; }
  std::int64_t integer(const char* name) { return python::integer(object(), {function_, name}); }
  double number(const char* name) { return python::number(object(), {function_, name}); }
  bool truth(const char* name) { return python::truth(object(), {function_, name}); }
  std::string text(const char* name) {
    const nb::object given = object();
    if (PyUnicode_Check(given.ptr()) == 0) wrong_type({function_, name}, given, "a str");
    return nb::cast<std::string>(nb::str(given));
  }
  std::optional<bool> optional_truth(const char* name) {
    const nb::object given = object();
    return given.is_none() ? std::nullopt : std::optional(python::truth(given, {function_, name}));
  }
  std::optional<DType> optional_type(const char* name) {
    const nb::object given = object();
    return given.is_none() ? std::nullopt : std::optional(dtype(given, {function_, name}));
  }

 private:
  const char* function_;
  nb::tuple items_;
  std::size_t next_ = 0;
};

Fields fields(const char* function, const char* name, nb::handle object, std::size_t count, const char* form) {
  return {function, tuple(object, {function, name}, count, count, form)};
}

// A rapt.RotaryScaling.
RotaryScaling scaling(nb::handle object) {
  if (object.is_none()) return {};
  Fields given = fields("rotary", "scaling", object, 10, "a rapt.RotaryScaling");
  RotaryScaling result;
  result.kind = static_cast<RotaryScaling::Kind>(word(given.object(), {"rotary", "kind"}, kScalings));
  result.factor = given.number("factor");
  result.original_length = given.integer("original_length");
  result.length = given.integer("length");
  result.ramp.beta_fast = given.number("beta_fast");
  result.ramp.beta_slow = given.number("beta_slow");
  if (const nb::object factor = given.object(); !factor.is_none()) {
    result.ramp.attention_factor = number(factor, {"rotary", "attention_factor"});
  }
  result.ramp.truncate = given.truth("truncate");
  result.low_freq_factor = given.number("low_freq_factor");
  result.high_freq_factor = given.number("high_freq_factor");
  return result;
}

// A rapt.RotaryOptions.
std::optional<RotaryOptions> rotary(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  Fields given = fields("rotary", "options", object, 5, "a rapt.RotaryOptions");
  RotaryOptions result;
  result.base = given.number("base");
  result.size = given.integer("size");
  result.pairs = static_cast<RotaryPairs>(word(given.object(), {"rotary", "pairs"}, kPairs));
  result.scaling = scaling(given.object());
  result.max_positions = given.integer("max_positions");
  return result;
}

nb::object to_object(const std::optional<RotaryOptions>& rotary) {
  if (!rotary) return nb::none();
  const RotaryScaling& scaling = rotary->scaling;
  const auto& factor = scaling.ramp.attention_factor;
  const nb::tuple scaled = nb::make_tuple(
      kScalings[static_cast<std::size_t>(scaling.kind)], scaling.factor, scaling.original_length, scaling.length,
      scaling.ramp.beta_fast, scaling.ramp.beta_slow, factor ? nb::object(nb::float_(*factor)) : nb::object(nb::none()),
      scaling.ramp.truncate, scaling.low_freq_factor, scaling.high_freq_factor);
  return nb::make_tuple(rotary->base, rotary->size, kPairs[static_cast<std::size_t>(rotary->pairs)], scaled,
                        rotary->max_positions);
}

nb::list to_list(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(text.c_str());
  return list;
}

}  // namespace

MultiHeadAttentionConfig layer_config(nb::handle object) {
  Fields given = fields(kLayer, "config", object, 19, "a rapt.LayerConfig");
  MultiHeadAttentionConfig config;
  config.embed_size = given.integer("embed_size");
  config.heads = given.integer("heads");
  config.kv_heads = given.integer("kv_heads");
  config.head_size = given.integer("head_size");
  config.key_size = given.integer("key_size");
  config.value_size = given.integer("value_size");
  config.output_size = given.integer("output_size");
  config.bias = given.truth("bias");
  config.output_bias = given.optional_truth("output_bias");
  config.separate_projections = given.truth("separate_projections");
  config.add_bias_kv = given.truth("add_bias_kv");
  config.add_zero_attention = given.truth("add_zero_attention");
  config.dropout = given.number("dropout");
  config.output_dropout = given.number("output_dropout");
  config.batch_first = given.truth("batch_first");
  config.context_length = given.integer("context_length");
  config.rotary = rotary(given.object());
  const nb::tuple slice = tuple(given.object(), {kLayer, "slice"}, 2, 2, "(index, count)");
  config.slice = {integer(slice[0], {kLayer, "slice.index"}), integer(slice[1], {kLayer, "slice.count"})};
  config.dtype = dtype(given.object(), {kLayer, "dtype"});
  return config;
}

nb::tuple to_tuple(const MultiHeadAttentionConfig& config) {
  return nb::make_tuple(config.embed_size, config.heads, config.kv_heads, config.head_size, config.key_size,
                        config.value_size, config.output_size, config.bias, *config.output_bias,
                        config.separate_projections, config.add_bias_kv, config.add_zero_attention, config.dropout,
                        config.output_dropout, config.batch_first, config.context_length, to_object(config.rotary),
                        nb::make_tuple(config.slice.index, config.slice.count), python_name(config.dtype));
}

LoadOptions load_options(nb::handle object) {
  Fields given = fields("load", "options", object, 8, "all options");
  LoadOptions options;
  options.prefix = given.text("prefix");
  options.heads = given.integer("heads");
  options.kv_heads = given.integer("kv_heads");
  options.batch_first = given.truth("batch_first");
  options.add_zero_attention = given.truth("add_zero_attention");
  options.dropout = given.number("dropout");
  options.rotary = rotary(given.object());
  options.dtype = given.optional_type("dtype");
  return options;
}

SaveOptions save_options(const char* function, nb::handle object) {
  Fields given = fields(function, "options", object, 4, "all options");
  SaveOptions options;
  const std::string family = given.text("family");
  const std::optional<NameFamily> known = name_family(family);
  if (!known) {
    std::string choices;
    for (const NameFamily each : name_families()) choices += (choices.empty() ? "" : ", ") + std::string(name_of(each));
    wrong_value({function, "family"}, "is '" + family + "'; it may be one of " + choices);
  }
  options.family = *known;
  options.prefix = given.text("prefix");
  options.packed = given.optional_truth("packed");
  options.dtype = given.optional_type("dtype");
  return options;
}

nb::tuple to_tuple(const FoundLayer& found) {
  nb::list roles;
  for (const TensorRole& role : found.tensors) roles.append(nb::make_tuple(role.tensor.c_str(), role.role.c_str()));
  nb::list heads;
  for (const std::int64_t count : found.possible_heads()) heads.append(count);
  return nb::make_tuple(found.prefix.c_str(), std::string(name_of(found.family)).c_str(), roles,
                        to_list(found.left_over), to_list(found.missing), found.embed_size, found.key_size,
                        found.value_size, found.output_size, found.query_width, found.key_width, found.context_length,
                        found.bias, found.output_bias, found.add_bias_kv, found.separate, found.transposed, heads);
}

}  // namespace rapt::python
