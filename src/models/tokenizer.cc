#include "models/tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "models/files.h"
#include "models/tokenizer/byte_level.h"
#include "models/tokenizer/parts.h"
#include "models/tokenizer/unicode.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

// A token before the steps of the post-processor, which look at how its text starts and ends.
struct Found {
  std::int32_t id = 0;
  std::size_t begin = 0, end = 0;
  std::size_t spaces_before = 0, spaces_after = 0;  // characters of white space at the start and the end of its text
  bool wraps = false;                               // the post-processor added it
};

// White space in a token's text, or a space in the byte-level alphabet.
bool is_space(char32_t point) { return point == 0x120 || is_any(point, kSpace); }

void count_spaces(std::string_view token, Found& found) {
  for (std::string_view rest = token; !rest.empty() && is_space(take_code_point(rest));) ++found.spaces_before;
  for (std::string_view rest = token; !rest.empty() && is_space(take_last_code_point(rest));) ++found.spaces_after;
}

// As in tokenizers, a token loses as many characters of the input as its text has spaces, whatever they are.
void trim(std::string_view input, const PostStep& step, std::vector<Found>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Found& token = tokens[i];
    std::size_t before = token.spaces_before;
    const bool is_first = i == 0 || token.begin == 0;
    if (is_first && step.keeps_first_space && before == 1) before = 0;
    std::string_view rest = input.substr(token.begin, token.end - token.begin);
    for (; before > 0 && !rest.empty(); --before) (void)take_code_point(rest);
    token.begin = token.end - rest.size();

    std::string_view until = input.substr(0, token.end);
    std::size_t after = token.spaces_after;
    for (; after > 0 && !until.empty(); --after) (void)take_last_code_point(until);
    if (after == 0) token.end = std::max(until.size(), token.begin);
  }
}

TokenizerParts read_parts(const ModelFiles& files) {
  if (files.has("tokenizer.json")) return read_tokenizer_json(files);
  if (files.has("vocab.txt")) return read_bert_vocabulary(files);
  if (files.has("vocab.json") && files.has("merges.txt")) return read_bpe_vocabulary(files);
  for (const char* other : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (files.has(other)) {
      throw FileError(text("tokenizer: ", files.where(), ": ", other,
                           " is a model of SentencePiece, which rapt does not ",
                           "have; rapt reads tokenizer.json with WordPiece or BPE"));
    }
  }
  throw FileError(text("tokenizer: ", files.where(),
                       ": there is no tokenizer.json, no vocab.txt, and no vocab.json with ", "merges.txt"));
}

}  // namespace

struct Tokenizer::Kind {
  TokenizerParts parts;
  bool byte_level = false;
  bool trims = false;  // a step of the post-processor looks at white space

  const std::string* vocabulary_text(std::int32_t id) const { return parts.model->vocabulary().token_of(id); }

  // What a person reads.
  Token token(std::int32_t id) const {
    const AddedToken* added = parts.added.find(id);
    if (added != nullptr) return {.id = id, .text = added->content, .special = added->special};
    const std::string* found = vocabulary_text(id);
    if (found == nullptr) throw Error(text("tokenizer: the id ", id, " is not in the vocabulary"));
    return {.id = id, .text = byte_level ? valid_utf8(bytes_of_token(*found)) : *found};
  }

  void check_post_steps(const ModelFiles& files) const {
    for (const PostStep& step : parts.post) {
      for (const auto* ids : {&step.before, &step.after}) {
        for (const std::int32_t id : *ids) {
          if (parts.added.find(id) != nullptr || vocabulary_text(id) != nullptr) continue;
          throw FileError(text("tokenizer: ", files.where(), ": the post-processor adds the id ", id,
                               ", which is not in the vocabulary"));
        }
      }
    }
  }

  void add_words(const AlignedText& text, std::size_t begin, std::size_t end, std::vector<Found>& to) const {
    std::vector<WordPart> words;
    parts.pre_tokenizer.split(text, begin, end, [&](const AlignedText& word, std::size_t first, std::size_t last) {
      words.clear();
      parts.model->split(word.part(first, last), words);
      for (const WordPart& part : words) {
        const Origin origin = word.origin_of(first + part.begin, first + part.end);
        Found found{.id = part.id, .begin = origin.begin, .end = origin.end};
        const std::string* token = trims ? vocabulary_text(part.id) : nullptr;
        if (token != nullptr) count_spaces(*token, found);
        to.push_back(found);
      }
    });
  }

