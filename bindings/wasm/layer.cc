// The layer, and the few steps around it that a page shows one by one.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <emscripten/bind.h>

#include "array.h"
#include "errors.h"
#include "files.h"
#include "options.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"
#include "rapt/rotary.h"

namespace rapt::wasm {

namespace {

class Layer {
 public:
  explicit Layer(MultiHeadAttention layer) : layer_(std::make_shared<MultiHeadAttention>(std::move(layer))) {}

  const MultiHeadAttention& layer() const { return *layer_; }

  val parameters() const { return named_list(layer_->parameters(), layer_); }

 private:
  std::shared_ptr<MultiHeadAttention> layer_;
};

std::int64_t whole_of(const val& object, const char* name, std::int64_t otherwise) {
  return is_given(object[name]) ? whole_numbers(val::array(std::vector<val>{object[name]}), name)[0] : otherwise;
}
bool flag_of(const val& object, const char* name, bool otherwise) {
  return is_given(object[name]) ? object[name].as<bool>() : otherwise;
}

std::shared_ptr<Layer> make(const val& given) {
  return guarded([&] {
    require_known(given, "a layer", {"embedSize", "heads", "kvHeads", "bias", "batchFirst", "contextLength", "seed"});
    const MultiHeadAttentionConfig config{.embed_size = whole_of(given, "embedSize", 0),
                                          .heads = whole_of(given, "heads", 0),
                                          .kv_heads = whole_of(given, "kvHeads", 0),
                                          .bias = flag_of(given, "bias", true),
                                          .batch_first = flag_of(given, "batchFirst", true),
                                          .context_length = whole_of(given, "contextLength", 0)};
    return std::make_shared<Layer>(MultiHeadAttention(config, static_cast<std::uint64_t>(whole_of(given, "seed", 0))));
  });
}

std::shared_ptr<Layer> load(const File& file, const val& given) {
  return guarded([&] {
    require_known(given, "loading a layer", {"prefix", "heads", "kvHeads", "batchFirst"});
    const LoadOptions options{.prefix = is_given(given["prefix"]) ? given["prefix"].as<std::string>() : "",
                              .heads = whole_of(given, "heads", 0),
                              .kv_heads = whole_of(given, "kvHeads", 0),
                              .batch_first = flag_of(given, "batchFirst", true)};
    return std::make_shared<Layer>(std::move(file.layer(options).layer));
  });
}

val config_of(const Layer& layer) {
  const MultiHeadAttentionConfig& config = layer.layer().config();
  val result = val::object();
  result.set("embedSize", static_cast<double>(config.embed_size));
  result.set("heads", static_cast<double>(config.heads));
  result.set("kvHeads", static_cast<double>(config.kv_heads));
  result.set("headSize", static_cast<double>(config.head_size));
  result.set("outputSize", static_cast<double>(config.output_size));
  result.set("contextLength", static_cast<double>(config.context_length));
  result.set("bias", config.bias);
  result.set("batchFirst", config.batch_first);
  return result;
}

val parameters_of(const Layer& layer) {
  return guarded([&] { return layer.parameters(); });
}

ReturnWeights weights_wanted(const val& given) {
  if (!is_given(given) || !is_given(given["weights"])) return ReturnWeights::none;
  const auto name = given["weights"].as<std::string>();
  if (name == "none") return ReturnWeights::none;
  if (name == "mean") return ReturnWeights::mean;
  if (name == "perHead") return ReturnWeights::per_head;
  throw Error("weights is \"" + name + "\"; it must be none, mean or perHead");
}

// forward(query, key, value, options); key and value may be left undefined.
val forward(const Layer& layer, const val& query, const val& key, const val& value, const val& given) {
  return guarded([&] {
    const LayerOptions options{.attention = attention_options(given, {"weights"}), .weights = weights_wanted(given)};
    const auto view_of = [](const val& tensor, const char* name) {
      return is_given(tensor) ? array_of(tensor, name).view() : ConstTensorView();
    };
    LayerResult result =
        layer.layer().forward(array_of(query, "query").view(), view_of(key, "key"), view_of(value, "value"), options);
    val outputs = val::object();
    outputs.set("out", Array(std::move(result.out)));
    if (options.weights != ReturnWeights::none) outputs.set("weights", Array(std::move(result.weights)));
    return outputs;
  });
}

// x · weightᵀ + bias, over the last dimension; the bias may be left undefined.
Array linear_of(const Array& x, const Array& weight, const val& bias) {
  return guarded([&] {
    Dims shape = x.view().shape();
    if (shape.rank() == 0 || weight.view().rank() != 2) throw Error("linear takes (…, E) and a weight of (O, E)");
    shape[shape.rank() - 1] = weight.view().size(0);
    Tensor y(shape, x.view().dtype());
    linear(y, x.view(), weight.view(), is_given(bias) ? array_of(bias, "bias").view() : ConstTensorView());
    return Array(std::move(y));
  });
}

Array layer_norm_of(const Array& x, const Array& weight, const val& bias) {
  return guarded([&] {
    Tensor y(x.view().shape(), x.view().dtype());
    layer_norm(y, x.view(), weight.view(), is_given(bias) ? array_of(bias, "bias").view() : ConstTensorView());
    return Array(std::move(y));
  });
}

// (B, H, L, D), rotated by position; options {base, pairs}.
Array rotary_of(const Array& x, const val& given) {
  return guarded([&] {
    require_known(given, "rotary", {"base", "pairs"});
    if (x.view().rank() != 4) throw Error("rotary takes (B, H, L, D), not " + to_string(x.view().shape()));
    RotaryOptions options{.max_positions = x.view().size(2), .threads = 1};
    if (is_given(given["base"])) options.base = given["base"].as<double>();
    const std::string pairs = is_given(given["pairs"]) ? given["pairs"].as<std::string>() : "halfSplit";
    if (pairs != "halfSplit" && pairs != "interleaved") {
      throw Error("the pairs of rotary are \"" + pairs + "\"; they must be halfSplit or interleaved");
    }
    options.pairs = pairs == "interleaved" ? RotaryPairs::interleaved : RotaryPairs::half_split;
    Tensor y(x.view().shape(), x.view().dtype());
    Rotary(x.view().size(3), options).apply(x.view(), y.view(), 0, {.threads = 1});
    return Array(std::move(y));
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(rapt_layer) {
  emscripten::class_<Layer>("Layer")
      .smart_ptr<std::shared_ptr<Layer>>("Layer")
      .class_function("make", &make)
      .class_function("load", &load)
      .property("config", &config_of)
      .function("parameters", &parameters_of)
      .function("forward", &forward);
  emscripten::function("linear", &linear_of);
  emscripten::function("layerNorm", &layer_norm_of);
  emscripten::function("rotary", &rotary_of);
}

}  // namespace rapt::wasm
