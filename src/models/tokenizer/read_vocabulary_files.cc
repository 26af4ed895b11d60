// Tokenizers without tokenizer.json: vocab.txt as BERT has it, or vocab.json and merges.txt as GPT-2 and RoBERTa have
// them. What tokenizer_config.json and special_tokens_map.json do not say is as in transformers.
#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/text.h"
#include "models/files.h"
#include "models/tokenizer/byte_bpe.h"
#include "models/tokenizer/parts.h"
#include "models/tokenizer/quoted.h"
#include "models/tokenizer/unicode.h"
#include "models/tokenizer/word_piece.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kSpecialTokens = "special_tokens_map.json";

// The members of a file of settings; none if there is no such file.
class Settings {
 public:
  Settings(const ModelFiles& files, const char* name) : where_(where_of(files, name)) {
    value_.value = JsonValue::Object();
    if (files.has(name)) value_ = parse_json(files.text(name), where_);
  }
  JsonEntry root() const { return {value_, where_}; }

 private:
  std::string where_;
  JsonValue value_;
};

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return name.starts_with(each); });
}

// Calls each(line, number) for the lines of a text file, from number 1 on.
template <class Each>
void for_each_line(std::string_view text, const std::string& where, const Each& each) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (not_utf8_at(line) != std::string_view::npos) {
      throw FileError(rapt::text(where, "line ", number, " is not UTF-8: ", quoted(line)));
    }
    each(std::string(line), number);
  }
}

// An added token as the settings write it: its content, or an object.
AddedToken added_token(const JsonEntry& entry) {
  if (entry.is_text()) return {.content = entry.text(), .normalized = false, .special = true};
  return {.content = entry.at("content").text(),
          .single_word = entry.boolean_or("single_word", false),
          .lstrip = entry.boolean_or("lstrip", false),
          .rstrip = entry.boolean_or("rstrip", false),
          .normalized = entry.boolean_or("normalized", false),
          .special = entry.boolean_or("special", true)};
}

// The special tokens of a tokenizer by their roles, such as cls_token, and those that a user added.
class SpecialTokens {
 public:
  SpecialTokens(const ModelFiles& files, const Settings& config, const Vocabulary& vocabulary)
      : config_(config.root()), map_file_(files, kSpecialTokens), vocabulary_(vocabulary) {
    const auto added = config_.find("added_tokens_decoder");
    if (!added) return;
    for (const JsonMember& member : added->object()) {
      const JsonEntry entry = added->at(member.key);
      AddedToken token = added_token(entry);
      const char* last = member.key.data() + member.key.size();
      const auto [end, error] = std::from_chars(member.key.data(), last, token.id);
      if (error != std::errc() || end != last || token.id < 0 || token.id >= Vocabulary::kMostIds) {
        entry.fail(text("the key must be an id below ", Vocabulary::kMostIds));
      }
      const std::int32_t known = vocabulary.id_of(token.content);
      const std::string* taken = vocabulary.token_of(token.id);
      if ((known >= 0 && known != token.id) || (taken != nullptr && *taken != token.content)) {
        entry.fail(text("the vocabulary has another token or another id for ", quoted(token.content)));
      }
      tokens_[token.content] = token;
    }
  }

  // The content of the token with a role; it is added if the vocabulary has it.
  std::string add(const char* role, const char* otherwise, bool lstrip = false) {
    AddedToken token{.content = otherwise, .lstrip = lstrip, .normalized = false, .special = true};
    const JsonEntry map = map_file_.root();
    if (const auto entry = config_.find(role)) {
      token = added_token(*entry);
    } else if (const auto mapped = map.find(role)) {
      token = added_token(*mapped);
    }
    token.special = true;
    token.id = vocabulary_.id_of(token.content);
    if (token.id >= 0) tokens_.try_emplace(token.content, token);
    return token.content;
  }
  // The same for a token that must be in the vocabulary; gives its id.
  std::int32_t add_required(const char* role, const char* otherwise, const std::string& where) {
    const std::string content = add(role, otherwise);
    const std::int32_t id = vocabulary_.id_of(content);
    if (id < 0) throw FileError(text(where, "the vocabulary does not have ", quoted(content), ", the ", role));
    return id;
  }

  std::vector<AddedToken> take() const {
    std::vector<AddedToken> tokens;
    for (const auto& [content, token] : tokens_) tokens.push_back(token);
    return tokens;
  }

 private:
  JsonEntry config_;
  Settings map_file_;
  const Vocabulary& vocabulary_;
  std::map<std::string, AddedToken> tokens_;  // by content
};

std::string class_of(const JsonEntry& config) { return config.text_or("tokenizer_class", ""); }

// Whether the files are RoBERTa's, which wraps a text in <s> and </s>, and not GPT-2's.
bool is_roberta(const ModelFiles& files, const JsonEntry& config, const Vocabulary& vocabulary) {
  const std::string name = class_of(config);
  if (starts_with_any(name, {"Roberta", "Longformer", "Bart"})) return true;
  if (name.starts_with("GPT2")) return false;
  if (!name.empty() && !name.starts_with("PreTrainedTokenizer")) {
    config.at("tokenizer_class")
        .fail(text(quoted(name),
                   " is not supported without a tokenizer.json; rapt has GPT2Tokenizer and RobertaTokenizer"));
  }
  const Settings model(files, "config.json");
  const std::string type = model.root().text_or("model_type", "");
  if (type == "gpt2") return false;
  return type == "roberta" || (vocabulary.id_of("<s>") >= 0 && vocabulary.id_of("</s>") >= 0);
}

}  // namespace

