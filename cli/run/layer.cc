#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/error_words.h"
#include "cli/exit_code.h"
#include "cli/explain/words.h"
#include "cli/files/model_heads.h"
#include "cli/files/statistics.h"
#include "cli/run/steps.h"
#include "cli/terminal/output.h"
#include "cli/terminal/text.h"
#include "exhibits/tokens.h"
#include "exhibits/toy_model.h"
#include "rapt/multi_head_attention.h"

namespace rapt::cli {
namespace {

struct Model {
  LoadedLayer loaded;
  std::string heads_from;  // "--heads", or where the number of heads is stated
};

// Without --heads, an error about the number of heads names the file that states it.
std::string with_source(const std::string& what, const RunOptions& options, const ModelHeads& stated) {
  constexpr std::string_view kHeads = "--heads is ", kKvHeads = "--kv-heads is ";
  if (stated.heads > 0 && what.starts_with(kHeads)) {
    return fmt::format("{} is {}; give --heads", stated.source(), what.substr(kHeads.size()));
  }
  if (stated.kv_heads > 0 && options.kv_heads == 0 && what.starts_with(kKvHeads)) {
    return fmt::format("{} in {} is {}; give --heads", kKvHeadsKey, stated.place, what.substr(kKvHeads.size()));
  }
  const bool asks = what.find("give --heads") != std::string::npos;
  return asks && !stated.problem.empty() ? fmt::format("{}; {}", what, stated.problem) : what;
}

// Rewords errors about the file and the heads for the command line.
Model load_model(const RunOptions& options, ArrayFiles& files) {
  LoadOptions load{.prefix = options.prefix,
                   .heads = options.heads,
                   .kv_heads = options.kv_heads,
                   .batch_first = !options.length_first,
                   .add_zero_attention = options.add_zero_attention,
                   .dropout = options.dropout,
                   .rotary = options.rotary,
                   .dtype = options.dtype};
  const Spinner spinner("reading " + options.model);
  ModelHeads stated;
  try {
    const bool is_npz = options.model.ends_with(".npz");
    if (is_npz) require_file("--model", options.model);
    if (options.heads == 0) {
      using Metadata = std::map<std::string, std::string>;
      stated = stated_heads(options.model, is_npz ? Metadata() : files.safetensors(options.model).metadata());
      load.heads = stated.heads;
      if (load.kv_heads == 0) load.kv_heads = stated.kv_heads;
    }
    LoadedLayer loaded = is_npz ? MultiHeadAttention::load(options.model, load)
                                : MultiHeadAttention::load(files.safetensors(options.model), load);
    return {std::move(loaded), options.heads > 0 ? "--heads" : stated.source()};
  } catch (const Error& error) {
    const std::string what = with_flags(error, options.mask);
    if (what == error.what()) throw;  // a message about the file, with its name
    throw Error(fmt::format("{}: {} (rapt inspect {} lists the tensors)", options.model,
                            with_source(what, options, stated), options.model));
  }
}

void require_fitting_types(const RunOptions& options, const Inputs& inputs, DType layer) {
  for (const ConstTensorView* x : {&inputs.query, &inputs.key, &inputs.value}) {
    if ((x->dtype() == DType::f64) == (layer == DType::f64)) continue;
    throw Error(
        fmt::format("an input is {}, the parameters in {} are {}, and f64 does not mix with other types; give --dtype "
                    "f32 to convert everything to f32, or --dtype f64 to compute in f64",
                    name_of(x->dtype()), options.model, name_of(layer)));
  }
}

void require_token_size(const RunOptions& options, const Inputs& inputs, const MultiHeadAttentionConfig& config) {
  const ConstTensorView& x = inputs.query;
  if ((x.rank() == 2 || x.rank() == 3) && x.size(x.rank() - 1) == config.embed_size) return;
  std::string hint = fmt::format("the layer takes {} or (L, E) with E = {}",
                                 options.length_first ? "(L, B, E)" : "(B, L, E)", config.embed_size);
  for (int d = 0; d + 1 < x.rank() && x.rank() <= 3; ++d) {
    if (x.size(d) == config.embed_size) {
      hint += fmt::format("; dimension {} has that size: is the array transposed? (numpy.swapaxes(x, {}, -1))", d, d);
    }
  }
  if (x.rank() == 4) hint += "; heads are split by the layer itself";
  throw Error(fmt::format("{} has shape {}; {}", options.input.empty() ? options.query : options.input,
                          shape_words(x.shape()), hint));
}

nlohmann::ordered_json model_json(const std::string& file, const Model& model) {
  const LoadedLayer& loaded = model.loaded;
  const MultiHeadAttentionConfig& config = loaded.layer.config();
  nlohmann::ordered_json json = {{"file", file},
                                 {"prefix", loaded.found.prefix},
                                 {"names", name_of(loaded.found.family)},
                                 {"embed_size", config.embed_size},
                                 {"heads", config.heads},
                                 {"heads_from", model.heads_from},
                                 {"kv_heads", config.kv_heads},
                                 {"head_size", config.head_size},
                                 {"context_length", config.context_length},
                                 {"dtype", name_of(config.dtype)},
                                 {"missing", loaded.found.missing},
                                 {"left_over", loaded.found.left_over}};
  return json;
}

ReturnWeights weights_wanted(const RunOptions& options) {
  if (!options.wants_weights()) return ReturnWeights::none;
  return options.weights_of == WeightsOf::mean ? ReturnWeights::mean : ReturnWeights::per_head;
}

LayerOptions call_of(const RunOptions& options) {
  return {.attention = options.attention,
          .weights = weights_wanted(options),
          .training = options.dropout > 0.0,
          .position = options.position};
}

// Runs the layer, with a tensor for each requested output.
RunResult run_layer(const RunOptions& options, const MultiHeadAttention& layer, const Inputs& inputs,
                    const LayerOptions& call) {
  const MultiHeadAttentionConfig& config = layer.config();
  const bool batched = inputs.query.rank() == 3;
  const auto length = [&](const ConstTensorView& x) { return x.size(batched && config.batch_first ? 1 : 0); };
  const std::int64_t batch = batched ? inputs.query.size(config.batch_first ? 0 : 1) : 1;
  const std::int64_t heads = config.heads, queries = length(inputs.query);
  const std::int64_t keys = length(inputs.key) + (config.add_bias_kv ? 1 : 0) + (config.add_zero_attention ? 1 : 0);
  const auto room = [&](const Dims& shape) {  // has no batch dimension if the inputs have none
    const DType type = config.dtype == DType::f64 ? DType::f64 : DType::f32;
    return Tensor(batched ? shape : Dims(std::span(shape.begin() + 1, shape.end())), type);
  };

  RunResult result;
  Dims shape = inputs.query.shape();
  shape[shape.rank() - 1] = config.output_size;
  result.out = Tensor(shape, inputs.query.dtype());
  LayerOutputs outputs{.out = result.out};
  if (call.weights != ReturnWeights::none) {
    const bool mean = call.weights == ReturnWeights::mean;
    result.weights = room(mean ? Dims{batch, queries, keys} : Dims{batch, heads, queries, keys});
    outputs.weights = result.weights;
  }
  if (!options.lse.empty()) {
    result.lse = room({batch, heads, queries});
    outputs.lse = result.lse;
  }
  for (const auto& [stage, path] : options.scores) {
    result.scores.push_back(room({batch, heads, queries, keys}));
    outputs.captures.push_back({stage, result.scores.back()});
  }
  result.seconds = timed("the layer", [&] { layer.forward(outputs, inputs.query, inputs.key, inputs.value, call); });
  return result;
}

}  // namespace

RunResult run_model(const RunOptions& options, ArrayFiles& files) {
  const Model model = load_model(options, files);
  const LoadedLayer& loaded = model.loaded;
  const MultiHeadAttentionConfig& config = loaded.layer.config();
  const InputFiles inputs(options, files);
  require_token_size(options, inputs, config);
  require_fitting_types(options, inputs, config.dtype);
  LayerOptions call = call_of(options);
  read_head_options(options, files, config.dtype == DType::f64 ? DType::f64 : DType::f32, config.heads, call.attention);
  RunResult result = run_layer(options, loaded.layer, inputs, call);
  result.title =
      fmt::format("the layer {}{} ({} names): E {}, {}{} of {}{}{}",
                  loaded.found.prefix.empty() ? "" : fmt::format("\"{}\" of ", loaded.found.prefix), options.model,
                  name_of(loaded.found.family), config.embed_size, counted(config.heads, "head"),
                  config.kv_heads == config.heads ? "" : fmt::format(" ({} for k and v)", config.kv_heads),
                  config.head_size, options.heads > 0 ? "" : fmt::format(" ({})", model.heads_from),
                  config.context_length > 0 ? fmt::format(", causal up to {}", config.context_length) : "");
  result.model = model_json(options.model, model);
  for (const std::string& name : loaded.found.missing) {
    complain(fmt::format("{} has no {}; zeros are used instead", options.model, name));
  }
  return result;
}

RunResult run_example(const RunOptions& options) {
  const std::string sentence(words(Lang::en).sentence);
  if (exhibits::kEmbedding % std::max<std::int64_t>(options.heads, 1) != 0) {
    throw UsageError(
        fmt::format("--heads: the example's embedding size, {}, is not divisible by {}; use 2, 3, 4, 6 or 8, or give "
                    "your own --input",
                    exhibits::kEmbedding, options.heads));
  }
  const exhibits::Projections projections = exhibits::make_projections();
  MultiHeadAttention layer({.embed_size = exhibits::kEmbedding,
                            .heads = options.heads > 0 ? options.heads : exhibits::kDefaultHeads,
                            .bias = false,
                            .separate_projections = true,
                            .dropout = options.dropout,
                            .batch_first = true,
                            .dtype = options.dtype.value_or(DType::f64)});
  layer.set_parameter("q_proj_weight", projections.w_q);
  layer.set_parameter("k_proj_weight", projections.w_k);
  layer.set_parameter("v_proj_weight", projections.w_v);
  layer.set_parameter("out_proj.weight", projections.w_o);
  const exhibits::Sentence tokens = exhibits::tokenize(sentence);
  const Tensor x = Tensor::copy_of(exhibits::embed(tokens), layer.config().dtype);
  const LayerOptions call = call_of(options);
  RunResult result = run_layer(options, layer, {x, x, x}, call);
  result.labels = tokens.tokens;
  result.title = fmt::format("no --input; example: \"{}\" with the model of rapt explain, {} of size {}", sentence,
                             counted(layer.config().heads, "head"), layer.config().head_size);
  return result;
}

}  // namespace rapt::cli
