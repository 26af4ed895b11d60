#include "support/module_case.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>

#include "support/safetensors.h"

namespace rapt::test {
namespace {

using nlohmann::json;

std::uint32_t crc32(const std::string& text) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

// True where a key is hidden, at the given rate; the first key of each row is never hidden.
Tensor bool_mask(const std::string& name, const Dims& shape, double rate) {
  const Tensor numbers = drawn(name, shape);
  Tensor mask(shape, DType::boolean);
  const std::int64_t keys = shape[shape.rank() - 1];
  for (std::int64_t n = 0; n < mask.count(); ++n) {
    mask.values<bool>()[static_cast<std::size_t>(n)] =
        n % keys != 0 && numbers.values<double>()[static_cast<std::size_t>(n)] < 2 * rate - 1;
  }
  return mask;
}

// An additive mask, with −inf at the given rate.
Tensor float_mask(const std::string& name, const Dims& shape, double rate) {
  Tensor mask = drawn(name, shape);
  const Tensor hidden = bool_mask(name + "/hidden", shape, rate);
  for (std::size_t n = 0; n < mask.values<double>().size(); ++n) {
    double& value = mask.values<double>()[n];
    value = hidden.values<bool>()[n] ? -std::numeric_limits<double>::infinity() : 2 * value;
  }
  return mask;
}

// The masks of a case, which must live until its call returns.
class Masks {
 public:
  Masks(const ModuleCase& module, DType dtype) : module_(module), dtype_(dtype) {
    kept_.reserve(2);
    const std::string kind = module.call.at("attn_mask");
    const std::int64_t rows = std::max<std::int64_t>(module.call.at("batch").get<std::int64_t>(), 1);
    const std::int64_t heads = module.args.at("num_heads");
    const std::int64_t queries = module.call.at("queries"), keys = module.call.at("keys");
    const Dims plane = {queries, keys};
    if (kind == "bool" || kind == "float") add(kind, "attn_mask", plane);
    if (kind == "bool_per_head" || kind == "float_per_head") {
      add(kind, "attn_mask", {rows * heads, plane[0], plane[1]});
      list.back().view = mask_of_heads(list.back().view, heads);
    }
    if (module.hides_a_row()) {
      for (std::int64_t j = 0; j < plane[1]; ++j) kept_[0].view().at<bool>(plane[0] - 1, j) = true;
    }
    const std::string padding = module.call.at("key_padding_mask");
    if (padding == "none") return;
    add(padding, "key_padding_mask", {rows, plane[1]});
    list.back().view = mask_of_keys(list.back().view);
  }

  std::vector<Mask> list;

 private:
  void add(const std::string& kind, const std::string& name, const Dims& shape) {
    const std::string full = module_.name + "/" + name;
    if (kind.starts_with("bool")) {
      kept_.push_back(bool_mask(full, shape, 0.3));
      list.push_back(Mask::drop(kept_.back().view()));
    } else {
      kept_.push_back(float_mask(full, shape, 0.2).to(dtype_));
      list.push_back(Mask::add(kept_.back().view()));
    }
  }

  const ModuleCase& module_;
  DType dtype_;
  std::vector<Tensor> kept_;
};

const Safetensors& answers() {
  static const Safetensors file = read_safetensors(RAPT_TEST_DATA "/modules/answers.safetensors");
  return file;
}

}  // namespace

Tensor drawn(const std::string& name, const Dims& shape) {
  Tensor tensor(shape, DType::f64);
  std::uint64_t n = 0;
  for (double& value : tensor.values<double>()) {
    std::uint64_t x = n++ * 0x9E3779B97F4A7C15U + crc32(name);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    x ^= x >> 31;
    value = static_cast<double>(x >> 40) * 0x1p-23 - 1.0;
  }
  return tensor;
}

Tensor ModuleCase::answer(const std::string& what) const { return answers().at(name + "/" + what).clone(); }

double ModuleCase::f32_bound(const std::string& what) const {
  return std::max(2e-6, 2 * f32_error.at(what).get<double>());
}

const std::vector<ModuleCase>& module_cases() {
  static const std::vector<ModuleCase> cases = [] {
    std::vector<ModuleCase> list;
    std::ifstream file(RAPT_TEST_DATA "/modules/cases.json");
    for (const json& entry : json::parse(file)) {
      list.push_back({entry.at("name"), entry.at("args"), entry.at("call"), entry.at("f32_error")});
    }
    return list;
  }();
  return cases;
}

MultiHeadAttention layer_of(const ModuleCase& module, DType dtype) {
  const json& args = module.args;
  const auto size = [&](const char* name) { return args.at(name).is_null() ? 0 : args.at(name).get<std::int64_t>(); };
  MultiHeadAttention layer({.embed_size = size("embed_dim"),
                            .heads = size("num_heads"),
                            .key_size = size("kdim"),
                            .value_size = size("vdim"),
                            .bias = args.at("bias"),
                            .output_bias = {},
                            .add_bias_kv = args.at("add_bias_kv"),
                            .add_zero_attention = args.at("add_zero_attn"),
                            .dropout = args.at("dropout"),
                            .batch_first = args.at("batch_first"),
                            .rotary = {},
                            .slice = {},
                            .dtype = dtype});
  for (const NamedTensor& parameter : layer.parameters()) {
    layer.set_parameter(parameter.name, drawn(module.name + "/" + parameter.name, parameter.value.shape()));
  }
  return layer;
}

LayerResult run_module(const ModuleCase& module, const MultiHeadAttention& layer, Engine engine) {
  const DType dtype = layer.config().dtype;
  const json& call = module.call;
  const auto tokens = [&](const char* name, const char* length, std::int64_t width) {
    const std::int64_t batch = call.at("batch"), count = call.at(length);
    const Dims shape = batch == 0                   ? Dims{count, width}
                       : layer.config().batch_first ? Dims{batch, count, width}
                                                    : Dims{count, batch, width};
    return drawn(module.name + "/" + name, shape).to(dtype);
  };
  const std::string inputs = call.at("inputs");
  const Tensor query = tokens("query", "queries", layer.config().embed_size);
  const Tensor key = tokens("key", "keys", layer.config().key_size);
  const Tensor value = tokens("value", "keys", layer.config().value_size);
  const Masks masks(module, dtype);
  LayerOptions options;
  options.attention.engine = engine;
  options.attention.masks = masks.list;
  options.attention.causal = call.at("attn_mask") == "causal";
  options.weights = !call.at("need_weights").get<bool>() ? ReturnWeights::none
                    : call.at("average").get<bool>()     ? ReturnWeights::mean
                                                         : ReturnWeights::per_head;
  if (inputs == "self") return layer.forward(query, options);
  if (inputs == "memory") return layer.forward(query, key, {}, options);
  return layer.forward(query, key, value, options);
}

}  // namespace rapt::test
