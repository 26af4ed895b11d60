// Multi-head attention as a layer: projections of query, key and value, attention in every head, and the projection
// that joins the heads again.
//
//   rapt::MultiHeadAttention layer({.embed_size = 768, .heads = 12, .batch_first = true}, /*seed=*/1);
//   rapt::Tensor y = layer.forward(x, {.attention = {.causal = true}}).out;
//
// What forward does, in the words of src/nn/multi_head_attention.cc:
//
//   1. project_inputs   q = x_q · W_qᵀ + b_q, and k and v likewise; one product where all three come from one x
//   2. rotate           rotary embedding of q and k, where the layer has one
//   3. remember         k and v join those of earlier calls, where a cache is given
//   4. attend           the heads of q, k and v, read where the projections wrote them: rapt/attention.h
//   5. project_output   the heads side by side, times W_oᵀ, + b_o
//   6. drop_output      output dropout, in training
//
// backward goes the same way back: src/nn/backward.cc.
//
// It takes the place of torch.nn.MultiheadAttention: same parameters under the same names, same shapes, same results.
// Where PyTorch gives NaN, for a query that sees no key, attention gives 0 and the layer its output bias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/attention.h"
#include "rapt/kv_cache.h"
#include "rapt/layer_names.h"
#include "rapt/named_tensor.h"
#include "rapt/rotary.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// Part `index` of `count` equal parts of the heads: the notes' n_local_heads = n_heads / model_parallel_size. The
// outputs of all parts add up to the whole layer's; only part 0 adds the output bias.
struct HeadSlice {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

struct MultiHeadAttentionConfig {
  std::int64_t embed_size = 0;        // E: numbers in a token of the query
  std::int64_t heads = 0;             // Hq, of the whole layer, whichever slice of it this is
  std::int64_t kv_heads = 0;          // Hkv, of which Hq is a multiple; 0: Hq
  std::int64_t head_size = 0;         // D; 0: E / Hq
  std::int64_t key_size = 0;          // numbers in a token of the key, PyTorch's kdim; 0: E
  std::int64_t value_size = 0;        // of the value, PyTorch's vdim; 0: E
  std::int64_t output_size = 0;       // of the output; 0: E
  bool bias = true;                   // the projections of q, k and v have one
  std::optional<bool> output_bias{};  // the output projection has one; absent: as `bias`
  // q, k and v have a parameter each, instead of one in_proj_weight; so it is where E and the sizes of key and value
  // differ.
  bool separate_projections = false;
  bool add_bias_kv = false;         // one more key and value, learned, that every query sees: bias_k and bias_v
  bool add_zero_attention = false;  // one more key and value of zeros
  double dropout = 0.0;             // of the weights, in training
  double output_dropout = 0.0;      // of the output, in training
  bool batch_first = false;         // (B, L, E); else (L, B, E)
  // A stored causal mask for so many tokens, cut to the sequence: every call is causal, a longer one an error. 0: none.
  std::int64_t context_length = 0;
  std::optional<RotaryOptions> rotary{};
  HeadSlice slice{};
  DType dtype = DType::f32;  // of the parameters: f32, bf16, f16, or f64
};

// Which weights forward gives back.
enum class ReturnWeights : std::uint8_t {
  none,
  mean,      // over heads: (B, Lq, Lk), PyTorch's average_attn_weights=True
  per_head,  // (B, Hq, Lq, Lk)
};

class LayerWorkspace;
class LayerActivations;

struct LayerOptions {
  // Masks, causal, window, key lengths, scale, softcap, slopes, sinks, threads, …: see rapt/attention.h. Masks and key
  // lengths are about the tokens of the key as given; the keys that add_bias_kv and add_zero_attention bring are always
  // seen. The rate of dropout is the layer's; its seed and starts are taken from here. `workspace` is not used.
  AttentionOptions attention{};
  ReturnWeights weights = ReturnWeights::none;
  bool training = false;      // dropout is on
  std::int64_t position = 0;  // of the first token, for rotary embedding; with a cache it follows from that
  // Self-attention through a cache: the tokens of this call come after those that their sequences hold. Row b belongs
  // to sequences[b]; empty: to sequence b. Key lengths say how many tokens each row of this call has.
  KvCache* cache = nullptr;
  std::span<const std::int64_t> sequences{};
  LayerWorkspace* workspace = nullptr;  // absent: memory for this call alone
  LayerActivations* keep = nullptr;     // where forward leaves what backward needs; absent: it leaves nothing
};

// What forward writes. Without a batch dimension, B is left out of each. None may overlap another or an input.
struct LayerOutputs {
  TensorView out{};      // (B, Lq, O), or (Lq, B, O)
  TensorView weights{};  // as options.weights says; Lk counts the added keys, which come last
  // As in AttentionOutputs, of this slice's heads: f32, or f64 for a layer of f64. backward takes no gradient of them.
  TensorView lse{};                 // (B, Hq, Lq)
  std::vector<Capture> captures{};  // scores and weights at any stage; their Lk too counts the added keys
};

// What forward returns.
struct LayerResult {
  Tensor out;
  Tensor weights;  // empty where none were asked for
};

// What arrives from above, shaped as LayerOutputs.
struct LayerUpstream {
  ConstTensorView dout{};      // f32, bf16 or f16; f64 for a layer of f64
  ConstTensorView dweights{};  // of the weights that forward returned; undefined: zero
};

// What backward gives: any that are defined. All are f32, or f64 for a layer of f64.
struct LayerGradients {
  // Written, each shaped as its input. Where forward got no value, what would be its gradient is part of the key's, and
  // where it got no key, all is part of the query's.
  TensorView dquery{}, dkey{}, dvalue{};
  // Of parameters(), in the same order and of the same shapes: see zero_gradients(). Added to, so that calls add up:
  // eight calls of one batch row each, in order, give the bits of one call of eight.
  std::span<Tensor> parameters{};
  TensorView dsinks{};                 // written: (Hq), of this slice's heads
  std::vector<MaskGradient> dmasks{};  // written: of additive masks in options.attention.masks; not with added keys
};

struct LoadedLayer;

class MultiHeadAttention {
 public:
  // Parameters as PyTorch would draw them, from its distributions and our generator: a pure function of config and
  // seed. A slice gets its part of what the whole layer would get.
  explicit MultiHeadAttention(const MultiHeadAttentionConfig& config, std::uint64_t seed = 0);
  MultiHeadAttention(MultiHeadAttention&&) noexcept;
  MultiHeadAttention& operator=(MultiHeadAttention&&) noexcept;
  ~MultiHeadAttention();

