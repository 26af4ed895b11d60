#include "options.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "array.h"

namespace rapt::wasm {

namespace {

constexpr std::initializer_list<std::string_view> kOptions = {"scale",  "softcap",   "masks",      "causal",
                                                              "window", "alignment", "keyLengths", "alibiSlopes",
                                                              "sinks",  "dropout",   "engine"};

// The first unknown key of the object.
std::optional<std::string> unknown_key(const val& object, const std::vector<std::string_view>& known) {
  const val keys = val::global("Object").call<val>("keys", object);
  const auto count = keys["length"].as<unsigned>();
  for (unsigned n = 0; n < count; ++n) {
    auto key = keys[n].as<std::string>();
    if (std::find(known.begin(), known.end(), key) == known.end()) return key;
  }
  return std::nullopt;
}

double number_of(const val& value, const char* name) {
  if (!value.isNumber()) throw Error(std::string(name) + " must be a number");
  return value.as<double>();
}

std::string words_of(const val& value, const char* name) {
  if (!value.isString()) throw Error(std::string(name) + " must be a string");
  return value.as<std::string>();
}

Mask mask_of(const val& mask) {
  require_known(mask, "a mask", {"kind", "tensor", "value"});
  const std::string kind = words_of(mask["kind"], "the kind of a mask");
  const ConstTensorView& view = array_of(mask["tensor"], "the tensor of a mask").view();
  if (kind == "keep") return Mask::keep(view);
  if (kind == "drop") return Mask::drop(view);
  if (kind == "add") return Mask::add(view);
  if (kind == "fill") return Mask::fill(view, number_of(mask["value"], "the value of a mask"));
  throw Error("a mask's kind is \"" + kind + "\"; it must be keep, drop, add or fill");
}

// [left, right], or an object with the fields of Window.
Window window_of(const val& window) {
  const bool list = window["length"].isNumber();  // an array of any kind
  if (list ? window["length"].as<int>() != 2 : window.typeOf().as<std::string>() != "object") {
    throw Error("window must be [left, right] or an object, {left, right}, with null for no limit");
  }
  Window result;
  std::vector<std::string_view> names;
  for_each_field(result, [&](std::string_view name, auto& field) {
    const val given = list ? window[names.size()] : window[std::string(name)];
    names.push_back(name);
    if (is_given(given)) field = whole_number(given, ("window." + std::string(name)).c_str());
  });
  if (const auto key = list ? std::nullopt : unknown_key(window, names)) {
    throw Error("window has no \"" + *key + "\"");
  }
  return result;
}

Alignment alignment_of(const val& alignment) {
  if (alignment.isNumber()) return Alignment::offset(static_cast<std::int64_t>(alignment.as<double>()));
  if (!alignment.isString()) return Alignment::offsets(whole_numbers(alignment, "alignment"));
  const auto name = alignment.as<std::string>();
  if (name == "topLeft") return Alignment::top_left();
  if (name == "bottomRight") return Alignment::bottom_right();
  throw Error("alignment is \"" + name + "\"; it must be topLeft, bottomRight, or offsets");
}

Dropout dropout_of(const val& dropout) {
  require_known(dropout, "dropout", {"rate", "seed"});
  Dropout result{.rate = number_of(dropout["rate"], "the rate of dropout")};
  if (is_given(dropout["seed"])) result.seed = static_cast<std::uint64_t>(number_of(dropout["seed"], "the seed"));
  return result;
}

Engine engine_named(const std::string& name) {
  if (name == "automatic") return Engine::automatic;
  if (name == "reference") return Engine::reference;
  if (name == "cpu") return Engine::cpu;
  throw Error("unknown engine \"" + name + "\"; it must be automatic, reference or cpu");
}

}  // namespace

void require_known(const val& object, const char* what, std::initializer_list<std::string_view> known) {
  if (!is_given(object) || object.typeOf().as<std::string>() != "object") {
    throw Error(std::string(what) + " must be an object");
  }
  if (const auto key = unknown_key(object, known)) throw Error(std::string(what) + " has no \"" + *key + "\"");
}

AttentionOptions attention_options(const val& object, std::initializer_list<std::string_view> besides) {
  AttentionOptions options;
  options.threads = 1;
  if (!is_given(object)) return options;
  std::vector<std::string_view> known(kOptions);
  known.insert(known.end(), besides);
  if (const auto key = unknown_key(object, known)) throw Error("unknown option \"" + *key + "\"");
  const auto given = [&](const char* name) { return is_given(object[name]); };
  if (given("scale")) options.scale = number_of(object["scale"], "scale");
  if (given("softcap")) options.softcap = number_of(object["softcap"], "softcap");
  if (given("causal")) options.causal = object["causal"].as<bool>();
  if (given("window")) options.window = window_of(object["window"]);
  if (given("alignment")) options.alignment = alignment_of(object["alignment"]);
  if (given("keyLengths")) options.key_lengths = whole_numbers(object["keyLengths"], "keyLengths");
  if (given("sinks")) options.sinks = array_of(object["sinks"], "sinks").view();
  if (given("dropout")) options.dropout = dropout_of(object["dropout"]);
  if (given("engine")) options.engine = engine_named(words_of(object["engine"], "engine"));
  if (given("alibiSlopes")) options.alibi_slopes = emscripten::vecFromJSArray<double>(object["alibiSlopes"]);
  if (given("masks")) {
    const auto masks = object["masks"]["length"].as<unsigned>();
    for (unsigned n = 0; n < masks; ++n) options.masks.push_back(mask_of(object["masks"][n]));
  }
  return options;
}

Stage stage_named(const std::string& name) {
  if (name == "raw") return Stage::raw;
  if (name == "capped") return Stage::capped;
  if (name == "masked") return Stage::masked;
  if (name == "weights") return Stage::weights;
  if (name == "droppedWeights") return Stage::dropped_weights;
  throw Error("unknown stage \"" + name + "\"; it must be raw, capped, masked, weights or droppedWeights");
}

Selection selection_of(const val& capture) {
  Selection selection;
  if (is_given(capture["heads"])) selection.heads = whole_numbers(capture["heads"], "heads");
  if (is_given(capture["queries"])) selection.queries = whole_numbers(capture["queries"], "queries");
  if (is_given(capture["mean"])) selection.mean_over_heads = capture["mean"].as<bool>();
  return selection;
}

}  // namespace rapt::wasm
