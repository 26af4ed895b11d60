#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/check.h"
#include "models/files.h"
#include "models/tokenizer.h"
#include "rapt/error.h"

namespace rapt::fuzz {
namespace {

using models::ModelFiles;
using models::Token;
using models::Tokenizer;

constexpr std::array<std::string_view, 5> kTexts = {
    "", "The animal didn't cross, because it was too tired.",
    "Caf\u00e9 e\u0301\u0323 \u0130\u212b \uac00\u1100\u1161 \u4e2d\u6587 \U0001F469\u200d\U0001F4BB",
    "  a\t\r\n\u00a0\u3000 [MASK]<mask> <|endoftext|> b  ", "aaaaaaaabababab##a 0123\u0968"};

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

void check_text(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokenizer.encode(text)) {
    require(token.id >= 0 && token.id < tokenizer.size(), "an id is past the vocabulary");
    require(token.begin <= token.end && token.end <= text.size(),
            "a token stands for bytes that the text does not have");
    require(token.text == tokenizer.token(token.id).text, "a token has another text than its id");
    ids.push_back(token.id);
  }
  require(tokenizer.encode(text, false).size() <= ids.size(), "special tokens take others away");
  require(tokenizer.decode(ids) == tokenizer.decode(ids), "decoding is not deterministic");
}

}  // namespace

void check_tokenizer(std::span<const std::byte> bytes) {
  ModelFiles files;
  files.set_where("fuzz");
  const std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    const std::string_view part = std::string_view(all).substr(begin, end - begin);
    const std::size_t line = std::min(part.find('\n'), part.size());
    const std::string name(part.substr(0, line));
    const std::string_view content = part.substr(std::min(line + 1, part.size()));
    if (name.ends_with(".json") || name.ends_with(".txt")) files.add(name, std::as_bytes(std::span(content)));
    begin = end + 1;
  }
  try {
    const Tokenizer tokenizer = Tokenizer::read(files);
    for (const std::string_view text : kTexts) check_text(tokenizer, text);
  } catch (const Error& error) {
    require(std::strlen(error.what()) > 0 && std::strlen(error.what()) < 2000, "an error has no words, or too many");
  }
}

}  // namespace rapt::fuzz
