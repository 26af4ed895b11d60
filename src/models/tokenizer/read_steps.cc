// The entries of tokenizer.json that are chains of steps: normalizer, pre_tokenizer, post_processor and decoder.
#include <string>
#include <string_view>

#include "core/text.h"
#include "models/tokenizer/parts.h"
#include "models/tokenizer/quoted.h"

namespace rapt::models {
namespace {

constexpr std::int64_t kMostId = Vocabulary::kMostIds - 1;
constexpr std::size_t kMostTemplateTokens = 100;

[[noreturn]] void refuse_type(const JsonEntry& entry, const std::string& type, const char* known) {
  entry.fail(text("the type ", quoted(type), " is not supported; rapt has ", known));
}

// Calls each(entry) for the steps of a sequence.
template <class Each>
void for_each_step(const JsonEntry& entry, std::string_view key, const Each& each) {
  const JsonEntry steps = entry.at(key);
  for (std::size_t i = 0; i < steps.array().size(); ++i) each(steps.item(i));
}

void add_normalizer(const JsonEntry& entry, std::vector<NormalizerStep>& steps) {
  using Kind = NormalizerStep::Kind;
  const auto add = [&](Kind kind) { steps.push_back({.kind = kind}); };
  const std::string& type = entry.at("type").text();
  if (type == "Sequence") {
    for_each_step(entry, "normalizers", [&](const JsonEntry& step) { add_normalizer(step, steps); });
  } else if (type == "BertNormalizer") {
    const bool lowers = entry.at("lowercase").boolean();
    if (entry.at("clean_text").boolean()) add(Kind::clean);
    if (entry.at("handle_chinese_chars").boolean()) add(Kind::spread_chinese);
    if (entry.boolean_or("strip_accents", lowers)) {
      add(Kind::nfd);
      add(Kind::strip_nonspacing);
    }
    if (lowers) add(Kind::lower);
  } else if (type == "Lowercase") {
    add(Kind::lower);
  } else if (type == "NFD") {
    add(Kind::nfd);
  } else if (type == "NFC") {
    add(Kind::nfc);
  } else if (type == "NFKD") {
    add(Kind::nfkd);
  } else if (type == "NFKC") {
    add(Kind::nfkc);
  } else if (type == "StripAccents") {
    add(Kind::strip_marks);
  } else if (type == "Strip") {
    steps.push_back(
        {.kind = Kind::strip, .left = entry.at("strip_left").boolean(), .right = entry.at("strip_right").boolean()});
  } else if (type == "Replace") {
    const JsonEntry pattern = entry.at("pattern");
    const std::optional<JsonEntry> literal = pattern.find("String");
    if (!literal) pattern.fail("only a pattern that is a \"String\" is supported, no regular expression");
    if (literal->text().empty()) literal->fail("is empty");
    steps.push_back({.kind = Kind::replace, .pattern = literal->text(), .content = entry.at("content").text()});
  } else {
    refuse_type(entry, type,
                "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Replace, Sequence, Strip and StripAccents");
  }
}

void add_pre_tokenizer(const JsonEntry& entry, PreTokenizer& to) {
  if (to.byte_level) entry.fail("follows ByteLevel, which must be the last step");
  const std::string& type = entry.at("type").text();
  if (type == "Sequence") {
    for_each_step(entry, "pretokenizers", [&](const JsonEntry& step) { add_pre_tokenizer(step, to); });
  } else if (type == "BertPreTokenizer") {
    to.steps.push_back(SplitStep::bert);
  } else if (type == "Whitespace") {
    to.steps.push_back(SplitStep::words);
  } else if (type == "WhitespaceSplit") {
    to.steps.push_back(SplitStep::white_space);
  } else if (type == "ByteLevel") {
    to.byte_level = true;
    to.adds_space = entry.at("add_prefix_space").boolean();
    to.splits_as_gpt2 = entry.boolean_or("use_regex", true);
  } else {
    refuse_type(entry, type, "BertPreTokenizer, ByteLevel, Sequence, Whitespace and WhitespaceSplit");
  }
}

// The id in a pair such as ["[SEP]", 102].
std::int32_t id_of_pair(const JsonEntry& pair) {
  if (pair.array().size() != 2) pair.fail("expected a token and its id");
  return static_cast<std::int32_t>(pair.item(1).whole(0, kMostId));
}

PostStep read_template(const JsonEntry& entry) {
  PostStep step;
  bool text_seen = false;
  for_each_step(entry, "single", [&](const JsonEntry& piece) {
    if (const std::optional<JsonEntry> special = piece.find("SpecialToken")) {
      const JsonEntry ids = entry.at("special_tokens").at(special->at("id").text()).at("ids");
      for (std::size_t i = 0; i < ids.array().size(); ++i) {
        const auto id = static_cast<std::int32_t>(ids.item(i).whole(0, kMostId));
        if (step.before.size() + step.after.size() == kMostTemplateTokens) {
          piece.fail(text("the template adds more than ", kMostTemplateTokens, " tokens to a text"));
        }
        (text_seen ? step.after : step.before).push_back(id);
      }
      return;
    }
    const std::string& sequence = piece.at("Sequence").at("id").text();
    if (sequence != "A" || text_seen) piece.fail("a template for one text must have the sequence A once, and no other");
    text_seen = true;
  });
  if (!text_seen) entry.at("single").fail("a template for one text must have the sequence A");
  return step;
}

void add_post_processor(const JsonEntry& entry, std::vector<PostStep>& steps) {
  const std::string& type = entry.at("type").text();
  if (type == "Sequence") {
    for_each_step(entry, "processors", [&](const JsonEntry& step) { add_post_processor(step, steps); });
  } else if (type == "TemplateProcessing") {
    steps.push_back(read_template(entry));
  } else if (type == "ByteLevel" || type == "RobertaProcessing") {
    if (entry.at("trim_offsets").boolean()) {
      steps.push_back({.kind = PostStep::Kind::trim, .keeps_first_space = entry.at("add_prefix_space").boolean()});
    }
  } else if (type != "BertProcessing") {
    refuse_type(entry, type, "BertProcessing, ByteLevel, RobertaProcessing, Sequence and TemplateProcessing");
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    steps.push_back({.before = {id_of_pair(entry.at("cls"))}, .after = {id_of_pair(entry.at("sep"))}});
  }
}

}  // namespace

Normalizer read_normalizer(const JsonEntry& entry) {
  Normalizer normalizer;
  add_normalizer(entry, normalizer.steps);
  return normalizer;
}

PreTokenizer read_pre_tokenizer(const JsonEntry& entry) {
  PreTokenizer pre_tokenizer;
  add_pre_tokenizer(entry, pre_tokenizer);
  return pre_tokenizer;
}

std::vector<PostStep> read_post_processor(const JsonEntry& entry) {
  std::vector<PostStep> steps;
  add_post_processor(entry, steps);
  return steps;
}

Decoder read_decoder(const JsonEntry& entry) {
  const std::string& type = entry.at("type").text();
  if (type == "ByteLevel") return {.kind = Decoder::Kind::byte_level};
  if (type != "WordPiece") refuse_type(entry, type, "ByteLevel and WordPiece");
  return {.kind = Decoder::Kind::word_piece,
          .prefix = entry.at("prefix").text(),
          .cleans_up = entry.at("cleanup").boolean()};
}

}  // namespace rapt::models
