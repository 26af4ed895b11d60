#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "array_files.h"
#include "bench_arguments.h"
#include "error_words.h"
#include "rapt/multi_head_attention.h"
#include "run_options.h"
#include "spinner.h"
#include "statistics.h"
#include "tokens.h"
#include "toy_model.h"
#include "words.h"

namespace rapt::cli {
namespace {

constexpr std::int64_t kNumbersShown = 6;

// What a run gives, and what it says about itself.
struct RunResult {
  std::string title;  // "plain attention", "the layer …"
  Tensor out, weights, lse;
  std::vector<Tensor> scores;  // as options.scores
  nlohmann::ordered_json model;
  double seconds = 0;
};

// Inputs as views, rounded to options.dtype where that is given.
class Inputs {
 public:
  Inputs(const RunOptions& options, ArrayFiles& files) {
    const bool one = !options.input.empty();
    query = read(files, options, one ? "--input" : "--query", one ? options.input : options.query);
    key = options.key.empty() ? query : read(files, options, "--key", options.key);
    value = options.value.empty() ? key : read(files, options, "--value", options.value);
  }

  ConstTensorView query, key, value;

 private:
  ConstTensorView read(ArrayFiles& files, const RunOptions& options, const std::string& option,
                       const std::string& text) {
    const ConstTensorView array = files.read(option, text);
    if (!is_float(array.dtype())) {
      throw Error(fmt::format("{}: {} holds {}; attention takes floating-point numbers: x.astype(\"float32\")", option,
                              text, name_of(array.dtype())));
    }
    if (!options.dtype || *options.dtype == array.dtype()) return array;
    converted_.push_back(Tensor::copy_of(array, *options.dtype));
    return converted_.back().view();
  }

