#include "cli/show/reading.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cli/terminal/interrupt.h"
#include "cli/terminal/text.h"
#include "rapt/error.h"

namespace rapt::cli {
namespace {

constexpr const char* kSentence = "The animal didn't cross the street because it was too tired.";
constexpr std::size_t kShownLikely = 10;

bool is_mask(const models::Token& token) { return token.special && (token.text == "[MASK]" || token.text == "<mask>"); }

void check_options(const ShowOptions& options, const models::Model& model) {
  const models::ModelConfig& config = model.config();
  const auto check = [](const char* option, std::int64_t given, std::int64_t count) {
    if (given >= count) throw UsageError(fmt::format("{}: the model has {} 0 to {}", option, option + 2, count - 1));
  };
  check("--layer", options.layer.value_or(0), config.layers);
  check("--head", options.head.value_or(0), config.heads);
  if (options.head && !options.layer) throw UsageError("--head requires --layer: give the layer that the head is in");
  if (options.next && model.predicts() == models::Predicts::nothing) {
    throw UsageError(
        "--next: these weights predict nothing; a model for masked tokens (cls.predictions, lm_head) or "
        "GPT-2 does");
  }
  if (options.generate && model.predicts() != models::Predicts::next) {
    throw UsageError(fmt::format("--generate: a {} model does not continue a text; gpt2 does", name_of(config.family)));
  }
  if (options.temperature && !options.next && !options.generate) {
    throw UsageError("--temperature requires --next or --generate");
  }
  if (options.seed && !options.generate) throw UsageError("--seed requires --generate");
}

std::vector<models::TokenKind> kinds_of(const std::vector<models::Token>& tokens) {
  std::vector<models::TokenKind> kinds;
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    const models::Token& token = tokens[n];
    kinds.push_back({token.id, token.special, models::is_delimiter(token.text, token.special, n == 0)});
  }
  return kinds;
}

}  // namespace

std::string label_of(const std::string& text) {
  std::string label;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
    label += control ? "·" : to_utf8(c);
  }
  const std::size_t begin = label.find_first_not_of(' ');
  if (begin == std::string::npos) return label.empty() ? "·" : "␣";
  return label.substr(begin, label.find_last_not_of(' ') - begin + 1);
}

double relative_change(const ConstTensorView& a, const ConstTensorView& b) {
  double difference = 0, size = 0;
  for (std::int64_t n = 0; n < a.size(0); ++n) {
    difference += std::pow(double{a.at<float>(n)} - double{b.at<float>(n)}, 2);
    size += std::pow(double{b.at<float>(n)}, 2);
  }
  return size > 0 ? std::sqrt(difference / size) : 0.0;
}

Reading::Reading(const ShowOptions& given)
    : options(given),
      files(models::ModelFiles::folder(given.model)),
      model(models::Model::read(files)),
      tokenizer(models::Tokenizer::read(files)),
      text(given.text.value_or(kSentence)) {
  check_options(options, model);
  tokens = tokenizer.encode(text);
  std::vector<std::int32_t> ids;
  for (const models::Token& token : tokens) {
    ids.push_back(token.id);
    names.push_back(label_of(token.text));
  }
  const bool changes = !options.off.empty();
  models::RunOptions wanted{.off = options.off, .logits = options.next || changes};
  run = model.run(ids, wanted);
  heads = models::summarize_all(run.weights, kinds_of(tokens));
  predictions = predictions_of(run);
  if (changes) {
    wanted.off.clear();
    wanted.weights = false;
    whole = model.run(ids, wanted);
    whole_predictions = predictions_of(*whole);
  }
  if (options.generate) generate();
}

bool Reading::is_off(std::int64_t layer, std::int64_t head) const {
  return std::find(options.off.begin(), options.off.end(), models::HeadPlace{layer, head}) != options.off.end();
}

const models::HeadSummary& Reading::summary(std::int64_t layer, std::int64_t head) const {
  return heads[static_cast<std::size_t>(layer * model.config().heads + head)];
}

std::string Reading::name_of(std::int32_t token) const {
  return token < tokenizer.size() ? label_of(tokenizer.token(token).text) : fmt::format("#{}", token);
}

// At the last token of a model that predicts the next one, or at each mask.
std::vector<Prediction> Reading::predictions_of(const models::Run& from) const {
  std::vector<Prediction> list;
  if (from.logits.count() == 0) return list;
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    const bool last = n + 1 == tokens.size();
    if (model.predicts() == models::Predicts::next ? !last : !is_mask(tokens[n])) continue;
    Tensor logits = Tensor::copy_of(from.logits.view().select(0, static_cast<std::int64_t>(n)));
    std::vector<models::Likely> likely = models::most_likely(logits, kShownLikely, options.temperature.value_or(1.0));
    list.push_back({n, std::move(logits), std::move(likely)});
  }
  return list;
}

void Reading::generate() {
  std::vector<std::int32_t> ids;
  for (const models::Token& token : tokens) ids.push_back(token.id);
  const Interrupt interrupt;
  models::Generation generation(model, ids,
                                {.temperature = options.temperature.value_or(0.0),
                                 .seed = options.seed.value_or(1),
                                 .off = options.off,
                                 .most = *options.generate});
  while (std::ssize(generated) < *options.generate && !generation.full() && !Interrupt::asked()) {
    generated.push_back(generation.next());
    if (generated.back().token == model.config().end_token) break;
  }
}

}  // namespace rapt::cli
