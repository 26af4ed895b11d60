// Loads layers from files: finds the tensors that belong together and copies them into the parameters of a layer.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "attention/checks.h"
#include "core/elements.h"
#include "nn/names.h"
#include "nn/parameters.h"
#include "rapt/multi_head_attention.h"
#include "rapt/npy.h"

namespace rapt {

namespace {

using nn::Candidate;
using nn::Listed;
using nn::Role;

constexpr const char* kLoad = "MultiHeadAttention::load";
constexpr const char* kHeads = "rapt.heads";  // a metadata key that save writes

// A source for load: names and shapes are available at once, data on demand.
struct Source {
  std::string name;  // of the file; "" for tensors in memory
  std::vector<Listed> list;
  std::function<ConstTensorView(std::size_t)> read;
  std::int64_t heads = 0;  // as noted in the file; 0: not noted

  std::string words() const { return name.empty() ? "the list" : name; }
};

std::vector<Listed> listed(const std::vector<NamedTensor>& tensors) {
  std::vector<Listed> list;
  for (const NamedTensor& tensor : tensors) {
    list.push_back({tensor.name, {tensor.value.shape().begin(), tensor.value.shape().end()}, true});
  }
  return list;
}

std::vector<Listed> listed(const SafetensorsFile& file) {
  std::vector<Listed> list;
  for (const SafetensorsEntry& entry : file.entries()) {
    list.push_back({entry.name, entry.shape, entry.dtype.has_value() && entry.shape.size() <= Dims::kMaxRank});
  }
  return list;
}

std::vector<FoundLayer> good_layers(const std::vector<Listed>& list) {
  std::vector<FoundLayer> layers;
  for (Candidate& candidate : nn::find_candidates(list)) {
    if (candidate.problem.empty()) layers.push_back(std::move(candidate.layer));
  }
  return layers;
}

// The first few names, formatted.
template <class List, class Words>
std::string few(const List& list, const Words& words) {
  constexpr std::size_t kShown = 12;
  std::string all;
  for (std::size_t n = 0; n < std::min(list.size(), kShown); ++n) {
    all += text(n == 0 ? "" : ", ", "\"", words(list[n]), "\"");
  }
  return list.size() > kShown ? text(all, " and ", list.size() - kShown, " more") : all;
}

// Whether `layer` is under the requested prefix: "encoder" includes "encoder.layers.0.self_attn.".
bool is_under(const std::string& layer, const std::string& asked) {
  if (!layer.starts_with(asked)) return false;
  return asked.empty() || layer.size() == asked.size() || asked.back() == '.' || asked.back() == '/' ||
         layer[asked.size()] == '.' || layer[asked.size()] == '/';
}

Candidate chosen(const Source& source, const std::string& asked) {
  const Checks checks(kLoad);
  std::vector<Candidate> good, under, broken;
  for (Candidate& candidate : nn::find_candidates(source.list)) {
    const bool here = is_under(candidate.layer.prefix, asked);
    if (!candidate.problem.empty()) {
      if (here) broken.push_back(std::move(candidate));
      continue;
    }
    const std::string& prefix = candidate.layer.prefix;
    if (prefix == asked || (!asked.empty() && (prefix == asked + "." || prefix == asked + "/"))) return candidate;
    if (here) under.push_back(candidate);
    good.push_back(std::move(candidate));
  }
  const auto prefix_of = [](const Candidate& candidate) { return candidate.layer.prefix; };
  if (under.size() == 1) return std::move(under[0]);
  checks.require(under.size() < 2, source.words(), " has ", under.size(), " attention layers",
                 asked.empty() ? "" : text(" under \"", asked, "\""),
                 "; choose one with prefix: ", few(under, prefix_of));
  if (!broken.empty()) {
    checks.fail(source.words(), " has an incomplete attention layer under \"", broken[0].layer.prefix,
                "\": ", broken[0].problem);
  }
  checks.require(good.empty(), source.words(), " has no attention layer under \"", asked, "\"; its layers start with ",
                 few(good, prefix_of));
  checks.fail(
      source.words(),
      " has no attention layer with tensor names that rapt recognizes (in_proj_weight, W_q, W_query, q_linear, ",
      "wq, q_proj, query, to_q, qkv, c_attn); it has ",
      source.list.empty() ? "no tensors" : few(source.list, [](const Listed& l) { return l.name; }));
}

// A causal mask: zero up to the diagonal and nonzero past it, or the reverse.
bool is_causal(const ConstTensorView& mask) {
  if (!is_float(mask.dtype()) && mask.dtype() != DType::boolean) return false;
  ConstTensorView plane = mask;
  while (plane.rank() > 2) plane = plane.select(0, 0);
  const auto is_set = [&](std::int64_t i, std::int64_t j) {
    return load(plane.data(), plane.dtype(), i * plane.stride(0) + j * plane.stride(1)) != 0.0;
  };
  const bool kept_is_set = is_set(0, 0);
  for (std::int64_t i = 0; i < plane.size(0); ++i) {
    for (std::int64_t j = 0; j < plane.size(1); ++j) {
      if (is_set(i, j) != ((j <= i) == kept_is_set)) return false;
    }
  }
  return true;
}

std::string heads_that_work(const FoundLayer& layer) {
  std::string words;
  for (const std::int64_t heads : layer.possible_heads()) words += text(words.empty() ? "" : ", ", heads);
  return words;
}

// Sets the number of heads and the sizes that follow from it.
void set_heads(const Checks& checks, const FoundLayer& found, const LoadOptions& options, std::int64_t noted,
               MultiHeadAttentionConfig& config) {
  config.heads = options.heads != 0 ? options.heads : noted;
  const std::string at = found.prefix.empty() ? "" : text(" \"", found.prefix, "\"");
  checks.require(config.heads != 0, "the number of heads of the layer", at,
                 " cannot be derived from its shapes; give heads. Possible values: ", heads_that_work(found));
  const std::vector<std::int64_t> possible = found.possible_heads();
  if (std::find(possible.begin(), possible.end(), config.heads) == possible.end()) {
    checks.fail("heads is ", config.heads, ", which does not fit the layer", at, " with a query width of ",
                found.query_width, " and a key width of ", found.key_width,
                "; possible values: ", heads_that_work(found));
  }
  config.head_size = found.query_width / config.heads;
  config.kv_heads = found.key_width / config.head_size;
  checks.require(options.kv_heads == 0 || options.kv_heads == config.kv_heads, "kv_heads is ", options.kv_heads,
                 "; with ", config.heads, config.heads == 1 ? " head" : " heads", " of size ", config.head_size,
                 " the layer", at, " has a key width of ", found.key_width, ", which is ", config.kv_heads,
                 config.kv_heads == 1 ? " head" : " heads");
}

// The rows of a parameter that the tensor of a role fills.
struct Filling {
  const char* parameter;
  Role role;
  std::int64_t begin, end;  // rows begin … end − 1
};

std::vector<Filling> fillings(const MultiHeadAttentionConfig& config) {
  const nn::Widths widths(config, 1);
  const std::int64_t q = widths.query, k = q + widths.key, v = k + widths.key, out = config.output_size;
  std::vector<Filling> list = {{"in_proj_bias", Role::qkv_bias, 0, v},
                               {"in_proj_bias", Role::q_bias, 0, q},
                               {"in_proj_bias", Role::k_bias, q, k},
                               {"in_proj_bias", Role::v_bias, k, v},
                               {"out_proj.weight", Role::out_weight, 0, out},
                               {"out_proj.bias", Role::out_bias, 0, out},
                               {"bias_k", Role::bias_k, 0, 1},
                               {"bias_v", Role::bias_v, 0, 1}};
  if (config.separate_projections) {
    list.push_back({"q_proj_weight", Role::q_weight, 0, q});
    list.push_back({"k_proj_weight", Role::k_weight, 0, widths.key});
    list.push_back({"v_proj_weight", Role::v_weight, 0, widths.key});
  } else {
    list.push_back({"in_proj_weight", Role::qkv_weight, 0, v});
    list.push_back({"in_proj_weight", Role::q_weight, 0, q});
    list.push_back({"in_proj_weight", Role::k_weight, q, k});
    list.push_back({"in_proj_weight", Role::v_weight, k, v});
  }
  return list;
}

bool is_weight(Role role) {
  return role == Role::qkv_weight || role == Role::q_weight || role == Role::k_weight || role == Role::v_weight ||
         role == Role::out_weight;
}

// The plan of a load: the layer's config, and the tensors to fill it with.
struct Plan {
  Candidate chosen;
  MultiHeadAttentionConfig config;
};

Plan planned(const Source& source, const LoadOptions& options) {
  const Checks checks(kLoad);
  Plan plan{chosen(source, options.prefix), {}};
  Candidate& candidate = plan.chosen;
  FoundLayer& found = candidate.layer;
  if (const auto mask = candidate.place(Role::mask); mask && !is_causal(source.read(*mask))) {
    found.context_length = 0;
    std::erase_if(found.tensors, [&](const TensorRole& use) { return use.role == nn::words_of(Role::mask); });
    found.left_over.push_back(source.list[*mask].name);
  }
  MultiHeadAttentionConfig& config = plan.config;
  config.embed_size = found.embed_size;
  config.key_size = found.key_size;
  config.value_size = found.value_size;
  config.output_size = found.output_size;
  config.bias = found.bias;
  config.output_bias = found.output_bias;
  config.add_bias_kv = found.add_bias_kv;
  // One product is faster than three and gives the same bits, so separate weights are packed into in_proj_weight,
  // unless they have PyTorch's names.
  config.separate_projections = found.separate && found.family == NameFamily::torch;
  config.context_length = found.context_length;
  config.batch_first = options.batch_first;
  config.add_zero_attention = options.add_zero_attention;
  config.dropout = options.dropout;
  config.rotary = options.rotary;
  set_heads(checks, found, options, source.heads, config);
  const std::size_t first = *candidate.place(found.separate ? Role::q_weight : Role::qkv_weight);
  const DType stored = source.read(first).dtype();
  checks.require(is_float(stored), "\"", source.list[first].name, "\" is ", stored,
                 "; parameters are f32, bf16, f16 or f64");
  config.dtype = options.dtype.value_or(stored);
  config.separate_projections |= config.key_size != config.embed_size || config.value_size != config.embed_size;
  return plan;
}

// Copies the tensors of a plan; `parameter` returns the layer's parameter of that name, to write to.
void fill(const Source& source, const Plan& plan, const std::function<TensorView(const char*)>& parameter) {
  for (const Filling& filling : fillings(plan.config)) {
    const auto at = plan.chosen.place(filling.role);
    if (!at) continue;
    ConstTensorView value = source.read(*at);
    if (!is_float(value.dtype())) {
      throw Error(text(kLoad, ": \"", source.list[*at].name, "\" is ", value.dtype(),
                       "; parameters are f32, bf16, f16 or f64"));
    }
    if (plan.chosen.layer.transposed && is_weight(filling.role)) value = value.transpose(0, 1);
    copy(value, parameter(filling.parameter).slice(0, filling.begin, filling.end));
  }
}

Source source_of(const std::vector<NamedTensor>& tensors) {
  return {"", listed(tensors), [&](std::size_t n) { return tensors[n].value; }};
}

Source source_of(const SafetensorsFile& file) {
  Source source{"the file", listed(file), [&](std::size_t n) { return file.at(file.entries()[n].name); }};
  const auto noted = file.metadata().find(kHeads);
  if (noted != file.metadata().end() && noted->second.size() < 10 &&
      noted->second.find_first_not_of("0123456789") == std::string::npos && !noted->second.empty()) {
    source.heads = std::stoll(noted->second);
  }
  return source;
}

// `tensors` are views of the memory that `arrays` owns.
struct NpzTensors {
  explicit NpzTensors(const std::string& path) {
    const NpzFile file(path);
    for (const std::string& name : file.names()) {
      if (!file.info(name).dtype) continue;
      arrays.push_back(file.at(name));
      names.push_back(name);
    }
    for (std::size_t n = 0; n < names.size(); ++n) tensors.push_back({names[n], arrays[n].view()});
  }
  std::vector<std::string> names;
  std::vector<NpyArray> arrays;
  std::vector<NamedTensor> tensors;
};

}  // namespace

std::vector<FoundLayer> find_attention_layers(const std::vector<NamedTensor>& tensors) {
  return good_layers(listed(tensors));
}
std::vector<FoundLayer> find_attention_layers(const SafetensorsFile& file) { return good_layers(listed(file)); }

LoadedLayer MultiHeadAttention::load(const std::vector<NamedTensor>& tensors, const LoadOptions& options) {
  const Source source = source_of(tensors);
  Plan plan = planned(source, options);
  MultiHeadAttention layer = of_zeros(plan.config);
  fill(source, plan, [&](const char* name) { return layer.writable_parameter(name); });
  return {std::move(layer), std::move(plan.chosen.layer)};
}

LoadedLayer MultiHeadAttention::load(const SafetensorsFile& file, const LoadOptions& options) {
  const Source source = source_of(file);
  Plan plan = planned(source, options);
  MultiHeadAttention layer = of_zeros(plan.config);
  fill(source, plan, [&](const char* name) { return layer.writable_parameter(name); });
  return {std::move(layer), std::move(plan.chosen.layer)};
}

LoadedLayer MultiHeadAttention::load(const std::string& path, const LoadOptions& options) {
  if (path.ends_with(".npz")) return load(NpzTensors(path).tensors, options);
  return load(SafetensorsFile(path), options);
}

}  // namespace rapt
