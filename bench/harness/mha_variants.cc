#include "bench/harness/mha_variants.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "bench/harness/mha_plain.h"
#include "bench/harness/mha_training.h"
#include "bench/harness/numbers.h"
#include "rapt/packed_matrix.h"

namespace rapt::bench {
namespace {

MultiHeadAttentionConfig config_of(const MhaSizes& sizes, DType type) {
  MultiHeadAttentionConfig config{.embed_size = sizes.embed, .heads = sizes.heads, .kv_heads = sizes.kv_heads};
  config.bias = false;
  config.output_bias = true;
  config.batch_first = true;
  config.dtype = type;
  return config;
}

// The parts of in_proj_weight, ((Hq + 2·Hkv)·D, E).
struct InputWeights {
  InputWeights(const MhaSizes& sizes, const ConstTensorView& all)
      : query(all.slice(0, 0, sizes.embed)),
        key(all.slice(0, sizes.embed, sizes.embed + sizes.key_width())),
        value(all.slice(0, sizes.embed + sizes.key_width(), all.size(0))) {}

  ConstTensorView query, key, value;
};

// (B, L, E) as rows of a product.
ConstTensorView rows(const ConstTensorView& x) { return x.merge(0); }
TensorView rows(const TensorView& x) { return x.merge(0); }

// (B·L, H·D) -> (B, H, L, D); copies nothing.
template <class View>
View heads_of(const View& x, std::int64_t batch, std::int64_t heads) {
  return x.split(0, batch).split(2, heads).transpose(1, 2);
}

// Memory that grows to the size of the largest call.
class Scratch {
 public:
  std::span<std::byte> at_least(std::size_t bytes) {
    if (memory_.size() < bytes) memory_.resize(bytes);
    return memory_;
  }
  TensorView floats(const Dims& shape) {
    const auto count = static_cast<std::size_t>(Layout::contiguous(shape).count());
    return {at_least(count * sizeof(float)).data(), DType::f32, shape};
  }

 private:
  std::vector<std::byte> memory_;
};

void multiply(const PackedMatrix& weights, const ConstTensorView& x, const TensorView& y, const ConstTensorView& bias,
              int threads, Scratch& scratch) {
  ProductOptions options{.bias = bias, .threads = threads};
  options.workspace = scratch.at_least(weights.workspace_bytes(x, y, options));
  weights.multiply(x, y, options);
}

// rapt's layer, called as a whole.
class WholeLayer : public MhaLayer {
 public:
  WholeLayer(MultiHeadAttention layer, bool causal, ReturnWeights weights) : layer_(std::move(layer)) {
    options_.attention.causal = causal;
    options_.weights = weights;
    options_.workspace = &workspace_;
  }

  void run(const MhaCall& call) override {
    options_.attention.threads = call.threads;
    layer_.forward({call.out, call.weights}, call.x, {}, {}, options_);
  }

 private:
  MultiHeadAttention layer_;
  LayerWorkspace workspace_;
  LayerOptions options_;
};

MultiHeadAttention separate_layer(const MhaSizes& sizes, const MultiHeadAttention& parameters) {
  MultiHeadAttentionConfig config = config_of(sizes, DType::f32);
  config.separate_projections = true;
  MultiHeadAttention layer(config);
  const InputWeights weights(sizes, parameter(parameters, "in_proj_weight"));
  layer.set_parameter("q_proj_weight", weights.query);
  layer.set_parameter("k_proj_weight", weights.key);
  layer.set_parameter("v_proj_weight", weights.value);
  for (const char* name : {"out_proj.weight", "out_proj.bias"}) layer.set_parameter(name, parameter(parameters, name));
  return layer;
}

// A layer built of single heads: each head has its own projections and attention, and the outputs of all heads are
// concatenated.
class LayerOfHeads : public MhaLayer {
 public:
  LayerOfHeads(const MhaSizes& sizes, const MultiHeadAttention& parameters)
      : sizes_(sizes),
        output_(parameter(parameters, "out_proj.weight")),
        output_bias_(Tensor::copy_of(parameter(parameters, "out_proj.bias"))) {
    const InputWeights weights(sizes, parameter(parameters, "in_proj_weight"));
    const auto matrix_of = [&](const ConstTensorView& all, std::int64_t head) {
      return PackedMatrix(all.slice(0, head * sizes.head_size(), (head + 1) * sizes.head_size()));
    };
    for (std::int64_t h = 0; h < sizes.heads; ++h) queries_.push_back(matrix_of(weights.query, h));
    for (std::int64_t h = 0; h < sizes.kv_heads; ++h) {
      keys_.push_back(matrix_of(weights.key, h));
      values_.push_back(matrix_of(weights.value, h));
    }
  }

  void run(const MhaCall& call) override {
    const std::int64_t batch = call.x.size(0), count = batch * call.x.size(1), dim = sizes_.head_size();
    const TensorView q = q_.floats({count, dim}), k = k_.floats({count, dim}), v = v_.floats({count, dim});
    const TensorView combined = combined_.floats({count, sizes_.embed});
    const std::int64_t group = sizes_.heads / sizes_.kv_heads;
    const auto project = [&](const PackedMatrix& weights, const TensorView& y) {
      multiply(weights, rows(call.x), y, {}, call.threads, scratch_);
    };
    AttentionOptions options{.causal = sizes_.causal};
    options.threads = call.threads;
    AttentionOutputs outputs;
    for (std::int64_t h = 0; h < sizes_.heads; ++h) {
      project(queries_[static_cast<std::size_t>(h)], q);
      if (h % group == 0) {
        project(keys_[static_cast<std::size_t>(h / group)], k);
        project(values_[static_cast<std::size_t>(h / group)], v);
      }
      outputs.out = heads_of(combined.slice(1, h * dim, (h + 1) * dim), batch, 1);  // (B, 1, L, D), like q, k and v
      const ConstTensorView of_q = heads_of(q, batch, 1), of_k = heads_of(k, batch, 1), of_v = heads_of(v, batch, 1);
      options.workspace = {};
      options.workspace = scratch_.at_least(attention_workspace_bytes(outputs, of_q, of_k, of_v, options));
      attention(outputs, of_q, of_k, of_v, options);
    }
    multiply(output_, combined, rows(call.out), output_bias_, call.threads, scratch_);
  }

