// The tokens of a model and their ids.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::models {

struct VocabularyEntry {
  std::string token;
  std::int32_t id = 0;
};

class Vocabulary {
 public:
  // No vocabulary in use comes near these; they bound what a file can claim.
  static constexpr std::int64_t kMostIds = std::int64_t{1} << 24;
  static constexpr std::size_t kMostTokenBytes = 4096;

  struct Match {
    std::int32_t id = -1;   // -1: none
    std::size_t bytes = 0;  // of the text that it matches
  };

  Vocabulary() : Vocabulary(std::vector<VocabularyEntry>{}, "") {}
  // Throws FileError if a token is too long, or if a token or an id appears twice; `where` starts the message. An id is
  // not negative and below kMostIds: the caller has checked it.
  Vocabulary(std::vector<VocabularyEntry> entries, const std::string& where);

  std::int32_t id_of(std::string_view token) const;      // -1 if there is none
  const std::string* token_of(std::int32_t id) const;    // nullptr if there is none
  Match longest_prefix_of(std::string_view text) const;  // the longest token that the text starts with, not ""
  std::size_t count() const { return entries_.size(); }
  std::int32_t largest_id() const;  // -1 if it is empty
  const std::vector<VocabularyEntry>& entries() const { return entries_; }

 private:
  std::vector<VocabularyEntry> entries_;      // in the order of their bytes
  std::vector<std::uint32_t> by_id_;          // places in entries_, in the order of their ids
  std::array<std::uint32_t, 257> by_byte_{};  // where the entries that start with each byte begin, and their end
};

}  // namespace rapt::models
