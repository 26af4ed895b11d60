#include "cli/files/convert.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/error_words.h"
#include "cli/files/array_files.h"
#include "cli/files/file_list.h"
#include "cli/files/file_options.h"
#include "cli/files/statistics.h"
#include "cli/terminal/output.h"
#include "cli/terminal/spinner.h"
#include "rapt/multi_head_attention.h"
#include "rapt/npy.h"
#include "rapt/safetensors.h"

namespace rapt::cli {
namespace {

constexpr std::array<std::pair<std::string_view, bool>, 2> kProjections{{{"packed", true}, {"separate", false}}};

std::string family_names() {
  std::string names;
  for (const NameFamily family : name_families())
    names += fmt::format("{}{}", names.empty() ? "" : "|", name_of(family));
  return names;
}

// The tensors to write, and the memory of those that are not views into the file.
struct Cargo {
  std::vector<NamedTensor> tensors;
  std::vector<Tensor> memory;
  std::vector<std::string> left_out;  // of types that rapt does not support
  std::vector<std::string> layers;    // "encoder.0.attn.: W_q to torch"
};

bool is_under(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) && (prefix.empty() || name.size() == prefix.size() || prefix.back() == '.' ||
                                      prefix.back() == '/' || name[prefix.size()] == '.' || name[prefix.size()] == '/');
}

// Collects the selected tensors of the file, under their original names.
void take_tensors(TensorFile& file, const ConvertOptions& options, Cargo& cargo) {
  std::vector<std::string> names;
  for (const FileEntry& entry : file.entries()) {
    names.push_back(entry.name);
    if (!is_under(entry.name, options.prefix)) continue;
    if (!entry.readable()) {
      cargo.left_out.push_back(fmt::format("{} ({})", entry.name, entry.type));
      continue;
    }
    ConstTensorView view = file.read(entry);
    if (file.kind() != TensorFile::Kind::safetensors) {
      cargo.memory.push_back(Tensor::copy_of(view));
      view = cargo.memory.back().view();
    }
    cargo.tensors.push_back({entry.name.empty() ? "array" : entry.name, view});
  }
  if (!cargo.tensors.empty() || !cargo.left_out.empty()) return;
  const std::optional<std::string> near = nearest(options.prefix, names);
  throw Error(fmt::format("{} has no tensor under \"{}\"{} (rapt inspect {} lists them)", options.in, options.prefix,
                          near ? fmt::format("; did you mean \"{}\"?", *near) : "", options.in));
}

// The tensors of the layer under their new names. Rewords errors for the command line.
StateDict named_anew(const MultiHeadAttention& layer, const SaveOptions& options) {
  try {
    return layer.state_dict(options);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {} (--names torch supports both values of --projections)",
                            options.prefix.empty() ? "the layer" : options.prefix, without_function(error)));
  }
}

// Each layer under its new names, at the position of its first tensor.
void rename_layers(const ConvertOptions& options, Cargo& cargo) {
  const std::vector<FoundLayer> layers = find_attention_layers(cargo.tensors);
  if (layers.empty()) {
    throw Error(fmt::format(
        "{} has no attention layer with tensor names that rapt recognizes{}, so --names and --projections do not "
        "apply; rapt inspect {} lists the tensors",
        options.in, options.prefix.empty() ? "" : fmt::format(" under \"{}\"", options.prefix), options.in));
  }
  for (const FoundLayer& layer : layers) {
    const NameFamily family = options.names.value_or(layer.family);
    // The number of heads affects neither names nor values.
    LoadedLayer loaded =
        MultiHeadAttention::load(cargo.tensors, {.prefix = layer.prefix, .heads = layer.possible_heads().front()});
    const StateDict state =
        named_anew(loaded.layer, {.family = family, .prefix = layer.prefix, .packed = options.packed});
    std::set<std::string> taken;
    for (const TensorRole& use : loaded.found.tensors) taken.insert(use.tensor);
    std::vector<NamedTensor> all;
    bool placed = false;
    for (NamedTensor& tensor : cargo.tensors) {
      if (!taken.contains(tensor.name)) {
        all.push_back(std::move(tensor));
      } else if (!std::exchange(placed, true)) {
        for (const NamedTensor& renamed : state.tensors) {  // they are views into a temporary layer
          cargo.memory.push_back(Tensor::copy_of(renamed.value));
          all.push_back({renamed.name, cargo.memory.back().view()});
        }
      }
    }
    cargo.tensors = std::move(all);
    cargo.layers.push_back(fmt::format("{}: {} to {}", layer.prefix.empty() ? "the layer" : layer.prefix,
                                       name_of(layer.family), name_of(family)));
  }
}

