#include <string_view>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/files/statistics.h"
#include "cli/run/steps.h"
#include "cli/terminal/text.h"

namespace rapt::cli {
namespace {

// Converts (L, D), (L, E) or (B, L, E) with --heads to (B, H, L, D), which is also accepted.
template <class View>
View canonical(const RunOptions& options, const char* name, const View& x, std::int64_t heads) {
  if (x.rank() == 4) {
    if (heads > 0 && x.size(1) != heads) {
      throw UsageError(
          fmt::format("{} has shape {}, which is (B, H, L, D) with {}, but {} {} requested; omit the number, or "
                      "transpose the array if it is (B, L, H, D)",
                      name, shape_words(x.shape()), counted(x.size(1), "head"), heads, heads == 1 ? "was" : "were"));
    }
    return x;
  }
  if (x.rank() == 2 && heads == 0) return x.unsqueeze(0).unsqueeze(0);
  if ((x.rank() == 2 || x.rank() == 3) && heads > 0) {
    const View tokens = x.rank() == 2 ? x.unsqueeze(0) : options.length_first ? x.transpose(0, 1) : x;
    if (tokens.size(2) % heads != 0) {
      const bool is_query = std::string_view(name) != "--key" && std::string_view(name) != "--value";
      throw UsageError(fmt::format("{} has shape {}: its embedding size, {}, is not divisible into {} heads{}", name,
                                   shape_words(x.shape()), tokens.size(2), heads,
                                   is_query ? "" : "; --kv-heads sets the number of k and v heads"));
    }
    return split_heads(tokens, heads);
  }
  throw UsageError(
      fmt::format("{} has shape {}; plain attention takes (B, H, L, D), or (L, D), or (B, L, E) and (L, E) with "
                  "--heads N; for a layer give --model",
                  name, shape_words(x.shape())));
}

}  // namespace

RunResult run_plain(const RunOptions& options, ArrayFiles& files) {
  const InputFiles inputs(options, files);
  const std::int64_t kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
  const char* query_name = options.input.empty() ? "--query" : "--input";
  const ConstTensorView q = canonical(options, query_name, inputs.query, options.heads);
  const ConstTensorView k = canonical(options, "--key", inputs.key, options.key.empty() ? options.heads : kv_heads);
  const ConstTensorView v = canonical(options, "--value", inputs.value, options.key.empty() ? options.heads : kv_heads);
  AttentionOptions attention_options = options.attention;
  attention_options.dropout.rate = options.dropout;
  const DType wide = q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  read_head_options(options, files, wide, q.size(1), attention_options);

  RunResult result;
  result.title = "plain attention";
  Dims shape = inputs.query.shape();
  shape[shape.rank() - 1] = shape.rank() == 4 ? v.size(3) : v.size(3) * q.size(1);
  result.out = Tensor(shape, q.dtype());
  AttentionOutputs outputs{.out = canonical(options, "--out", result.out.view(), options.heads)};
  if (!options.lse.empty()) {
    result.lse = Tensor({q.size(0), q.size(1), q.size(2)}, wide);
    outputs.lse = result.lse;
  }
  if (options.wants_weights()) {
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

}  // namespace rapt::cli
