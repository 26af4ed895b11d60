#include "cli/files/model_heads.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/terminal/text.h"
#include "rapt/error.h"

namespace rapt::cli {
namespace {

namespace fs = std::filesystem;

// The names of the number in the configurations of BERT and Llama, GPT-2, GPT-Neo and T5, DistilBERT.
constexpr std::array<const char*, 4> kHeads{"num_attention_heads", "n_head", "num_heads", "n_heads"};
constexpr std::uintmax_t kMostBytes = 16'000'000;  // a configuration with 20,000 labels has 2 MB

nlohmann::json parsed(const std::string& path) {
  std::error_code error;
  if (const std::uintmax_t bytes = fs::file_size(path, error); error || bytes > kMostBytes) {
    throw Error(error ? "it cannot be read" : fmt::format("it is larger than {} MB", kMostBytes / 1'000'000));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw Error("it cannot be read");
  nlohmann::json config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (config.is_discarded()) throw Error("it is not valid JSON");
  if (!config.is_object()) throw Error("it is not a JSON object");
  return config;
}

// The value of a key; 0 if it is absent or null.
std::int64_t count_in(const nlohmann::json& config, const char* key) {
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return 0;
  if (at->is_number_unsigned()) {
    const auto count = at->get<std::uint64_t>();
    if (count > 0 && count <= static_cast<std::uint64_t>(kMostWhole)) return static_cast<std::int64_t>(count);
  }
  const std::string value = at->is_structured() ? std::string("an ") + at->type_name()
                                                : at->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  throw Error(fmt::format("{} is {}; expected a positive whole number", key, clip(value, 40)));
}

ModelHeads read_config(const std::string& path) {
  const nlohmann::json config = parsed(path);
  ModelHeads stated;
  stated.place = path;
  for (const char* key : kHeads) {
    const std::int64_t count = count_in(config, key);
    if (count == 0) continue;
    if (stated.heads != 0 && stated.heads != count) {
      throw Error(fmt::format("{} is {}, but {} is {}", stated.key, stated.heads, key, count));
    }
    stated.heads = count;
    if (stated.key.empty()) stated.key = key;
  }
  if (stated.heads == 0) {
    throw Error(
        fmt::format("it has no number of heads ({}, {}, {} or {})", kHeads[0], kHeads[1], kHeads[2], kHeads[3]));
  }
  stated.kv_heads = count_in(config, kKvHeadsKey);
  return stated;
}

ModelHeads unusable(const std::string& place, const std::string& why) {
  ModelHeads stated;
  stated.place = place;
  stated.problem = fmt::format("{} is not used: {}", place, why);
  return stated;
}

}  // namespace

ModelHeads stated_heads(const std::string& model, const std::map<std::string, std::string>& metadata) {
  if (const auto at = metadata.find("rapt.heads"); at != metadata.end()) {
    ModelHeads stated;
    stated.key = at->first;
    stated.place = "the metadata of the file";
    const char* last = at->second.data() + at->second.size();
    const auto [end, error] = std::from_chars(at->second.data(), last, stated.heads);
    if (error == std::errc() && end == last && stated.heads > 0) return stated;
  }
  const std::string path = (fs::path(model).parent_path() / "config.json").string();
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  try {
    return read_config(path);
  } catch (const Error& bad) {
    return unusable(path, bad.what());
  }
}

ModelHeads heads_of_layer(const ModelHeads& stated, const FoundLayer& layer) {
  if (stated.heads == 0) return stated;
  const std::vector<std::int64_t> possible = layer.possible_heads();
  if (std::find(possible.begin(), possible.end(), stated.heads) == possible.end()) {
    return unusable(stated.place, fmt::format("{} is {}, which does not fit a query width of {} and a key width of {}",
                                              stated.key, stated.heads, layer.query_width, layer.key_width));
  }
  const std::int64_t size = layer.query_width / stated.heads, kv_heads = layer.key_width / size;
  if (stated.kv_heads != 0 && stated.kv_heads != kv_heads) {
    return unusable(stated.place, fmt::format("{} is {}, but with {} of size {}, a key width of {} is {}", kKvHeadsKey,
                                              stated.kv_heads, counted(stated.heads, "head"), size, layer.key_width,
                                              counted(kv_heads, "head")));
  }
  return stated;
}

}  // namespace rapt::cli