void round_to(DType dtype, Cargo& cargo) {
  for (NamedTensor& tensor : cargo.tensors) {
    if (!is_float(tensor.value.dtype()) || tensor.value.dtype() == dtype) continue;
    cargo.memory.push_back(Tensor::copy_of(tensor.value, dtype));
    tensor.value = cargo.memory.back().view();
  }
}

void write(const ConvertOptions& options, const TensorFile& file, const Cargo& cargo) {
  switch (kind_of(options.out)) {
    case TensorFile::Kind::safetensors: return write_safetensors(options.out, cargo.tensors, file.metadata());
    case TensorFile::Kind::npz: return write_npz(options.out, cargo.tensors, {.compress = options.compress});
    case TensorFile::Kind::npy: break;
  }
  if (cargo.tensors.size() != 1) {
    throw UsageError(
        fmt::format("{} can hold only one array, and there are {}; write an .npz, or select one with --prefix",
                    options.out, cargo.tensors.size()));
  }
  write_npy(options.out, cargo.tensors[0].value);
}

void report(const ConvertOptions& options, const Cargo& cargo) {
  for (const std::string& name : cargo.left_out) {
    complain(fmt::format("skipped {}: unsupported type", name));
  }
  if (options.json) {
    nlohmann::ordered_json json = {{"schema", 1}, {"in", options.in}, {"out", options.out}};
    json["layers"] = cargo.layers;
    json["left_out"] = cargo.left_out;
    json["written"] = nlohmann::ordered_json::array();
    for (const NamedTensor& tensor : cargo.tensors) {
      json["written"].push_back({{"name", tensor.name},
                                 {"shape", shape_json(tensor.value.shape())},
                                 {"dtype", name_of(tensor.value.dtype())}});
    }
    return print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  for (const std::string& layer : cargo.layers) print(layer + "\n");
  constexpr std::size_t kShown = 24;
  print(
      fmt::format("wrote {}: {} tensor{}\n", options.out, cargo.tensors.size(), cargo.tensors.size() == 1 ? "" : "s"));
  for (std::size_t n = 0; n < std::min(cargo.tensors.size(), kShown); ++n) {
    const NamedTensor& tensor = cargo.tensors[n];
    print(fmt::format("  {} {} {}\n", tensor.name, to_string(tensor.value.shape()), name_of(tensor.value.dtype())));
  }
  if (cargo.tensors.size() > kShown) print(fmt::format("  and {} more\n", cargo.tensors.size() - kShown));
}

}  // namespace

Command add_convert(Command& rapt, ConvertOptions& options) {
  Command command = rapt.below("convert", "Convert tensor files to another format, naming scheme or element type");
  command.place("in", "IN", "A .safetensors, .npz or .npy file", [&](const std::string& text) { options.in = text; });
  command.place("out", "OUT", "Output file: .safetensors, .npz, or .npy for a single tensor",
                [&](const std::string& text) { options.out = text; });
  command.one("--names", family_names(), "Rename the tensors of every attention layer to this scheme",
              [&](const std::string& text) {
                options.names = name_family(text);
                if (!options.names) {
                  throw BadValue("--names", fmt::format("'{}' is not one of {}", text, family_names()));
                }
              });
  command.one("--projections", "packed|separate", "Store q, k and v of a layer in one tensor, or separately",
              [&](const std::string& text) { options.packed = chosen("--projections", text, kProjections); });
  add_dtype(command, options.dtype, "Convert floating-point tensors to this type");
  command.text("--prefix", "TEXT", options.prefix, "Only tensors under this prefix");
  command.flag("--compress", options.compress, "Compress the .npz");
  command.flag("--json", options.json, "Print what was written as JSON");
  command.footer(
      "Tensors of unsupported types, such as integers, are skipped with a message.\n"
      "  rapt convert model.safetensors model.npz\n"
      "  rapt convert model.safetensors torch.safetensors --names torch --dtype bf16");
  return command;
}

ExitCode run_convert(const ConvertOptions& options) {
  kind_of(options.out);
  check_output("OUT", options.out);
  TensorFile file(options.in);
  Cargo cargo;
  {
    const Spinner spinner("converting");
    take_tensors(file, options, cargo);
    if (options.names || options.packed) rename_layers(options, cargo);
    if (options.dtype) round_to(*options.dtype, cargo);
    write(options, file, cargo);
  }
  report(options, cargo);
  return ExitCode::good;
}

}  // namespace rapt::cli
