// The explorer, one HTML file that `make explorer` builds and the package installs: its path, and how results are
// embedded.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rapt::cli {

// A file that the page opens by itself when it starts, as if it had been dropped there.
struct PageFile {
  std::string name;
  std::vector<std::byte> bytes;
};

struct PageResult {
  std::string title;
  std::vector<PageFile> files;
  std::vector<std::string> labels;  // of tokens; may be empty
};

// The page's path: RAPT_EXPLORER, or beside this command. Throws if it is not found, and says what to do.
std::string find_page();
// The page as text, with the result embedded if it has files.
std::string page_with(const PageResult& result);
// Writes the page atomically.
void write_page(const std::string& path, const PageResult& result);

std::string base64(std::span<const std::byte> bytes);

}  // namespace rapt::cli
