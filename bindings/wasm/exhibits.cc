// What the explorer draws, as JSON: the walk of a sentence, and the exhibits that answer questions.
#include <cstdint>
#include <string>

#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include "array.h"
#include "errors.h"
#include "exhibits/exhibit.h"
#include "exhibits/tokens.h"
#include "exhibits/toy_model.h"
#include "exhibits/walk.h"
#include "exhibits/walk_json.h"
#include "rapt/error.h"

namespace rapt::wasm {
namespace {

// A page has no room for more.
constexpr std::int64_t kMostTokens = 64;

std::string walk(const std::string& text, double heads_wanted, bool causal) {
  return guarded([&] {
    const auto heads = static_cast<std::int64_t>(heads_wanted);
    if (heads < 1 || exhibits::kEmbedding % heads != 0) {
      throw Error("walk: " + std::to_string(exhibits::kEmbedding) + " numbers cannot be divided into " +
                  std::to_string(heads) + " heads");
    }
    exhibits::Sentence sentence = exhibits::tokenize(text);
    if (sentence.tokens.empty()) throw Error("walk: the text contains no words");
    if (sentence.length() > kMostTokens) {
      throw Error("walk: the text has " + std::to_string(sentence.length()) + " tokens; the maximum is " +
                  std::to_string(kMostTokens));
    }
    return exhibits::walk_as_json(exhibits::take_walk(std::move(sentence), heads, causal)).dump();
  });
}

exhibits::Lang lang_named(const std::string& name) {
  if (name == "en") return exhibits::Lang::en;
  if (name == "zh") return exhibits::Lang::zh;
  throw Error("exhibit: unknown language \"" + name + "\"; it must be en or zh");
}

std::string questions(const std::string& lang) {
  return guarded([&] { return exhibits::as_json(exhibits::questions(lang_named(lang))); });
}

// `settings` is an object: {key: value, …}.
std::string exhibit(int number, const std::string& lang, const val& settings) {
  return guarded([&] {
    exhibits::Settings chosen;
    const val keys = val::global("Object").call<val>("keys", settings);
    for (int n = 0; n < keys["length"].as<int>(); ++n) {
      const auto key = keys[n].as<std::string>();
      chosen[key] = settings[key].as<std::string>();
    }
    return exhibits::as_json(exhibits::exhibit(number, lang_named(lang), chosen));
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(rapt_exhibits) {
  emscripten::function("walk", &walk);
  emscripten::function("questions", &questions);
  emscripten::function("exhibit", &exhibit);
}

}  // namespace rapt::wasm
