#include "cli/view/view.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/files/array_files.h"
#include "cli/terminal/output.h"
#include "cli/view/explorer_page.h"
#include "rapt/error.h"

namespace rapt::cli {
namespace {

// As the page decides it, without regard to case (explorer/data/session.mjs).
std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return ending;
}

// Arrays are what the page shows; names of tokens and a configuration are about them.
bool has_arrays(const std::string& path) {
  constexpr std::array<std::string_view, 3> kArrays{".npy", ".npz", ".safetensors"};
  return std::find(kArrays.begin(), kArrays.end(), ending_of(path)) != kArrays.end();
}

void require_known_kind(const std::string& path) {
  if (has_arrays(path) || ending_of(path) == ".txt" || ending_of(path) == ".json") return;
  throw UsageError(fmt::format(
      "--file: {}: unknown file extension; expected .npy, .npz, .safetensors, .txt (names of the tokens) or "
      ".json (config.json of a model)",
      path));
}

PageFile read_whole(const std::string& path) {
  require_file("", path);
  require_known_kind(path);
  std::ifstream file(path, std::ios::binary);
  PageFile read{.name = std::filesystem::path(path).filename().string(), .bytes = {}};
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw Error(fmt::format("{}: cannot be read", path));
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  read.bytes.assign(first, first + text.size());
  return read;
}

bool has_screen() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return true;
  }
  return false;
}

// Whether a browser was started. Its output is discarded.
bool open_in_browser(const std::string& path) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  }
  std::string program = "xdg-open", argument = path;
  std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0;
}

// Writes the page with the files embedded to a new private folder. It is not deleted: the browser reads it later.
std::string write_temporary(const PageResult& result) {
  std::string folder = (std::filesystem::temp_directory_path() / "rapt-view-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw Error(fmt::format("view: cannot create a folder {}", folder));
  std::string path = (std::filesystem::path(folder) / "rapt.html").string();
  write_page(path, result);
  return path;
}

}  // namespace

Command add_view(Command& rapt, ViewOptions& options) {
  Command command = rapt.below("view", "Open the explorer: a page that shows attention step by step, on your own data");
  command.many("--file", "FILE",
               "Load this .npy, .npz or .safetensors file, .txt with the tokens, or config.json; can be repeated",
               [&](const std::vector<std::string>& files) { options.files = files; });
  command.text("--out", "FILE", options.out, "Write the page to FILE instead of opening it");
  command.footer(
      "The page is one file and needs no network. Its path is printed; with a display, it opens in a browser.\n"
      "  rapt view\n"
      "  rapt view --file weights.npy --file tokens.txt --out weights.html");
  return command;
}

ExitCode run_view(const ViewOptions& options) {
  PageResult result;
  for (const std::string& path : options.files) result.files.push_back(read_whole(path));
  if (!options.files.empty()) {
    auto named = std::find_if(options.files.begin(), options.files.end(), has_arrays);
    if (named == options.files.end()) named = options.files.begin();
    result.title = std::filesystem::path(*named).filename().string();
  }
  if (!options.out.empty()) {
    check_output("--out", options.out);
    write_page(options.out, result);
    fmt::print(stderr, "wrote {}: open it in a browser\n", options.out);
    return ExitCode::good;
  }
  const std::string path = result.files.empty() ? find_page() : write_temporary(result);
  print(fmt::format("{}\n", path));
  if (!has_screen() || !open_in_browser(path)) fmt::print(stderr, "open this file in a browser\n");
  return ExitCode::good;
}

}  // namespace rapt::cli