  const MultiHeadAttentionConfig& config() const;  // with every default filled in

  // Self-attention: key and value are the query. Undefined views stand for "the query", and for value "the key".
  LayerResult forward(const ConstTensorView& query, const LayerOptions& options = {}) const;
  LayerResult forward(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                      const LayerOptions& options = {}) const;
  // The same, to memory of the caller's.
  void forward(const LayerOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const LayerOptions& options = {}) const;

  // The gradients of a call of forward that was given `kept`, the same inputs and the same options. Each product's sums
  // are chains as in forward, over batch rows and tokens in ascending order.
  void backward(const LayerGradients& gradients, const LayerUpstream& upstream, const LayerActivations& kept,
                const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                const LayerOptions& options = {}) const;
  // Zeros for LayerGradients::parameters.
  std::vector<Tensor> zero_gradients() const;

  // All parameters, in PyTorch's order and by the names of its state dict. For a layer that is the whole:
  //   in_proj_weight ((Hq + 2·Hkv)·D, E), or q_proj_weight (Hq·D, E), k_proj_weight and v_proj_weight (Hkv·D, …)
  //   in_proj_bias ((Hq + 2·Hkv)·D) · bias_k, bias_v (1, 1, Hkv·D) · out_proj.weight (O, Hq·D) · out_proj.bias (O)
  std::vector<NamedTensor> parameters() const;
  // Copies `value` into the parameter, rounded to its type. Not while a forward of this layer runs.
  void set_parameter(std::string_view name, const ConstTensorView& value);
  // Calls change(n, value) with each parameter in the order of parameters(), to be changed where it lies: what an
  // optimizer does. Not while a forward of this layer runs.
  void change_parameters(const std::function<void(std::size_t n, const TensorView& value)>& change);

  // The layer whose parameters have names of any family, under any prefix (rapt/layer_names.h): with what was found.
  // A causal mask that lies beside them, as a buffer does in PyTorch, becomes context_length.
  static LoadedLayer load(const std::vector<NamedTensor>& tensors, const LoadOptions& options);
  static LoadedLayer load(const SafetensorsFile& file, const LoadOptions& options);
  static LoadedLayer load(const std::string& path, const LoadOptions& options);  // .safetensors, or .npz
  // The same the other way. `state_dict` gives views into this layer wherever it can: use it while the layer lives.
  StateDict state_dict(const SaveOptions& options = {}) const;
  void save(const std::string& path, const SaveOptions& options = {}) const;  // .safetensors, or .npz

  // A part of this layer, with its own copy of the parameters.
  MultiHeadAttention slice(std::int64_t index, std::int64_t count) const;

 private:
  struct [[gnu::visibility("hidden")]] Layer;
  explicit MultiHeadAttention(std::unique_ptr<Layer> layer);
  static MultiHeadAttention of_zeros(const MultiHeadAttentionConfig& config);
  TensorView writable_parameter(std::string_view name);
  std::unique_ptr<Layer> layer_;
};

// What load returns.
struct LoadedLayer {
  MultiHeadAttention layer;
  FoundLayer found;  // which tensor went where, and what was left over
};

// Memory that calls reuse: it grows to what the largest needed, and from then on a call takes nothing from the heap.
// One call at a time.
class LayerWorkspace {
 public:
  LayerWorkspace();
  LayerWorkspace(LayerWorkspace&&) noexcept;
  LayerWorkspace& operator=(LayerWorkspace&&) noexcept;
  ~LayerWorkspace();

  std::size_t bytes() const;

  struct [[gnu::visibility("hidden")]] Memory;  // of the implementation
  Memory& memory() { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

// What one call of forward kept for backward: q, k and v as attention read them, and what the heads gave. Its memory is
// used again by the next call that keeps.
class LayerActivations {
 public:
  LayerActivations();
  LayerActivations(LayerActivations&&) noexcept;
  LayerActivations& operator=(LayerActivations&&) noexcept;
  ~LayerActivations();

  std::size_t bytes() const;

  struct [[gnu::visibility("hidden")]] Memory;  // of the implementation
  Memory& memory() { return *memory_; }
  const Memory& memory() const { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

// Masks of rank 3 have two readings, and those of rank 2 may be about keys alone. These name them; none copies.
ConstTensorView mask_of_batch(const ConstTensorView& mask);  // (B, Lq, Lk), as in the notes -> (B, 1, Lq, Lk)
ConstTensorView mask_of_heads(const ConstTensorView& mask,   // (B·Hq, Lq, Lk), PyTorch's attn_mask -> (B, Hq, Lq, Lk)
                              std::int64_t heads);
ConstTensorView mask_of_keys(const ConstTensorView& mask);  // (B, Lk), PyTorch's key_padding_mask -> (B, 1, 1, Lk)

}  // namespace rapt
#pragma GCC visibility pop
