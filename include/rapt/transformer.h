// A small decoder-only transformer for training and generation: attention only, or the standard block with an MLP.
//
//   rapt::Transformer model({.vocabulary = 32, .context = 64, .width = 64, .layers = 2, .heads = 1}, /*seed=*/1);
//   for (…) {
//     const double loss = model.add_gradients(tokens, targets, batch);
//     model.step({.rate = 3e-3}, /*clip=*/1.0);
//   }
//   model.save("model.safetensors");
//
// The input is the token embedding plus a learned position embedding. Each layer has residual, pre-norm branches:
// causal self-attention and, if `hidden` > 0, an MLP. The logits are the output of a final layer norm times the output
// matrix.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/layers.h"
#include "rapt/named_tensor.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

class SafetensorsFile;

struct TransformerConfig {
  std::int64_t vocabulary = 0;  // V
  std::int64_t context = 0;     // maximum tokens per sequence
  std::int64_t width = 0;       // E
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;   // hidden size of the MLP; 0: attention only
  double dropout = 0.0;      // of the attention weights and the attention output, in training
  DType dtype = DType::f32;  // or f64
  // false: every position sees every other, including the token that it should predict. This shows why a decoder needs
  // the causal mask.
  bool causal = true;
};

// The KV cache of one sequence: keys and values of the tokens processed so far.
class TransformerCache {
 public:
  TransformerCache();
  TransformerCache(TransformerCache&&) noexcept;
  TransformerCache& operator=(TransformerCache&&) noexcept;
  ~TransformerCache();

  std::int64_t length() const;

  struct [[gnu::visibility("hidden")]] State;  // implementation detail
  std::unique_ptr<State>& state() { return state_; }

 private:
  std::unique_ptr<State> state_;
};

class Transformer {
 public:
  // The parameters depend only on config and seed.
  explicit Transformer(const TransformerConfig& config, std::uint64_t seed = 0);
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;
  ~Transformer();

  const TransformerConfig& config() const;
  // Turns the causal mask on or off. This is possible at any time, because the mask has no parameters.
  void set_causal(bool causal);

  // Logits (B, L, V) for tokens (B, L). `weights`, if given, receives each layer's attention weights, (B, H, L, L).
  Tensor logits(std::span<const std::int32_t> tokens, std::int64_t batch = 1,
                std::vector<Tensor>* weights = nullptr) const;
  // Logits (1, L, V) for the next tokens of one sequence, which are appended to the cache. For causal f32 models only:
  // without the causal mask, a new token would change the results of earlier ones.
  Tensor logits(std::span<const std::int32_t> tokens, TransformerCache& cache) const;

  // Returns the mean loss over targets (B, L): each target is the next token, or kNoTarget to ignore the position.
  // Accumulates the gradients, times `scale`, into the model's gradients. For a micro-batch, `scale` is the fraction of
  // all targets that it holds. Micro-batches processed in order give the same bits as one batch if these fractions are
  // exact in floating point, as with 16 targets in each of 8 rows. `seed` is the dropout seed; `batch_start` is the
  // index of the first row in the whole batch.
  double add_gradients(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets, std::int64_t batch,
                       double scale = 1.0, std::uint64_t seed = 0, std::int64_t batch_start = 0);
  // One Adam step on every parameter. Gradients are clipped to a global norm of `clip` before the step (0: no clipping)
  // and set to zero after it. Weight decay skips biases, norms and embedding tables. Returns the norm before clipping.
  double step(const AdamOptions& options, double clip = 0.0);

  // Names as in a saved file: tokens.weight, positions.weight, layers.0.attention.in_proj_weight, …, output.weight.
  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> gradients() const;
  void set_parameter(std::string_view name, const ConstTensorView& value);

  // Saves the parameters, with the config in the metadata. With `training`, also saves the Adam state, so that training
  // resumes bit for bit. `metadata` holds the caller's entries, readable with SafetensorsFile::metadata; their keys
  // must differ from those that save writes.
  void save(const std::string& path, bool training = false,
            const std::map<std::string, std::string>& metadata = {}) const;
  static Transformer load(const std::string& path);
  // From an open or in-memory file; `name` is used in error messages.
  static Transformer load(const SafetensorsFile& file, const std::string& name);

 private:
  struct [[gnu::visibility("hidden")]] Model;
  std::unique_ptr<Model> model_;
};

}  // namespace rapt
#pragma GCC visibility pop