  std::vector<Tensor> converted_;
};

// A mask with the meaning that the options give it. `heads` are those of the call.
Mask read_mask(const RunOptions& options, ArrayFiles& files, std::int64_t heads) {
  ConstTensorView view = files.read("--mask", options.mask, {.integers_as = DType::boolean});
  switch (options.mask_of) {
    case MaskOf::batch: view = mask_of_batch(view); break;
    case MaskOf::heads: view = mask_of_heads(view, heads); break;
    case MaskOf::keys: view = mask_of_keys(view); break;
    case MaskOf::unsaid:
      if (view.rank() == 3) {
        throw UsageError(
            fmt::format("--mask: {} has shape {}, which has two readings; say --mask-of batch for "
                        "(B, Lq, Lk), or --mask-of heads for (B·H, Lq, Lk)",
                        options.mask, shape_words(view.shape())));
      }
  }
  if (is_float(view.dtype())) {
    if (options.mask_true != MaskTrue::unsaid) {
      throw UsageError(
          fmt::format("--mask-true: {} holds {}, which is added to the scores; leave --mask-true out, or "
                      "save the mask as bool",
                      options.mask, name_of(view.dtype())));
    }
    return Mask::add(view);
  }
  if (options.mask_true == MaskTrue::unsaid) {
    throw UsageError(
        "--mask: say what true means: --mask-true keep where true is seen, --mask-true drop where true "
        "is hidden (as PyTorch's masks of nn.MultiheadAttention)");
  }
  return options.mask_true == MaskTrue::keep ? Mask::keep(view) : Mask::drop(view);
}

template <class Work>
double timed(const std::string& what, const Work& work) {
  const Spinner spinner(what);
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// (L, D), (L, E) or (B, L, E) with --heads, or (B, H, L, D), as the last of them.
template <class View>
View canonical(const RunOptions& options, const char* name, const View& x, std::int64_t heads) {
  if (x.rank() == 4) {
    if (heads > 0 && x.size(1) != heads) {
      throw UsageError(
          fmt::format("{} has shape {}, which is (B, H, L, D) with {} heads, and {} were asked for; leave "
                      "the number out, or transpose an array that is (B, L, H, D)",
                      name, shape_words(x.shape()), x.size(1), heads));
    }
    return x;
  }
  if (x.rank() == 2 && heads == 0) return x.unsqueeze(0).unsqueeze(0);
  if ((x.rank() == 2 || x.rank() == 3) && heads > 0) {
    const View tokens = x.rank() == 2 ? x.unsqueeze(0) : options.length_first ? x.transpose(0, 1) : x;
    if (tokens.size(2) % heads != 0) {
      const bool is_query = std::string_view(name) != "--key" && std::string_view(name) != "--value";
      throw UsageError(fmt::format("{} has shape {}: tokens of {} numbers do not divide into {} heads{}", name,
                                   shape_words(x.shape()), tokens.size(2), heads,
                                   is_query ? "" : "; --kv-heads says how many k and v have"));
    }
    return split_heads(tokens, heads);
  }
  throw UsageError(
      fmt::format("{} has shape {}; plain attention takes (B, H, L, D), or (L, D), or (B, L, E) and (L, E) with "
                  "--heads N; for a layer give --model",
                  name, shape_words(x.shape())));
}

RunResult run_plain(const RunOptions& options, ArrayFiles& files) {
  const Inputs inputs(options, files);
  const std::int64_t kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
  const char* query_name = options.input.empty() ? "--query" : "--input";
  const ConstTensorView q = canonical(options, query_name, inputs.query, options.heads);
  const ConstTensorView k = canonical(options, "--key", inputs.key, options.key.empty() ? options.heads : kv_heads);
  const ConstTensorView v = canonical(options, "--value", inputs.value, options.key.empty() ? options.heads : kv_heads);
  AttentionOptions attention_options = options.attention;
  if (!options.mask.empty()) attention_options.masks = {read_mask(options, files, q.size(1))};

  RunResult result;
  result.title = "plain attention";
  Dims shape = inputs.query.shape();
  shape[shape.rank() - 1] = shape.rank() == 4 ? v.size(3) : v.size(3) * q.size(1);
  const DType wide = q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  result.out = Tensor(shape, q.dtype());
  AttentionOutputs outputs{.out = canonical(options, "--out", result.out.view(), options.heads)};
  if (!options.lse.empty()) {
    result.lse = Tensor({q.size(0), q.size(1), q.size(2)}, wide);
    outputs.lse = result.lse;
  }
  if (!options.weights.empty()) {
    const bool mean = options.weights_of == WeightsOf::mean;
    result.weights =
        Tensor(mean ? Dims{q.size(0), q.size(2), k.size(2)} : Dims{q.size(0), q.size(1), q.size(2), k.size(2)}, wide);
    outputs.captures.push_back({Stage::dropped_weights, result.weights, {.mean_over_heads = mean}});
  }
  for (const auto& [stage, path] : options.scores) {
    result.scores.emplace_back(Dims{q.size(0), q.size(1), q.size(2), k.size(2)}, wide);
    outputs.captures.push_back({stage, result.scores.back()});
  }
  result.seconds = timed("attention", [&] { attention(outputs, q, k, v, attention_options); });
  return result;
}

// The file that could not be opened or the heads that do not fit, in the command's own words.
LoadedLayer load_model(const RunOptions& options, ArrayFiles& files) {
  LoadOptions load{.prefix = options.prefix,
                   .heads = options.heads,
                   .kv_heads = options.kv_heads,
                   .batch_first = !options.length_first,
                   .dtype = options.dtype};
  if (options.rotary) load.rotary = RotaryOptions{.base = options.rotary_base, .pairs = *options.rotary};
  const Spinner spinner("reading " + options.model);
  try {
    if (options.model.ends_with(".npz")) {
      require_file("--model", options.model);
      return MultiHeadAttention::load(options.model, load);
    }
    return MultiHeadAttention::load(files.safetensors(options.model), load);
  } catch (const Error& error) {
    const std::string what = with_flags(error, options.mask);
    if (what == error.what()) throw;  // of the file, which it names
    throw Error(fmt::format("{}: {} (rapt inspect {} shows what is there)", options.model, what, options.model));
  }
}

void require_fitting_types(const RunOptions& options, const Inputs& inputs, DType layer) {
  for (const ConstTensorView* x : {&inputs.query, &inputs.key, &inputs.value}) {
    if ((x->dtype() == DType::f64) == (layer == DType::f64)) continue;
    throw Error(
        fmt::format("an input is {}, the parameters in {} are {}, and f64 does not mix with other types; give "
                    "--dtype f32 to round all to f32, or --dtype f64 to compute in f64",
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

nlohmann::ordered_json model_json(const std::string& file, const LoadedLayer& loaded) {
  const MultiHeadAttentionConfig& config = loaded.layer.config();
  nlohmann::ordered_json json = {{"file", file},
                                 {"prefix", loaded.found.prefix},
                                 {"names", name_of(loaded.found.family)},
                                 {"embed_size", config.embed_size},
                                 {"heads", config.heads},
                                 {"kv_heads", config.kv_heads},
                                 {"head_size", config.head_size},
                                 {"context_length", config.context_length},
                                 {"dtype", name_of(config.dtype)},
                                 {"missing", loaded.found.missing},
                                 {"left_over", loaded.found.left_over}};
  return json;
}

ReturnWeights weights_wanted(const RunOptions& options) {
  if (options.weights.empty()) return ReturnWeights::none;
  return options.weights_of == WeightsOf::mean ? ReturnWeights::mean : ReturnWeights::per_head;
}

RunResult run_layer(const RunOptions& options, const MultiHeadAttention& layer, const Inputs& inputs,
                    ArrayFiles& files) {
  LayerOptions call{.attention = options.attention, .weights = weights_wanted(options)};
  if (!options.mask.empty()) call.attention.masks = {read_mask(options, files, layer.config().heads)};
  RunResult result;
  LayerResult given;
  result.seconds = timed("the layer", [&] { given = layer.forward(inputs.query, inputs.key, inputs.value, call); });
  result.out = std::move(given.out);
  result.weights = std::move(given.weights);
  return result;
}

RunResult run_model(const RunOptions& options, ArrayFiles& files) {
  const LoadedLayer loaded = load_model(options, files);
  const MultiHeadAttentionConfig& config = loaded.layer.config();
  const Inputs inputs(options, files);
  require_token_size(options, inputs, config);
  require_fitting_types(options, inputs, config.dtype);
  RunResult result = run_layer(options, loaded.layer, inputs, files);
  result.title = fmt::format("the layer {}{} ({} names): E {}, {} heads{} of {}{}",
                             loaded.found.prefix.empty() ? "" : fmt::format("\"{}\" of ", loaded.found.prefix),
                             options.model, name_of(loaded.found.family), config.embed_size, config.heads,
                             config.kv_heads == config.heads ? "" : fmt::format(" ({} for k and v)", config.kv_heads),
                             config.head_size,
                             config.context_length > 0 ? fmt::format(", causal up to {}", config.context_length) : "");
  result.model = model_json(options.model, loaded);
  for (const std::string& name : loaded.found.missing) {
    fmt::print(stderr, "rapt: {} has no {}; taken as zeros\n", options.model, name);
  }
  return result;
}

// The sentence of `rapt explain`, through its model.
RunResult run_example(const RunOptions& options) {
  const std::string sentence(words(Lang::en).sentence);
  if (kEmbedding % std::max<std::int64_t>(options.heads, 1) != 0) {
    throw UsageError(
        fmt::format("--heads: the example has tokens of {} numbers, which do not divide into {} heads; take "
                    "2, 3, 4, 6 or 8, or give an --input of your own",
                    kEmbedding, options.heads));
  }
  const Projections projections = make_projections();
  MultiHeadAttention layer({.embed_size = kEmbedding,
                            .heads = options.heads > 0 ? options.heads : kDefaultHeads,
                            .bias = false,
                            .separate_projections = true,
                            .batch_first = true,
                            .dtype = options.dtype.value_or(DType::f64)});
  layer.set_parameter("q_proj_weight", projections.w_q);
  layer.set_parameter("k_proj_weight", projections.w_k);
  layer.set_parameter("v_proj_weight", projections.w_v);
  layer.set_parameter("out_proj.weight", projections.w_o);
  const Tensor x = Tensor::copy_of(embed(tokenize(sentence)), layer.config().dtype);
  const LayerOptions call{.attention = options.attention, .weights = weights_wanted(options)};
  RunResult result;
  result.seconds = timed("the example", [&] {
    LayerResult given = layer.forward(x, call);
    result.out = std::move(given.out);
    result.weights = std::move(given.weights);
  });
  result.title = fmt::format("no --input, so an example: \"{}\" in rapt explain's model, {} heads of {}", sentence,
                             layer.config().heads, layer.config().head_size);
  return result;
}

nlohmann::ordered_json tensor_json(const Tensor& tensor) {
  return {{"shape", shape_json(tensor.shape())},
          {"dtype", name_of(tensor.dtype())},
          {"statistics", statistics_json(statistics_of(tensor))},
          {"first", first_numbers_json(tensor, kNumbersShown)}};
}

// Writes what was asked for, and returns its names with the tensors.
std::vector<std::pair<std::string, const Tensor*>> write_outputs(const RunOptions& options, const RunResult& result) {
  std::vector<std::pair<std::string, const Tensor*>> written;
  const auto write = [&](const std::string& path, const Tensor& tensor) {
    if (path.empty()) return;
    write_array(path, tensor);
    written.emplace_back(path, &tensor);
  };
  write(options.out, result.out);
  write(options.weights, result.weights);
  write(options.lse, result.lse);
  for (std::size_t n = 0; n < result.scores.size(); ++n) write(options.scores[n].second, result.scores[n]);
  return written;
}

void print_result_json(const RunResult& result, const std::vector<std::pair<std::string, const Tensor*>>& written) {
  nlohmann::ordered_json json = {{"schema", 1}, {"ran", result.title}, {"seconds", result.seconds}};
  if (!result.model.is_null()) json["model"] = result.model;
  json["out"] = tensor_json(result.out);
  json["written"] = nlohmann::ordered_json::array();
  for (const auto& [path, tensor] : written) {
    json["written"].push_back(
        {{"file", path}, {"shape", shape_json(tensor->shape())}, {"dtype", name_of(tensor->dtype())}});
  }
  print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_result(const RunOptions& options, const RunResult& result,
                  const std::vector<std::pair<std::string, const Tensor*>>& written) {
  if (options.out.empty()) {
    const std::string text =
        fmt::format("{}\nout      {} {}\n         {}\n         {}\n", result.title, shape_words(result.out.shape()),
                    name_of(result.out.dtype()), statistics_words(statistics_of(result.out)),
                    first_numbers(result.out, kNumbersShown));
    const bool data_on_stdout =
        std::any_of(written.begin(), written.end(), [](const auto& each) { return each.first == "-"; });
    std::fwrite(text.data(), 1, text.size(), data_on_stdout ? stderr : stdout);
  } else {
    fmt::print(stderr, "{}\n", result.title);
  }
  for (const auto& [path, tensor] : written) {
    if (path != "-") {
      fmt::print(stderr, "wrote {}: {} {}\n", path, shape_words(tensor->shape()), name_of(tensor->dtype()));
    }
  }
}

}  // namespace

ExitCode run_run(const RunOptions& options) {
  check_run_options(options);
  ArrayFiles files;
  RunResult result;
  try {
    result = !options.model.empty() ? run_model(options, files)
             : options.has_input()  ? run_plain(options, files)
                                    : run_example(options);
  } catch (const Error& error) {
    throw Error(with_flags(error, options.mask));
  }
  const auto written = write_outputs(options, result);
  if (options.json) {
    print_result_json(result, written);
  } else {
    print_result(options, result, written);
  }
  return ExitCode::good;
}

}  // namespace rapt::cli
