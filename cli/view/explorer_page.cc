#include "cli/view/explorer_page.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "rapt/error.h"

namespace rapt::cli {
namespace {

namespace fs = std::filesystem;

// The placeholder for a result in the page.
constexpr std::string_view kPlace = "<!--RESULT-->";
// Beyond this size, browsers take seconds to parse the page.
constexpr std::size_t kMostBytes = 96'000'000;

fs::path this_program() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : path;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) throw Error(fmt::format("{}: cannot be read", path));
  return text.str();
}

// JSON inside a script element; "<" is escaped so that it cannot end the element.
std::string result_element(const PageResult& result) {
  nlohmann::ordered_json json = {{"title", result.title}, {"files", nlohmann::ordered_json::array()}};
  for (const PageFile& file : result.files)
    json["files"].push_back({{"name", file.name}, {"base64", base64(file.bytes)}});
  if (!result.labels.empty()) json["labels"] = result.labels;
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return fmt::format(R"(<script type="application/json" id="result">{}</script>)", text);
}

}  // namespace

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t n = 0; n < bytes.size(); n += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (n + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[n + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += n + k > bytes.size() ? '=' : kLetters[group >> (18U - 6U * static_cast<unsigned>(k)) & 63U];
    }
  }
  return text;
}

std::string find_page() {
  if (const char* named = std::getenv("RAPT_EXPLORER"); named != nullptr && *named != '\0') return named;
  const fs::path here = this_program().parent_path();
  // The installed page, or the page in the build folder of this command.
  const std::array<fs::path, 2> places{here / "../share/rapt/explorer.html", here / "../explorer/rapt.html"};
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::is_regular_file(place, error)) return fs::weakly_canonical(place).string();
  }
  throw Error(
      "the explorer page was not found; build it with `make explorer` in rapt's source tree, or set RAPT_EXPLORER to "
      "its path");
}

std::string page_with(const PageResult& result) {
  const std::string path = find_page();
  std::string page = text_of(path);
  if (result.files.empty()) return page;
  std::size_t bytes = 0;
  for (const PageFile& file : result.files) bytes += file.bytes.size();
  if (bytes > kMostBytes) {
    throw Error(
        fmt::format("the page can embed at most {} MB, and the files have {} MB; open the page with rapt view and drop "
                    "the files into it",
                    kMostBytes / 1'000'000, bytes / 1'000'000));
  }
  const std::size_t place = page.find(kPlace);
  if (place == std::string::npos)
    throw Error(fmt::format("{}: not a page of the rapt explorer: the placeholder for results is missing", path));
  page.replace(place, kPlace.size(), result_element(result));
  return page;
}

void write_page(const std::string& path, const PageResult& result) {
  const std::string page = page_with(result);
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << page;
  file.close();
  if (!file || std::rename(part.c_str(), path.c_str()) != 0) {
    std::remove(part.c_str());
    throw Error(fmt::format("{}: cannot be written", path));
  }
}

}  // namespace rapt::cli