 private:
  MhaSizes sizes_;
  std::vector<PackedMatrix> queries_, keys_, values_;  // of each head: (D, E)
  PackedMatrix output_;
  Tensor output_bias_;
  Scratch q_, k_, v_, combined_, scratch_;
};

// The packed products, with attention by the plain formula between them.
class PlainLayer : public MhaLayer {
 public:
  PlainLayer(const MhaSizes& sizes, const MultiHeadAttention& parameters)
      : sizes_(sizes),
        input_(parameter(parameters, "in_proj_weight")),
        output_(parameter(parameters, "out_proj.weight")),
        output_bias_(Tensor::copy_of(parameter(parameters, "out_proj.bias"))) {}

  void run(const MhaCall& call) override {
    const std::int64_t batch = call.x.size(0), count = batch * call.x.size(1);
    const std::int64_t width = sizes_.embed, key_width = sizes_.key_width();
    const TensorView qkv = qkv_.floats({count, width + 2 * key_width});
    const TensorView combined = combined_.floats({count, width});
    multiply(input_, rows(call.x), qkv, {}, call.threads, scratch_);
    const auto part = [&](std::int64_t begin, std::int64_t size, std::int64_t heads) {
      return heads_of(qkv.slice(1, begin, begin + size), batch, heads);
    };
    plain_attention({.query = part(0, width, sizes_.heads),
                     .key = part(width, key_width, sizes_.kv_heads),
                     .value = part(width + key_width, key_width, sizes_.kv_heads),
                     .scores = call.scores,
                     .out = heads_of(combined, batch, sizes_.heads),
                     .causal = sizes_.causal,
                     .threads = call.threads});
    multiply(output_, combined, rows(call.out), output_bias_, call.threads, scratch_);
  }

 private:
  MhaSizes sizes_;
  PackedMatrix input_, output_;
  Tensor output_bias_;
  Scratch qkv_, combined_, scratch_;
};

}  // namespace

ConstTensorView parameter(const MultiHeadAttention& layer, std::string_view name) {
  for (const NamedTensor& each : layer.parameters()) {
    if (each.name == name) return each.value;
  }
  return {};
}

std::string_view name_of(MhaVariant variant) {
  for (const auto& [name, value] : kMhaVariants) {
    if (value == variant) return name;
  }
  return "?";
}

std::string_view words_of(MhaVariant variant) {
  switch (variant) {
    case MhaVariant::per_head: return "one projection per head";
    case MhaVariant::separate: return "separate q, k, v";
    case MhaVariant::packed: return "packed qkv";
    case MhaVariant::plain: return "packed qkv, plain formula";
    case MhaVariant::mean_weights: return "packed qkv, mean weights";
    case MhaVariant::all_weights: return "packed qkv, all weights";
    case MhaVariant::bf16: return "packed qkv, bf16";
    case MhaVariant::f16: return "packed qkv, f16";
    case MhaVariant::training: return "packed qkv and backward";
    case MhaVariant::training_dropout: return "packed qkv and backward, dropout 0.1";
  }
  return "?";
}

DType type_of(MhaVariant variant) {
  return variant == MhaVariant::bf16 ? DType::bf16 : variant == MhaVariant::f16 ? DType::f16 : DType::f32;
}

ReturnWeights weights_of(MhaVariant variant) {
  return variant == MhaVariant::mean_weights  ? ReturnWeights::mean
         : variant == MhaVariant::all_weights ? ReturnWeights::per_head
                                              : ReturnWeights::none;
}

double dropout_of(MhaVariant variant) { return variant == MhaVariant::training_dropout ? 0.1 : 0.0; }

MultiHeadAttention packed_layer(const MhaSizes& sizes, DType type, const MultiHeadAttention* like, double dropout) {
  MultiHeadAttentionConfig config = config_of(sizes, type);
  config.dropout = dropout;
  MultiHeadAttention layer(config, /*seed=*/1);
  if (like == nullptr) {
    layer.set_parameter("out_proj.bias", numbers(sizes.embed, 2, DType::f32));  // a new layer has zeros there
    return layer;
  }
  for (const NamedTensor& each : like->parameters()) layer.set_parameter(each.name, each.value);
  return layer;
}

std::unique_ptr<MhaLayer> MhaLayer::make(MhaVariant variant, const MhaSizes& sizes,
                                         const MultiHeadAttention& parameters) {
  if (variant == MhaVariant::per_head) return std::make_unique<LayerOfHeads>(sizes, parameters);
  if (variant == MhaVariant::plain) return std::make_unique<PlainLayer>(sizes, parameters);
  if (trains(variant)) {
    return std::make_unique<TrainingLayer>(packed_layer(sizes, DType::f32, &parameters, dropout_of(variant)),
                                           sizes.causal);
  }
  MultiHeadAttention layer = variant == MhaVariant::separate ? separate_layer(sizes, parameters)
                                                             : packed_layer(sizes, type_of(variant), &parameters);
  return std::make_unique<WholeLayer>(std::move(layer), sizes.causal, weights_of(variant));
}

}  // namespace rapt::bench