  // Tokens that are found in the text as it is, then, between them, those that are found in the normalized text, then
  // the words between those.
  std::vector<Found> found_in(std::string_view input) const {
    std::vector<Found> tokens;
    const auto add = [&](const AddedToken& token, std::string_view text, Origin origin) {
      Found found{.id = token.id, .begin = origin.begin, .end = origin.end};
      count_spaces(text, found);
      tokens.push_back(found);
    };
    for (const AddedTokens::Part& part : parts.added.split(input, false)) {
      AlignedText text(input, part.begin, part.end);
      if (part.token != nullptr) {
        add(*part.token, text.text(), text.origin_of(0, text.text().size()));
        continue;
      }
      parts.normalizer.apply(text);
      for (const AddedTokens::Part& smaller : parts.added.split(text.text(), true)) {
        if (smaller.token != nullptr) {
          add(*smaller.token, text.part(smaller.begin, smaller.end), text.origin_of(smaller.begin, smaller.end));
        } else {
          add_words(text, smaller.begin, smaller.end, tokens);
        }
      }
    }
    return tokens;
  }

  void wrap(const PostStep& step, std::vector<Found>& tokens) const {
    const auto all = [](const std::vector<std::int32_t>& ids) {
      std::vector<Found> found;
      for (const std::int32_t id : ids) found.push_back({.id = id, .wraps = true});
      return found;
    };
    const std::vector<Found> before = all(step.before), after = all(step.after);
    tokens.insert(tokens.begin(), before.begin(), before.end());
    tokens.insert(tokens.end(), after.begin(), after.end());
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Kind> kind) : kind_(std::move(kind)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::read(const ModelFiles& files) {
  auto kind = std::make_unique<Kind>();
  kind->parts = read_parts(files);
  kind->byte_level = kind->parts.pre_tokenizer.byte_level || kind->parts.decoder.kind == Decoder::Kind::byte_level;
  kind->check_post_steps(files);
  kind->trims = std::any_of(kind->parts.post.begin(), kind->parts.post.end(),
                            [](const PostStep& step) { return step.kind == PostStep::Kind::trim; });
  return Tokenizer(std::move(kind));
}

std::vector<Token> Tokenizer::encode(std::string_view text, bool special) const {
  if (text.size() > AlignedText::kMostBytes) {
    throw Error(rapt::text("tokenizer: the text has ", text.size(), " bytes; at most ", AlignedText::kMostBytes));
  }
  if (const std::size_t byte = not_utf8_at(text); byte != std::string_view::npos) {
    throw Error(rapt::text("tokenizer: the text is not UTF-8 at byte ", byte));
  }
  std::vector<Found> found = kind_->found_in(text);
  for (const PostStep& step : kind_->parts.post) {
    if (step.kind == PostStep::Kind::trim) {
      trim(text, step, found);
    } else if (special) {
      kind_->wrap(step, found);
    }
  }
  std::vector<Token> tokens;
  tokens.reserve(found.size());
  for (const Found& each : found) {
    tokens.push_back(kind_->token(each.id));
    tokens.back().begin = each.begin;
    tokens.back().end = each.end;
    if (each.wraps) tokens.back().special = true;
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  const AddedTokens& added = kind_->parts.added;
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    if (const AddedToken* token = added.find(id); token != nullptr) {
      const std::string& content = added.decoded(*token);
      // As in tokenizers, a special token that the normalizer changes is not recognized here.
      const bool skipped = content == token->content ? token->special : added.is_special(content);
      if (!skipped) tokens.push_back(content);
    } else if (const std::string* known = kind_->vocabulary_text(id); known != nullptr) {
      tokens.push_back(*known);
    }
  }
  return kind_->parts.decoder.text_of(tokens);
}

std::int64_t Tokenizer::size() const {
  const std::int32_t largest = std::max(kind_->parts.model->vocabulary().largest_id(), kind_->parts.added.largest_id());
  return std::int64_t{largest} + 1;
}

Token Tokenizer::token(std::int32_t id) const { return kind_->token(id); }

}  // namespace rapt::models