TokenizerParts read_bert_vocabulary(const ModelFiles& files) {
  const std::string where = where_of(files, "vocab.txt");
  const Settings settings(files, kConfig);
  const JsonEntry config = settings.root();
  const std::string name = class_of(config);
  if (!name.empty() && !starts_with_any(name, {"Bert", "DistilBert", "Electra", "MobileBert", "PreTrainedTokenizer"})) {
    config.at("tokenizer_class")
        .fail(text(quoted(name), " is not supported without a tokenizer.json; rapt has BertTokenizer"));
  }
  std::vector<VocabularyEntry> entries;
  for_each_line(files.text("vocab.txt"), where, [&](std::string line, std::size_t number) {
    if (number > static_cast<std::size_t>(Vocabulary::kMostIds)) {
      throw FileError(text(where, "has more than ", Vocabulary::kMostIds, " lines"));
    }
    // An empty line has an id, but is no token.
    if (!line.empty()) entries.push_back({std::move(line), static_cast<std::int32_t>(number - 1)});
  });
  TokenizerParts parts;
  const std::string unknown = [&] {
    const auto entry = config.find("unk_token");
    return entry ? added_token(*entry).content : std::string("[UNK]");
  }();
  parts.model =
      std::make_unique<WordPiece>(Vocabulary(std::move(entries), where), WordPieceOptions{.unknown = unknown}, where);

  using Kind = NormalizerStep::Kind;
  const bool lowers = config.boolean_or("do_lower_case", true);
  std::vector<NormalizerStep>& steps = parts.normalizer.steps;
  steps.push_back({.kind = Kind::clean});
  if (config.boolean_or("tokenize_chinese_chars", true)) steps.push_back({.kind = Kind::spread_chinese});
  if (config.boolean_or("strip_accents", lowers)) {
    steps.push_back({.kind = Kind::nfd});
    steps.push_back({.kind = Kind::strip_nonspacing});
  }
  if (lowers) steps.push_back({.kind = Kind::lower});
  parts.pre_tokenizer.steps = {SplitStep::bert};
  parts.decoder.kind = Decoder::Kind::word_piece;

  SpecialTokens special(files, settings, parts.model->vocabulary());
  (void)special.add("unk_token", "[UNK]");
  (void)special.add("pad_token", "[PAD]");
  (void)special.add("mask_token", "[MASK]");
  const std::int32_t first = special.add_required("cls_token", "[CLS]", where);
  const std::int32_t last = special.add_required("sep_token", "[SEP]", where);
  parts.post.push_back({.before = {first}, .after = {last}});
  parts.added = AddedTokens(special.take(), parts.normalizer, where);
  return parts;
}

TokenizerParts read_bpe_vocabulary(const ModelFiles& files) {
  const std::string where = where_of(files, "vocab.json"), where_merges = where_of(files, "merges.txt");
  const Settings settings(files, kConfig);
  const JsonEntry config = settings.root();
  const JsonValue vocabulary = parse_json(files.text("vocab.json"), where);
  ByteBpe::Merges merges;
  for_each_line(files.text("merges.txt"), where_merges, [&](const std::string& line, std::size_t number) {
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(read_merge(line, number, where_merges));
  });
  TokenizerParts parts;
  parts.model = std::make_unique<ByteBpe>(read_vocabulary(JsonEntry(vocabulary, where), where), merges,
                                          ByteBpeOptions{}, where_merges);
  const bool adds_space = config.boolean_or("add_prefix_space", false);
  parts.pre_tokenizer = {.byte_level = true, .adds_space = adds_space, .splits_as_gpt2 = true};
  parts.decoder.kind = Decoder::Kind::byte_level;

  SpecialTokens special(files, settings, parts.model->vocabulary());
  if (is_roberta(files, config, parts.model->vocabulary())) {
    if (config.boolean_or("trim_offsets", true)) {
      parts.post.push_back({.kind = PostStep::Kind::trim, .keeps_first_space = adds_space});
    }
    const std::int32_t first = special.add_required("cls_token", "<s>", where);
    const std::int32_t last = special.add_required("sep_token", "</s>", where);
    parts.post.push_back({.before = {first}, .after = {last}});
    (void)special.add("bos_token", "<s>");
    (void)special.add("eos_token", "</s>");
    (void)special.add("unk_token", "<unk>");
    (void)special.add("pad_token", "<pad>");
    (void)special.add("mask_token", "<mask>", true);
  } else {
    (void)special.add("bos_token", "<|endoftext|>");
    (void)special.add("eos_token", "<|endoftext|>");
    (void)special.add("unk_token", "<|endoftext|>");
    if (config.find("pad_token")) (void)special.add("pad_token", "<|endoftext|>");
    if (config.boolean_or("add_bos_token", false)) {
      parts.post.push_back({.before = {special.add_required("bos_token", "<|endoftext|>", where)}});
    }
  }
  parts.added = AddedTokens(special.take(), parts.normalizer, where);
  return parts;
}

}  // namespace rapt::models
