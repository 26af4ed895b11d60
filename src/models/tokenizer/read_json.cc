// tokenizer.json, and what its model has in common with vocab.json and merges.txt.
#include <optional>
#include <set>
#include <string>

#include "core/text.h"
#include "models/files.h"
#include "models/tokenizer/byte_bpe.h"
#include "models/tokenizer/parts.h"
#include "models/tokenizer/quoted.h"
#include "models/tokenizer/word_piece.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

constexpr std::int64_t kMostId = Vocabulary::kMostIds - 1;
constexpr const char* kFile = "tokenizer.json";
constexpr const char* kKinds = "WordPiece and BPE";

// Files written by early releases do not name the type, which then shows in the entries.
std::string type_of(const JsonEntry& model) {
  if (const std::optional<JsonEntry> type = model.find("type")) return type->text();
  if (model.find("merges")) return "BPE";
  if (model.find("max_input_chars_per_word")) return "WordPiece";
  model.fail(text("has no \"type\"; rapt has ", kKinds));
}

std::unique_ptr<WordModel> read_word_piece(const JsonEntry& model, const std::string& where) {
  const WordPieceOptions options{
      .unknown = model.at("unk_token").text(),
      .prefix = model.at("continuing_subword_prefix").text(),
      .most_characters = model.at("max_input_chars_per_word").whole(1, std::int64_t{1} << 31U),
  };
  return std::make_unique<WordPiece>(read_vocabulary(model.at("vocab"), where), options, where);
}

ByteBpe::Merges read_merges(const JsonEntry& entry, const std::string& where) {
  ByteBpe::Merges merges;
  for (std::size_t i = 0; i < entry.array().size(); ++i) {
    if (const auto* line = std::get_if<std::string>(&entry.array()[i].value)) {
      if (!line->starts_with("#version")) merges.push_back(read_merge(*line, merges.size() + 1, where));
      continue;
    }
    const JsonEntry pair = entry.item(i);
    if (pair.array().size() != 2) pair.fail("expected two tokens");
    const std::string &first = pair.item(0).text(), &second = pair.item(1).text();
    merges.emplace_back(first, second);
  }
  return merges;
}

std::unique_ptr<WordModel> read_bpe(const JsonEntry& model, const std::string& where) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text_or(key, "").empty()) model.at(key).fail("is not supported in BPE; it must be empty or null");
  }
  if (model.boolean_or("byte_fallback", false)) model.at("byte_fallback").fail("is not supported; it must be false");
  if (const std::optional<JsonEntry> dropout = model.find("dropout")) {
    if (dropout->number() != 0) dropout->fail("is for training; it must be 0 or null");
  }
  const ByteBpeOptions options{
      .unknown = model.text_or("unk_token", ""),
      .fuses_unknown = model.boolean_or("fuse_unk", false),
      .words_first = model.boolean_or("ignore_merges", false),
  };
  return std::make_unique<ByteBpe>(read_vocabulary(model.at("vocab"), where), read_merges(model.at("merges"), where),
                                   options, where);
}

std::unique_ptr<WordModel> read_model(const JsonEntry& model, const std::string& where) {
  const std::string type = type_of(model);
  if (type == "WordPiece") return read_word_piece(model, where);
  if (type == "BPE") return read_bpe(model, where);
  model.fail(text("the type ", quoted(type), " is not supported; rapt has ", kKinds));
}

// tokenizers number the tokens that the vocabulary does not have from its size on, whatever the file says.
std::vector<AddedToken> read_added(const JsonEntry& entry, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  std::set<std::string> seen;
  auto next = static_cast<std::int32_t>(vocabulary.count());
  for (std::size_t i = 0; i < entry.array().size(); ++i) {
    const JsonEntry token = entry.item(i);
    AddedToken added{
        .content = token.at("content").text(),
        .id = static_cast<std::int32_t>(token.at("id").whole(0, kMostId)),
        .single_word = token.boolean_or("single_word", false),
        .lstrip = token.boolean_or("lstrip", false),
        .rstrip = token.boolean_or("rstrip", false),
        .normalized = token.at("normalized").boolean(),
        .special = token.boolean_or("special", false),
    };
    if (!seen.insert(added.content).second) token.fail(text("the content ", quoted(added.content), " appears twice"));
    const std::int32_t known = vocabulary.id_of(added.content), id = known >= 0 ? known : next++;
    if (added.id != id) {
      token.fail(text(quoted(added.content), " has the id ", added.id, ", and ", id,
                      known >= 0 ? " in the vocabulary" : " by its place after the vocabulary"));
    }
    if (known < 0 && vocabulary.token_of(id) != nullptr) {
      token.fail(text("the id ", id, " is also that of ", quoted(*vocabulary.token_of(id))));
    }
    tokens.push_back(std::move(added));
  }
  return tokens;
}

}  // namespace

std::string where_of(const ModelFiles& files, const char* name) {
  return files.where().empty() ? text("tokenizer: ", name, ": ") : text("tokenizer: ", files.where(), ": ", name, ": ");
}

Vocabulary read_vocabulary(const JsonEntry& entry, const std::string& where) {
  std::vector<VocabularyEntry> entries;
  entries.reserve(entry.object().size());
  for (const JsonMember& member : entry.object()) {
    const auto* id = std::get_if<std::int64_t>(&member.value.value);
    if (id == nullptr || *id < 0 || *id > kMostId) {
      entry.fail(text("the id of ", quoted(member.key), " must be a whole number from 0 to ", kMostId));
    }
    entries.push_back({member.key, static_cast<std::int32_t>(*id)});
  }
  return {std::move(entries), where};
}

std::pair<std::string, std::string> read_merge(const std::string& line, std::size_t number, const std::string& where) {
  const std::size_t space = line.find(' ');
  if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
    throw FileError(
        text(where, "merge ", number, " is ", quoted(line), "; expected two tokens with a space between them"));
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

TokenizerParts read_tokenizer_json(const ModelFiles& files) {
  const std::string where = where_of(files, kFile);
  const JsonValue value = parse_json(files.text(kFile), where);
  const JsonEntry root(value, where);
  TokenizerParts parts;
  parts.model = read_model(root.at("model"), where);
  if (const auto entry = root.find("normalizer")) parts.normalizer = read_normalizer(*entry);
  if (const auto entry = root.find("pre_tokenizer")) parts.pre_tokenizer = read_pre_tokenizer(*entry);
  if (const auto entry = root.find("post_processor")) parts.post = read_post_processor(*entry);
  if (const auto entry = root.find("decoder")) parts.decoder = read_decoder(*entry);
  if (const auto entry = root.find("added_tokens")) {
    parts.added = AddedTokens(read_added(*entry, parts.model->vocabulary()), parts.normalizer, where);
  }
  return parts;
}

}  // namespace rapt::models
