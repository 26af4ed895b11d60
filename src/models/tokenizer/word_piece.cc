#include "models/tokenizer/word_piece.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "models/tokenizer/quoted.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

Vocabulary without_prefix(const Vocabulary& all, const std::string& prefix, const std::string& where) {
  std::vector<VocabularyEntry> entries;
  for (const VocabularyEntry& entry : all.entries()) {
    if (entry.token.starts_with(prefix)) entries.push_back({entry.token.substr(prefix.size()), entry.id});
  }
  return {std::move(entries), where};
}

std::int64_t characters_of(std::string_view word) {
  return std::count_if(word.begin(), word.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; });
}

}  // namespace

WordPiece::WordPiece(Vocabulary vocabulary, const WordPieceOptions& options, const std::string& where)
    : WordModel(std::move(vocabulary)),
      unknown_(this->vocabulary().id_of(options.unknown)),
      most_characters_(options.most_characters),
      continuations_(without_prefix(this->vocabulary(), options.prefix, where)) {
  if (unknown_ < 0) {
    throw FileError(
        text(where, "the vocabulary does not have ", quoted(options.unknown), ", the token of unknown words"));
  }
}

void WordPiece::split(std::string_view word, std::vector<WordPart>& parts) const {
  const std::size_t before = parts.size();
  bool known = characters_of(word) <= most_characters_;
  for (std::size_t at = 0; known && at < word.size();) {
    const Vocabulary& tokens = at == 0 ? vocabulary() : continuations_;
    const Vocabulary::Match match = tokens.longest_prefix_of(word.substr(at));
    known = match.id >= 0;
    parts.push_back({match.id, at, at + match.bytes});
    at += match.bytes;
  }
  if (known) return;
  parts.resize(before);
  parts.push_back({unknown_, 0, word.size()});
}

}  // namespace rapt::models
