#include "cli/files/inspect.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/files/file_list.h"
#include "cli/files/model_heads.h"
#include "cli/files/statistics.h"
#include "cli/terminal/output.h"
#include "cli/terminal/spinner.h"
#include "cli/terminal/text.h"
#include "rapt/layer_names.h"

namespace rapt::cli {
namespace {

// Statistics read every number; up to this size that takes about a second.
constexpr std::uint64_t kStatisticsUpTo = 256'000'000;

// Quoted for a shell if necessary.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 ||
           std::string_view("._-/:=+,@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// The command that runs a layer; the user replaces N if the number of heads is not known.
std::string command_for(const std::string& file, const FoundLayer& layer, bool alone, std::int64_t heads) {
  std::string command = fmt::format("rapt run --model {}", quoted(file));
  if (!alone) command += fmt::format(" --prefix {}", quoted(layer.prefix));
  command += heads > 0 ? fmt::format(" --heads {}", heads) : " --heads N";
  if (layer.key_size != layer.embed_size || layer.value_size != layer.embed_size) {
    command += " --query q.npy --key k.npy --value v.npy";
  } else {
    command += " --input x.npy";
  }
  return command;
}

std::string numbers_words(const std::vector<std::int64_t>& list) {
  std::string words;
  for (const std::int64_t number : list) words += fmt::format("{}{}", words.empty() ? "" : ", ", number);
  return words;
}

// Models repeat a layer many times, so only the prefix of repeated layers is printed.
bool is_like(const FoundLayer& a, const FoundLayer& b) {
  const auto sizes = [](const FoundLayer& l) {
    return std::tuple(l.family, l.embed_size, l.key_size, l.value_size, l.output_size, l.query_width, l.key_width,
                      l.context_length, l.missing.size());
  };
  return sizes(a) == sizes(b);
}

void print_layer(const std::string& path, const FoundLayer& layer, bool alone, const ModelHeads& stated) {
  const ModelHeads known = heads_of_layer(stated, layer);
  std::string sizes = fmt::format("E {}", layer.embed_size);
  if (layer.key_size != layer.embed_size || layer.value_size != layer.embed_size) {
    sizes += fmt::format(", key {}, value {}", layer.key_size, layer.value_size);
  }
  if (layer.output_size != layer.embed_size) sizes += fmt::format(", output {}", layer.output_size);
  sizes += fmt::format(", q {}, k and v {}", layer.query_width, layer.key_width);
  if (layer.context_length > 0) sizes += fmt::format(", causal mask for {}", layer.context_length);
  std::string text = fmt::format("  {}  {} names: {}\n", layer.prefix.empty() ? "(no prefix)" : layer.prefix,
                                 name_of(layer.family), sizes);
  if (!known.problem.empty()) text += fmt::format("    {}\n", known.problem);
  if (known.heads > 0) {
    text += fmt::format("    {} of size {} ({})\n", counted(known.heads, "head"), layer.query_width / known.heads,
                        known.source());
  } else {
    text += fmt::format("    the number of heads must be given, as the shapes do not determine it; possible: {}\n",
                        numbers_words(layer.possible_heads()));
  }
  for (const std::string& name : layer.missing) text += fmt::format("    missing, zeros are used instead: {}\n", name);
  text += fmt::format("    {}\n", command_for(path, layer, alone, known.heads));
  print(text);
}

nlohmann::ordered_json layer_json(const std::string& path, const FoundLayer& layer, bool alone,
                                  const ModelHeads& stated) {
  const ModelHeads known = heads_of_layer(stated, layer);
  const auto or_null = [](bool is_known, const auto& value) -> nlohmann::ordered_json {
    return is_known ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const TensorRole& use : layer.tensors) tensors.push_back({{"tensor", use.tensor}, {"role", use.role}});
  return {{"prefix", layer.prefix},
          {"names", name_of(layer.family)},
          {"embed_size", layer.embed_size},
          {"key_size", layer.key_size},
          {"value_size", layer.value_size},
          {"output_size", layer.output_size},
          {"query_width", layer.query_width},
          {"key_width", layer.key_width},
          {"context_length", layer.context_length},
          {"possible_heads", layer.possible_heads()},
          {"heads", or_null(known.heads > 0, known.heads)},
          {"heads_from", or_null(known.heads > 0, known.source())},
          {"heads_problem", or_null(!known.problem.empty(), known.problem)},
          {"tensors", tensors},
          {"missing", layer.missing},
          {"left_over", layer.left_over},
          {"run", command_for(path, layer, alone, known.heads)}};
}

std::vector<std::optional<Statistics>> all_statistics(TensorFile& file, bool wanted) {
  std::vector<std::optional<Statistics>> list(file.entries().size());
  if (!wanted) return list;
  const Spinner spinner("reading");
  for (std::size_t n = 0; n < list.size(); ++n) {
    const FileEntry& entry = file.entries()[n];
    if (entry.readable()) list[n] = statistics_of(file.read(entry));
  }
  return list;
}

// Remarks: non-finite numbers, and tensors that cannot be read.
std::string remarks(const FileEntry& entry, const std::optional<Statistics>& statistics) {
  if (!entry.readable()) return "  (unsupported type or rank)";
  std::string words;
  if (statistics && statistics->nans > 0) words += fmt::format("  {} NaN", statistics->nans);
  if (statistics && statistics->infinities > 0) words += fmt::format("  {} infinite", statistics->infinities);
  return words;
}

// Columns are only as wide as their contents, so most files fit in a terminal of 100 columns.
void print_tensors(const std::vector<FileEntry>& entries, const std::vector<std::optional<Statistics>>& stats) {
  constexpr std::size_t kLeft = 3;  // left-aligned columns
  std::vector<std::vector<std::string>> rows = {{"name", "shape", "type", "size"}};
  if (std::any_of(stats.begin(), stats.end(), [](const auto& s) { return s.has_value(); })) {
    rows[0].insert(rows[0].end(), {"min", "max", "mean", "std"});
  }
  for (std::size_t n = 0; n < entries.size(); ++n) {
    const FileEntry& entry = entries[n];
    rows.push_back({entry.name, shape_words(entry.shape), entry.type,
                    entry.bytes == 0 && !entry.dtype ? "?" : bytes_words(entry.bytes)});
    if (!stats[n]) continue;
    for (const double x : {stats[n]->min, stats[n]->max, stats[n]->mean, stats[n]->deviation}) {
      rows.back().push_back(fmt::format("{:.3g}", x));
    }
  }
  std::vector<int> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns(row[c]));
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      line += "  " + (c < kLeft ? pad_right(rows[r][c], widths[c]) : pad_left(rows[r][c], widths[c]));
    }
    print(line + (r > 0 ? remarks(entries[r - 1], stats[r - 1]) : "") + "\n");
  }
}

