// A small decoder-only transformer that trains and generates: attention alone, or the standard block with its MLP.
//
//   rapt::Transformer model({.vocabulary = 32, .context = 64, .width = 64, .layers = 2, .heads = 1}, /*seed=*/1);
//   for (…) {
//     const double loss = model.add_gradients(tokens, targets, batch);
//     model.step({.rate = 3e-3}, /*clip=*/1.0);
//   }
//   model.save("model.safetensors");
//
// A token becomes a row of the token table plus a row of the position table. Each layer adds to it: causal
// self-attention of its layer norm and, where `hidden` says so, an MLP of its layer norm. Logits are a last layer norm
// times the output matrix.
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
  std::int64_t context = 0;     // tokens of a sequence, at most
  std::int64_t width = 0;       // E
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;   // numbers between the two layers of the MLP; 0: attention only
  double dropout = 0.0;      // of the weights, and of what each layer adds, in training
  DType dtype = DType::f32;  // or f64
  // false: every position sees every other, also the one it should foretell. It shows why a decoder must not.
  bool causal = true;
};

// Keys and values of tokens that went through a model before: one sequence.
class TransformerCache {
 public:
  TransformerCache();
  TransformerCache(TransformerCache&&) noexcept;
  TransformerCache& operator=(TransformerCache&&) noexcept;
  ~TransformerCache();

  std::int64_t length() const;

  struct [[gnu::visibility("hidden")]] State;  // of the implementation
  std::unique_ptr<State>& state() { return state_; }

 private:
  std::unique_ptr<State> state_;
};

class Transformer {
 public:
  // Parameters are a pure function of config and seed.
  explicit Transformer(const TransformerConfig& config, std::uint64_t seed = 0);
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;
  ~Transformer();

  const TransformerConfig& config() const;
  // Puts the causal mask on or takes it off, at any time: it has no parameters.
  void set_causal(bool causal);

  // Logits (B, L, V) for tokens (B, L). `weights`, if given, becomes the attention weights of each layer, (B, H, L, L).
  Tensor logits(std::span<const std::int32_t> tokens, std::int64_t batch = 1,
                std::vector<Tensor>* weights = nullptr) const;
  // The same for the next tokens of one sequence, (1, L, V); the cache remembers them. For causal models only: without
  // the mask, a token that comes changes what earlier ones gave.
  Tensor logits(std::span<const std::int32_t> tokens, TransformerCache& cache) const;

  // The mean loss over targets (B, L), each the token that should follow, kNoTarget where it does not count. Adds its
  // gradients, times `scale`, to those the model holds: micro-batches add up, each scaled by its share of the targets.
  // In order they have the bits of one batch where shares are exact, as with 16 targets in each of 8 rows. `seed` draws
  // dropout; `batch_start` says which row of the whole batch the first one is.
  double add_gradients(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets, std::int64_t batch,
                       double scale = 1.0, std::uint64_t seed = 0, std::int64_t batch_start = 0);
  // One step of Adam on every parameter, its gradients clipped to a norm of `clip` before (0: not clipped), and set to
  // zero after. Weight decay leaves out biases, norms and the tables. Returns the norm.
  double step(const AdamOptions& options, double clip = 0.0);

  // Names are those of a file: tokens.weight, positions.weight, layers.0.attention.in_proj_weight, …, output.weight.
  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> gradients() const;
  void set_parameter(std::string_view name, const ConstTensorView& value);

  // Parameters and, in the metadata, the config. With `training` also what Adam remembers: training goes on from there
  // bit for bit. `metadata` is the caller's own, to be read with SafetensorsFile::metadata; its keys must not be the
  // model's.
  void save(const std::string& path, bool training = false,
            const std::map<std::string, std::string>& metadata = {}) const;
  static Transformer load(const std::string& path);
  // From a file that is open, or in memory; `name` is what errors call it.
  static Transformer load(const SafetensorsFile& file, const std::string& name);

 private:
  struct [[gnu::visibility("hidden")]] Model;
  std::unique_ptr<Model> model_;
};

}  // namespace rapt
#pragma GCC visibility pop
