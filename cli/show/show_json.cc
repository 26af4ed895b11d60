// `rapt show --json`: everything that was computed.
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/show/pages.h"
#include "cli/show/words.h"

namespace rapt::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, models::kHabits> kHabitNames{"previous", "next",      "same",      "itself",
                                                               "first",    "delimiter", "induction", "spread"};

// The numbers of a tensor as nested lists. Each is the shortest text that gives the same f32. Tensors have a hundred
// thousand numbers, so they are written without a list of JSON values.
void write(std::string& json, const ConstTensorView& view) {
  json += '[';
  for (std::int64_t n = 0; n < view.size(0); ++n) {
    if (n > 0) json += ',';
    if (view.rank() > 1) {
      write(json, view.select(0, n));
      continue;
    }
    const float value = view.at<float>(n);
    if (std::isfinite(value)) {
      fmt::format_to(std::back_inserter(json), "{}", value);
    } else {
      json += "null";
    }
  }
  json += ']';
}

Json tokens_of(const Reading& reading) {
  Json list = Json::array();
  for (const models::Token& token : reading.tokens) {
    list.push_back({{"id", token.id},
                    {"text", token.text},
                    {"begin", token.begin},
                    {"end", token.end},
                    {"special", token.special}});
  }
  return list;
}

Json likely_of(const Reading& reading, const std::vector<models::Likely>& likely) {
  Json list = Json::array();
  for (const auto& [token, probability] : likely) {
    const std::string text = token < reading.tokenizer.size() ? reading.tokenizer.token(token).text : "";
    list.push_back({{"id", token}, {"text", text}, {"probability", probability}});
  }
  return list;
}

Json heads_of(const Reading& reading) {
  Json list = Json::array();
  for (std::int64_t layer = 0; layer < reading.model.config().layers; ++layer) {
    for (std::int64_t head = 0; head < reading.model.config().heads; ++head) {
      const models::HeadSummary& summary = reading.summary(layer, head);
      list.push_back({{"layer", layer},
                      {"head", head},
                      {"does", kHabitNames[static_cast<std::size_t>(summary.habit)]},
                      {"share", summary.share},
                      {"keys", summary.keys},
                      {"off", reading.is_off(layer, head)}});
    }
  }
  return list;
}

Json change_of(const Reading& reading) {
  Json list = Json::array();
  const std::int64_t last = reading.model.config().layers;
  for (std::int64_t n = 0; n < std::ssize(reading.tokens); ++n) {
    list.push_back(relative_change(reading.run.hidden.view().select(0, last).select(0, n),
                                   reading.whole->hidden.view().select(0, last).select(0, n)));
  }
  return list;
}

}  // namespace

std::string reading_json(const Reading& reading) {
  const models::ModelConfig& config = reading.model.config();
  Json json = {{"schema", 1},
               {"model", reading.files.where()},
               {"family", name_of(config.family)},
               {"layers", config.layers},
               {"heads", config.heads},
               {"width", config.width},
               {"text", reading.text},
               {"tokens", tokens_of(reading)},
               {"what_heads_do", heads_of(reading)}};
  if (reading.whole) json["change"] = change_of(reading);
  if (reading.options.generate) {
    std::vector<std::int32_t> ids;
    for (const models::Likely& each : reading.generated) ids.push_back(each.token);
    json["generated"] = {{"text", reading.tokenizer.decode(ids)}, {"tokens", likely_of(reading, reading.generated)}};
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  const auto member = [&](const char* name) { text += fmt::format(",\"{}\":", name); };
  if (reading.options.next) {
    member("next");
    text += '[';
    for (const Prediction& each : reading.predictions) {
      const std::string likely = likely_of(reading, each.likely).dump(-1, ' ', false, Json::error_handler_t::replace);
      text += fmt::format("{}{{\"position\":{},\"likely\":{},\"logits\":", text.ends_with('[') ? "" : ",",
                          each.position, likely);
      write(text, each.logits);
      text += '}';
    }
    text += ']';
  }
  member("weights");  // (L, H, T, T)
  write(text, reading.run.weights);
  member("hidden");  // (L + 1, T, E)
  write(text, reading.run.hidden);
  return text + "}\n";
}

}  // namespace rapt::cli