void print_text(const std::string& path, const TensorFile& file, const std::vector<std::optional<Statistics>>& stats,
                const std::string& without) {
  const std::vector<FileEntry>& entries = file.entries();
  print(fmt::format("{}: {}, {} tensor{}\n", path, bytes_words(file.bytes()), entries.size(),
                    entries.size() == 1 ? "" : "s"));
  for (const auto& [key, value] : file.metadata()) print(fmt::format("  {} = {}\n", key, clip(value, 80)));
  print("\n");
  print_tensors(entries, stats);
  if (!without.empty()) print(fmt::format("\n{}\n", without));

  const std::vector<FoundLayer> layers = file.layers();
  if (file.kind() == TensorFile::Kind::npy) return;
  print(layers.empty() ? "\nno attention layer with tensor names that rapt recognizes\n"
                       : fmt::format("\nattention layer{}\n", layers.size() == 1 ? "" : "s"));
  const ModelHeads stated = stated_heads(path, file.metadata());
  for (std::size_t n = 0; n < layers.size(); ++n) {
    if (n > 0 && is_like(layers[n - 1], layers[n])) {
      print(fmt::format("  {}  same as the previous one\n", layers[n].prefix));
    } else {
      print_layer(path, layers[n], layers.size() == 1, stated);
    }
  }
}

void print_json(const std::string& path, const TensorFile& file, const std::vector<std::optional<Statistics>>& stats) {
  nlohmann::ordered_json json = {{"schema", 1}, {"file", path}, {"bytes", file.bytes()}};
  json["metadata"] = nlohmann::ordered_json::object();
  for (const auto& [key, value] : file.metadata()) json["metadata"][key] = value;
  json["tensors"] = nlohmann::ordered_json::array();
  for (std::size_t n = 0; n < stats.size(); ++n) {
    const FileEntry& entry = file.entries()[n];
    nlohmann::ordered_json one = {
        {"name", entry.name}, {"shape", entry.shape}, {"type", entry.type}, {"bytes", entry.bytes}};
    if (stats[n]) one["statistics"] = statistics_json(*stats[n]);
    json["tensors"].push_back(std::move(one));
  }
  const std::vector<FoundLayer> layers = file.layers();
  const ModelHeads stated = stated_heads(path, file.metadata());
  json["layers"] = nlohmann::ordered_json::array();
  for (const FoundLayer& layer : layers) {
    json["layers"].push_back(layer_json(path, layer, layers.size() == 1, stated));
  }
  print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

Command add_inspect(Command& rapt, InspectOptions& options) {
  Command command = rapt.below("inspect", "Show the tensors of a file, and the attention layers among them");
  command.place("file", "FILE", "A .safetensors, .npz or .npy file",
                [&](const std::string& text) { options.file = text; });
  command.flag("--stats", options.statistics,
               fmt::format("Statistics of every tensor (default for files up to {})", bytes_words(kStatisticsUpTo)));
  command.flag("--no-stats", options.no_statistics, "No statistics; read only the header");
  command.flag("--json", options.json, "Print the result as JSON");
  return command;
}

ExitCode run_inspect(const InspectOptions& options) {
  if (options.statistics && options.no_statistics) throw UsageError("--stats and --no-stats cannot be combined");
  TensorFile file(options.file);
  const bool small = file.bytes() <= kStatisticsUpTo;
  const bool wanted = !options.no_statistics && (options.statistics || small);
  const std::vector<std::optional<Statistics>> stats = all_statistics(file, wanted);
  if (options.json) {
    print_json(options.file, file, stats);
  } else {
    print_text(options.file, file, stats,
               wanted || options.no_statistics
                   ? ""
                   : fmt::format("no statistics: the file is larger than {}; --stats reads all of it",
                                 bytes_words(kStatisticsUpTo)));
  }
  return ExitCode::good;
}

}  // namespace rapt::cli
