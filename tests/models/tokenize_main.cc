// Prints what a tokenizer makes of texts, as JSON, for tests beside other libraries.
//   tokenize FOLDER [decoded] < texts    one line for each text; texts are separated by zero bytes
// A line has the tokens with and without special ones, and the decoded text: {"ids":[…],"offsets":[[0,3],…],
// "texts":[…],"special":[…],"plain":[…],"decoded":"…"}. Offsets are bytes. With "decoded", it has only that. For an
// error: {"error":"…"}.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/files.h"
#include "models/tokenizer.h"

namespace {

using Json = nlohmann::json;
using rapt::models::ModelFiles;
using rapt::models::Token;
using rapt::models::Tokenizer;

std::string content_of(std::istream& stream) {
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

ModelFiles files_of(const std::string& folder) {
  ModelFiles files;
  files.set_where(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string suffix = entry.path().extension().string();
    if (suffix != ".json" && suffix != ".txt") continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string content = content_of(stream);
    files.add(entry.path().filename().string(), std::as_bytes(std::span(content)));
  }
  return files;
}

Json line_of(const Tokenizer& tokenizer, std::string_view text, bool only_decoded) {
  Json line;
  std::vector<std::int32_t> ids, plain;
  if (only_decoded) {
    for (const Token& token : tokenizer.encode(text)) ids.push_back(token.id);
    return {{"decoded", tokenizer.decode(ids)}};
  }
  for (const char* key : {"offsets", "texts", "special"}) line[key] = Json::array();
  for (const Token& token : tokenizer.encode(text)) {
    ids.push_back(token.id);
    line["offsets"].push_back({token.begin, token.end});
    line["texts"].push_back(token.text);
    line["special"].push_back(token.special);
  }
  for (const Token& token : tokenizer.encode(text, false)) plain.push_back(token.id);
  line["ids"] = ids;
  line["plain"] = plain;
  line["decoded"] = tokenizer.decode(ids);
  return line;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::cerr << "usage: tokenize FOLDER [decoded] < texts\n";
    return 2;
  }
  try {
    const Tokenizer tokenizer = Tokenizer::read(files_of(arguments[1]));
    const std::string texts = content_of(std::cin);
    for (std::size_t begin = 0; begin <= texts.size();) {
      const std::size_t end = std::min(texts.find('\0', begin), texts.size());
      std::cout << line_of(tokenizer, std::string_view(texts).substr(begin, end - begin), count == 3) << '\n';
      begin = end + 1;
    }
  } catch (const std::exception& error) {
    std::cout << Json{{"error", error.what()}} << '\n';
    return 1;
  }
  return 0;
}
