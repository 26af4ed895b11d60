#include "models/tokenizer/vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "models/tokenizer/quoted.h"
#include "rapt/error.h"

namespace rapt::models {

Vocabulary::Vocabulary(std::vector<VocabularyEntry> entries, const std::string& where) : entries_(std::move(entries)) {
  for (const VocabularyEntry& entry : entries_) {
    if (entry.token.size() <= kMostTokenBytes) continue;
    throw FileError(text(where, "the token ", quoted(entry.token), " has ", entry.token.size(),
                         " bytes; rapt reads tokens of up to ", kMostTokenBytes));
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const VocabularyEntry& a, const VocabularyEntry& b) { return a.token < b.token; });
  by_id_.resize(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) by_id_[i] = static_cast<std::uint32_t>(i);
  std::sort(by_id_.begin(), by_id_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return entries_[a].id != entries_[b].id ? entries_[a].id < entries_[b].id : a < b;
  });
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i - 1].token == entries_[i].token) {
      throw FileError(text(where, "the token ", quoted(entries_[i].token), " appears twice, as ", entries_[i - 1].id,
                           " and as ", entries_[i].id));
    }
    const VocabularyEntry &a = entries_[by_id_[i - 1]], &b = entries_[by_id_[i]];
    if (a.id == b.id) {
      throw FileError(
          text(where, "the id ", a.id, " appears twice, for ", quoted(a.token), " and for ", quoted(b.token)));
    }
  }
  for (const VocabularyEntry& entry : entries_) {
    if (!entry.token.empty()) ++by_byte_[static_cast<unsigned char>(entry.token[0]) + std::size_t{1}];
  }
  // The empty token, if there is one, is before all others.
  by_byte_[0] = !entries_.empty() && entries_[0].token.empty() ? 1 : 0;
  for (std::size_t i = 1; i < by_byte_.size(); ++i) by_byte_[i] += by_byte_[i - 1];
}

std::int32_t Vocabulary::id_of(std::string_view token) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), token,
                       [](const VocabularyEntry& entry, std::string_view name) { return entry.token < name; });
  return found != entries_.end() && found->token == token ? found->id : -1;
}

const std::string* Vocabulary::token_of(std::int32_t id) const {
  const auto found =
      std::lower_bound(by_id_.begin(), by_id_.end(), id,
                       [this](std::uint32_t place, std::int32_t value) { return entries_[place].id < value; });
  return found != by_id_.end() && entries_[*found].id == id ? &entries_[*found].token : nullptr;
}

Vocabulary::Match Vocabulary::longest_prefix_of(std::string_view text) const {
  Match best;
  if (text.empty()) return best;
  const auto byte_at = [](const std::string& token, std::size_t i) { return static_cast<unsigned char>(token[i]); };
  // The entries that start with the bytes so far; the one that has no more bytes is the first of them.
  const auto first_byte = static_cast<unsigned char>(text[0]);
  auto begin = entries_.begin() + by_byte_[first_byte], end = entries_.begin() + by_byte_[first_byte + std::size_t{1}];
  for (std::size_t length = 1; begin != end; ++length) {
    if (begin->token.size() == length) best = {begin->id, length};
    if (length == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[length]);
    begin = std::partition_point(begin, end, [&](const VocabularyEntry& entry) {
      return entry.token.size() == length || byte_at(entry.token, length) < byte;
    });
    end = std::partition_point(begin, end,
                               [&](const VocabularyEntry& entry) { return byte_at(entry.token, length) == byte; });
  }
  return best;
}

std::int32_t Vocabulary::largest_id() const { return by_id_.empty() ? -1 : entries_[by_id_.back()].id; }

}  // namespace rapt::models
