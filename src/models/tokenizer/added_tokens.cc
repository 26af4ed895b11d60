#include "models/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "core/utf8.h"
#include "models/tokenizer/quoted.h"
#include "models/tokenizer/unicode.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

bool ends_in_word(std::string_view text) { return !text.empty() && is_any(take_last_code_point(text), kWordCharacter); }
bool starts_with_word(std::string_view text) { return !text.empty() && is_any(take_code_point(text), kWordCharacter); }

// Where the white space at the end of a text starts.
std::size_t spaces_at_end(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = text.size();
    if (!is_any(take_last_code_point(text), kSpace)) return size;
  }
  return 0;
}

std::size_t spaces_at_start(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty()) {
    const std::size_t left = text.size();
    if (!is_any(take_code_point(text), kSpace)) return size - left;
  }
  return size;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer, const std::string& where)
    : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  std::vector<VocabularyEntry> patterns[2];
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    std::string pattern = token.content;
    if (token.normalized) {
      AlignedText changed(pattern, 0, pattern.size());
      normalizer.apply(changed);
      pattern = changed.text();
      if (pattern != token.content) decoded_[token.id] = pattern;
    }
    if (pattern.empty()) {
      throw FileError(text(where, "the added token ", quoted(token.content), " is empty",
                           token.content.empty() ? "" : " after the normalizer"));
    }
    patterns[token.normalized ? 1 : 0].push_back({std::move(pattern), static_cast<std::int32_t>(i)});
  }
  for (int i = 0; i < 2; ++i) patterns_[i] = Vocabulary(std::move(patterns[i]), where + "added tokens: ");
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto found = std::lower_bound(tokens_.begin(), tokens_.end(), id,
                                      [](const AddedToken& token, std::int32_t value) { return token.id < value; });
  return found != tokens_.end() && found->id == id ? &*found : nullptr;
}

const std::string& AddedTokens::decoded(const AddedToken& token) const {
  const auto found = decoded_.find(token.id);
  return found == decoded_.end() ? token.content : found->second;
}

bool AddedTokens::is_special(std::string_view content) const {
  return std::any_of(tokens_.begin(), tokens_.end(),
                     [&](const AddedToken& token) { return token.special && token.content == content; });
}

std::int32_t AddedTokens::largest_id() const { return tokens_.empty() ? -1 : tokens_.back().id; }

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized) const {
  const Vocabulary& patterns = patterns_[normalized ? 1 : 0];
  std::vector<Part> parts;
  std::size_t done = 0;  // the end of the last part
  for (std::size_t at = 0; patterns.count() > 0 && at < text.size();) {
    const Vocabulary::Match match = patterns.longest_prefix_of(text.substr(at));
    if (match.id < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(match.id)];
    std::size_t begin = at, end = at + match.bytes;
    at = end;
    if (token.single_word && (ends_in_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) continue;
    // White space that the token before has taken is not taken again.
    if (token.lstrip) begin = std::max(spaces_at_end(text.substr(0, begin)), done);
    if (token.rstrip) end += spaces_at_start(text.substr(end));
    if (done < begin) parts.push_back({nullptr, done, begin});
    parts.push_back({&token, begin, end});
    done = end;
  }
  if (done < text.size()) parts.push_back({nullptr, done, text.size()});
  return parts;
}

}  // namespace rapt::models
