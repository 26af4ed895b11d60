#include "cli/files/array_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "cli/exit_code.h"

namespace rapt::cli {
namespace {

constexpr std::size_t kListed = 12;

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t n = 0; n < std::min(names.size(), kListed); ++n) {
    list += fmt::format("{}{}", n == 0 ? "" : ", ", names[n]);
  }
  return names.size() > kListed ? fmt::format("{} and {} more", list, names.size() - kListed) : list;
}

std::vector<std::byte> all_of_stdin(const std::string& option) {
  if (isatty(STDIN_FILENO) != 0) {
    throw UsageError(fmt::format("{} -: standard input is a terminal; pipe an .npy file into it", option));
  }
  std::vector<std::byte> bytes;
  std::vector<std::byte> part(1 << 20);
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), stdin)) {
    bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(count));
  }
  if (std::ferror(stdin) != 0) throw Error(fmt::format("{} -: cannot read standard input", option));
  return bytes;
}

// The requested tensor, or the only one in the file.
std::string chosen_name(const std::string& option, const ArrayName& name, const std::vector<std::string>& names) {
  if (!name.tensor.empty()) {
    if (std::find(names.begin(), names.end(), name.tensor) != names.end()) return name.tensor;
    const std::optional<std::string> near = nearest(name.tensor, names);
    throw Error(
        near ? fmt::format("{}: {} has no tensor \"{}\"; did you mean {}:{}?", option, name.file, name.tensor,
                           name.file, *near)
             : fmt::format("{}: {} has no tensor \"{}\"; it has {}", option, name.file, name.tensor, listed(names)));
  }
  if (names.size() == 1) return names[0];
  throw UsageError(names.empty() ? fmt::format("{}: {} contains no tensors", option, name.file)
                                 : fmt::format("{}: {} contains {} tensors; select one with {}:NAME: {}", option,
                                               name.file, names.size(), name.file, listed(names)));
}

bool is_npy(const std::string& path) {
  std::string start(6, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), 6);
  return start == "\x93NUMPY";
}

}  // namespace

ArrayName array_name(const std::string& text) {
  for (const char* ending : {".safetensors:", ".npz:"}) {
    const std::size_t at = text.rfind(ending);
    if (at == std::string::npos) continue;
    const std::size_t colon = at + std::string_view(ending).size() - 1;
    return {text.substr(0, colon), text.substr(colon + 1)};
  }
  return {text, ""};
}

ConstTensorView ArrayFiles::read(const std::string& option, const std::string& text, const NpyOptions& options) {
  if (text == "-") {
    if (std::exchange(stdin_taken_, true)) throw UsageError(option + " -: standard input can be read only once");
    const std::vector<std::byte> bytes = all_of_stdin(option);
    return keep(read_npy(bytes, "standard input", options));
  }
  const ArrayName name = array_name(text);
  require_file(option, name.file);
  if (name.file.ends_with(".safetensors")) return from_safetensors(option, name);
  if (name.file.ends_with(".npz")) return from_npz(option, name, options);
  try {
    return keep(read_npy(name.file, options));
  } catch (const Error& error) {
    std::string what = error.what();
    if (what.starts_with("npy: ")) what.erase(0, 5);
    const std::size_t advice = what.find("; integers can be read as");  // advice for C++ programs
    if (advice != std::string::npos)
      what = fmt::format("{}; save it as float: x.astype(\"float32\")", what.substr(0, advice));
    if (is_npy(name.file)) throw Error(fmt::format("{}: {}", option, what));
    throw Error(fmt::format("{}: {} (rapt reads .npy, .npz and .safetensors; numpy.save writes .npy)", option, what));
  }
}

const SafetensorsFile& ArrayFiles::safetensors(const std::string& path) {
  std::unique_ptr<SafetensorsFile>& file = files_[path];
  if (file == nullptr) {
    require_file("--model", path);
    file = std::make_unique<SafetensorsFile>(path);
  }
  return *file;
}

ConstTensorView ArrayFiles::keep(NpyArray array) {
  arrays_.push_back(std::make_unique<NpyArray>(std::move(array)));
  return arrays_.back()->view();
}

ConstTensorView ArrayFiles::from_npz(const std::string& option, const ArrayName& name, const NpyOptions& options) {
  const NpzFile file(name.file);
  return keep(file.at(chosen_name(option, name, file.names()), options));
}

ConstTensorView ArrayFiles::from_safetensors(const std::string& option, const ArrayName& name) {
  const SafetensorsFile& file = safetensors(name.file);
  return file.at(chosen_name(option, name, file.names()));
}

namespace {

// The name with the smallest edit distance to `text`, if that is at most `most`.
std::optional<std::string> nearest_within(std::size_t most, std::string_view text,
                                          const std::vector<std::string>& names) {
  std::optional<std::string> best;
  std::size_t least = most + 1;
  for (const std::string& name : names) {
    const std::size_t longer = std::max(name.size(), text.size());
    if (longer > 512 || longer - std::min(name.size(), text.size()) >= least) continue;
    std::vector<std::size_t> row(name.size() + 1);  // one row of the edit-distance table
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < name.size(); ++j) {
        const std::size_t replaced = diagonal + (text[i] == name[j] ? 0 : 1);
        diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = name;
    }
  }
  return best;
}

}  // namespace

std::optional<std::string> nearest(std::string_view text, const std::vector<std::string>& names) {
  return nearest_within(std::max<std::size_t>(2, text.size() / 5), text, names);
}

// The limit depends on the name without directory and extension: many names share those, so short names would look
// similar.
std::optional<std::string> nearest_file(const std::string& path, const std::vector<std::string>& paths) {
  const std::size_t stem = std::filesystem::path(path).stem().string().size();
  return nearest_within(std::max(std::min<std::size_t>(2, (stem + 1) / 2), stem / 5), path, paths);
}

void require_file(const std::string& option, const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    const auto folder = std::filesystem::path(path).parent_path();
    std::vector<std::string> beside;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, unreadable)) {
      beside.push_back((folder / entry.path().filename()).string());
    }
    const std::optional<std::string> near = nearest_file(path, beside);
    throw Error(fmt::format("{}no such file: {}{}", option.empty() ? "" : option + ": ", path,
                            near ? fmt::format("; did you mean {}?", *near) : "; check the path"));
  }
  if (status.type() == std::filesystem::file_type::directory) {
    throw Error(fmt::format("{}{} is a directory; give a file", option.empty() ? "" : option + ": ", path));
  }
}

void check_output(const std::string& option, const std::string& path) {
  if (path == "-") {
    if (isatty(STDOUT_FILENO) != 0) {
      throw UsageError(fmt::format("{} -: cannot write binary data to a terminal; give a file, or use a pipe", option));
    }
    return;
  }
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    throw Error(fmt::format("{}: no such directory: {} (for {}); create it with mkdir -p {}", option, folder.string(),
                            path, folder.string()));
  }
  if (std::filesystem::is_directory(path, error)) {
    throw Error(fmt::format("{}: {} is a directory; give a file", option, path));
  }
}

void write_array(const std::string& path, const ConstTensorView& array) {
  if (path != "-") return write_npy(path, array);
  const std::vector<std::byte> bytes = npy_bytes(array);
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

}  // namespace rapt::cli
