// The implementation of rapt::Transformer: parameters, forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rapt/kv_cache.h"
#include "rapt/layers.h"
#include "rapt/multi_head_attention.h"
#include "rapt/transformer.h"

namespace rapt {

namespace nn {

// A parameter: its name, and its value unless an attention layer holds it.
struct Trained {
  std::string name;
  Tensor value;  // empty for a parameter of an attention layer
  bool decays;
};

// The training state of one parameter.
struct Progress {
  Tensor gradient;
  Adam adam;
};

// The weights of one block.
struct Block {
  Block(const MultiHeadAttentionConfig& config, std::uint64_t seed) : attention(config, seed) {}

  MultiHeadAttention attention;
  // Indices of parameters; those of the MLP are unused if there is none.
  std::size_t norm1 = 0, norm2 = 0, up = 0, down = 0;
  std::size_t first_of_attention = 0;
};

// The activations of one block, as (T, …).
struct BlockActivations {
  Tensor x, normed;  // the input, before and after the layer norm
  Tensor middle, middle_normed, inner, activated;
  LayerActivations kept;
};

// The arguments of one pass through the model; anything not needed is undefined or null.
struct Pass {
  std::int64_t batch, length;
  std::int64_t before = 0;  // number of earlier tokens in the sequence
  std::vector<KvCache>* caches = nullptr;
  std::vector<Tensor>* weights = nullptr;
  bool training = false;
  std::uint64_t seed = 0;
  std::int64_t batch_start = 0;
};

}  // namespace nn

struct TransformerCache::State {
  std::vector<KvCache> layers;
  std::int64_t length = 0;
};

struct Transformer::Model {
  Model(const TransformerConfig& given, std::uint64_t seed);

  // Calls visit(index, name, view) for each parameter.
  template <class Visit>
  void for_each(const Visit& visit) const {
    std::size_t index = 0;
    const auto visit_own = [&](std::size_t end) {
      for (; index < end; ++index) visit(index, list[index].name, list[index].value.view());
    };
    for (const nn::Block& block : blocks) {
      visit_own(block.first_of_attention);
      for (const NamedTensor& parameter : block.attention.parameters()) {
        visit(index, list[index].name, parameter.value);
        ++index;
      }
    }
    visit_own(list.size());
  }

  ConstTensorView value(std::size_t index) const { return list[index].value.view(); }
  TensorView gradient(std::size_t index) { return progress[index].gradient.view(); }
  Tensor rows(std::int64_t count, std::int64_t width) const { return Tensor({count, width}, config.dtype); }

  void begin_training();
  // (B, L, V)
  Tensor infer(std::span<const std::int32_t> ids, const nn::Pass& pass) const;
  double train(std::span<const std::int32_t> ids, std::span<const std::int32_t> targets, const nn::Pass& pass,
               double scale);
  double step(const AdamOptions& options, double clip);

  TransformerConfig config;
  std::vector<nn::Trained> list;
  std::vector<nn::Block> blocks;
  std::vector<nn::Progress> progress;  // empty until training begins
  std::size_t tokens = 0, positions = 0, last_norm = 0, output = 0;
  std::vector<nn::BlockActivations> kept;
  LayerWorkspace workspace;

 private:
  std::size_t add_parameter(const std::string& name, const Dims& shape, bool decays);
  std::size_t add_norm(const std::string& name);
  std::size_t add_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, std::uint64_t seed);
  void add_block(std::int64_t n, std::uint64_t seed);

  Dims tokens_shape(const nn::Pass& pass) const { return {pass.batch, pass.length, config.width}; }
  LayerOptions attention_options(const nn::Pass& pass, std::size_t n) const;
  Tensor embedded(std::span<const std::int32_t> ids, const nn::Pass& pass) const;
  void through_block(std::size_t n, const nn::Pass& pass, Tensor& x, nn::BlockActivations* keep) const;
  Tensor logits(const Tensor& x, Tensor& normed) const;
  void back_through_block(std::size_t n, const nn::Pass& pass, Tensor& dx);
};

}  // namespace rapt
