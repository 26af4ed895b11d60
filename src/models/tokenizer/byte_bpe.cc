#include "models/tokenizer/byte_bpe.h"

#include <functional>
#include <limits>
#include <queue>

#include "core/text.h"
#include "core/utf8.h"
#include "models/tokenizer/quoted.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

std::uint64_t key_of(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32U | static_cast<std::uint32_t>(second);
}

}  // namespace

// A pair of neighbours that can be merged, if it is still there when its turn comes.
struct ByteBpe::Candidate {
  std::uint32_t rank = 0;
  std::int32_t place = 0;  // of the first symbol
  std::int32_t merged = 0;

  // A queue has its largest entry first: the lowest rank, then the lowest place.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : place > other.place; }
};

ByteBpe::ByteBpe(Vocabulary all, const Merges& merges, const ByteBpeOptions& options, const std::string& where)
    : WordModel(std::move(all)), options_(options) {
  const Vocabulary& tokens = vocabulary();
  const auto require = [&](std::int32_t id, std::size_t line, const std::string& token) {
    if (id >= 0) return id;
    throw FileError(
        text(where, "merge ", line + 1, " names the token ", quoted(token), ", which is not in the vocabulary"));
  };
  if (!options.unknown.empty()) {
    unknown_ = tokens.id_of(options.unknown);
    if (unknown_ < 0) {
      throw FileError(
          text(where, "the vocabulary does not have ", quoted(options.unknown), ", the token of unknown characters"));
    }
  }
  merges_.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& [first, second] = merges[i];
    const std::int32_t a = require(tokens.id_of(first), i, first), b = require(tokens.id_of(second), i, second);
    const std::string both = first + second;
    // As in tokenizers, the last of several equal merges counts.
    merges_[key_of(a, b)] = {static_cast<std::uint32_t>(i), require(tokens.id_of(both), i, both)};
  }
  for (char32_t point = 0; point < characters_.size(); ++point) characters_[point] = tokens.id_of(to_utf8(point));
}

std::int32_t ByteBpe::id_of_character(std::string_view character) const {
  const char32_t point = first_code_point(character).value;
  return point < characters_.size() ? characters_[point] : vocabulary().id_of(character);
}

std::vector<ByteBpe::Symbol> ByteBpe::symbols_of(std::string_view word) const {
  std::vector<Symbol> symbols;
  const auto add = [&](std::int32_t id, std::size_t bytes) {
    const auto place = static_cast<std::int32_t>(symbols.size());
    if (place > 0) symbols.back().after = place;
    symbols.push_back({id, place - 1, -1, static_cast<std::uint32_t>(bytes)});
  };
  std::size_t unknown_bytes = 0;  // of unknown characters that are not yet a symbol
  const auto add_unknown = [&] {
    if (unknown_bytes > 0) add(unknown_, unknown_bytes);
    unknown_bytes = 0;
  };
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view character = rest.substr(0, first_code_point(rest).bytes);
    rest.remove_prefix(character.size());
    const std::int32_t id = id_of_character(character);
    if (id >= 0) {
      add_unknown();
      add(id, character.size());
    } else if (unknown_ >= 0) {
      if (!options_.fuses_unknown) add_unknown();
      unknown_bytes += character.size();
    }
  }
  add_unknown();
  return symbols;
}

const ByteBpe::Merge* ByteBpe::find(std::int32_t first, std::int32_t second) const {
  const auto found = merges_.find(key_of(first, second));
  return found == merges_.end() ? nullptr : &found->second;
}

// Each merge is one step of the queue, so a word of n characters takes O(n log n).
void ByteBpe::merge(std::vector<Symbol>& symbols) const {
  std::vector<Candidate> first_candidates;
  const auto at = [&](std::int32_t place) -> Symbol& { return symbols[static_cast<std::size_t>(place)]; };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    const Merge* found = find(symbols[i].id, symbols[i + 1].id);
    if (found != nullptr) first_candidates.push_back({found->rank, static_cast<std::int32_t>(i), found->merged});
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(first_candidates));
  const auto add = [&](std::int32_t first, std::int32_t second) {
    if (first < 0 || second < 0) return;
    const Merge* found = find(at(first).id, at(second).id);
    if (found != nullptr) queue.push({found->rank, first, found->merged});
  };
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = at(top.place);
    if (left.bytes == 0 || left.after < 0) continue;
    Symbol& right = at(left.after);
    const Merge* found = find(left.id, right.id);
    if (found == nullptr || found->merged != top.merged) continue;
    left.id = top.merged;
    left.bytes += right.bytes;
    left.after = right.after;
    right.bytes = 0;
    if (left.after >= 0) at(left.after).before = top.place;
    add(left.before, top.place);
    add(top.place, left.after);
  }
}

void ByteBpe::split(std::string_view word, std::vector<WordPart>& parts) const {
  if (options_.words_first) {
    if (const std::int32_t id = vocabulary().id_of(word); id >= 0) return parts.push_back({id, 0, word.size()});
  }
  if (word.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(text("tokenizer: a word of ", word.size(), " bytes; BPE takes up to ",
                     std::numeric_limits<std::int32_t>::max()));
  }
  std::vector<Symbol> symbols = symbols_of(word);
  merge(symbols);
  std::size_t begin = 0;
  for (const Symbol& symbol : symbols) {
    if (symbol.bytes == 0) continue;
    parts.push_back({symbol.id, begin, begin + symbol.bytes});
    begin += symbol.bytes;
  }
}

}  // namespace rapt::models
