// Multi-head attention as a layer: input projections of query, key and value, attention in every head, and the output
// projection.
//
//   rapt::MultiHeadAttention layer({.embed_size = 768, .heads = 12, .batch_first = true}, /*seed=*/1);
//   rapt::Tensor y = layer.forward(x, {.attention = {.causal = true}}).out;
//
// The steps of forward, by their names in src/nn/multi_head_attention.cc:
//
//   1. project_inputs   q = x_q · W_qᵀ + b_q, and k and v likewise; one product if all three come from one x
//   2. rotate           rotary embedding of q and k, if the layer has one
//   3. append_kv        appends k and v to the KV cache, if one is given
//   4. attend           attention over the heads of q, k and v, read in place: rapt/attention.h
//   5. project_output   the concatenated heads · W_oᵀ + b_o
//   6. drop_output      output dropout, in training
//
// backward runs the same steps in reverse: src/nn/backward.cc.
//
// A drop-in replacement for torch.nn.MultiheadAttention: same parameters under the same names, same shapes, same
// results. For a query with no visible key PyTorch gives NaN; here attention gives 0, and the layer gives its output
// bias.
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

// Slice `index` of `count` equal slices of the heads (tensor parallelism): n_local_heads = n_heads /
// model_parallel_size. The outputs of all slices add up to the whole layer's; only slice 0 adds the output bias.
struct HeadSlice {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

struct MultiHeadAttentionConfig {
  std::int64_t embed_size = 0;        // E: embedding size of the query
  std::int64_t heads = 0;             // Hq, of the whole layer, even if this layer is a slice of it
  std::int64_t kv_heads = 0;          // Hkv, a divisor of Hq; 0: Hq
  std::int64_t head_size = 0;         // D; 0: E / Hq
  std::int64_t key_size = 0;          // embedding size of the key, PyTorch's kdim; 0: E
  std::int64_t value_size = 0;        // embedding size of the value, PyTorch's vdim; 0: E
  std::int64_t output_size = 0;       // embedding size of the output; 0: E
  bool bias = true;                   // bias in the projections of q, k and v
  std::optional<bool> output_bias{};  // bias in the output projection; absent: equal to `bias`
  // Separate weights for q, k and v instead of one in_proj_weight. Always true if key_size or value_size differs from
  // E.
  bool separate_projections = false;
  bool add_bias_kv = false;         // adds a learned key and value that every query sees: bias_k and bias_v
  bool add_zero_attention = false;  // adds a key and value of zeros
  double dropout = 0.0;             // of the attention weights, in training
  double output_dropout = 0.0;      // of the output, in training
  bool batch_first = false;         // (B, L, E); else (L, B, E)
  // The size of a stored causal mask, which is cropped to the sequence: every call is causal, and a longer sequence is
  // an error. 0: no stored mask.
  std::int64_t context_length = 0;
  std::optional<RotaryOptions> rotary{};
  HeadSlice slice{};
  DType dtype = DType::f32;  // of the parameters: f32, bf16, f16, or f64
};

// Which attention weights forward returns.
enum class ReturnWeights : std::uint8_t {
  none,
  mean,      // over heads: (B, Lq, Lk), PyTorch's average_attn_weights=True
  per_head,  // (B, Hq, Lq, Lk)
};

class LayerWorkspace;
class LayerActivations;

struct LayerOptions {
  // Masks, causal, window, key lengths, scale, softcap, slopes, sinks, threads, …: see rapt/attention.h. Masks and key
  // lengths apply to the key tokens passed in; the keys added by add_bias_kv and add_zero_attention are always visible.
  // The layer sets the dropout rate; the seed and the starts of dropout are taken from here. Pages, scales and
  // `workspace` are rejected: see `cache` and `workspace` below.
  AttentionOptions attention{};
  ReturnWeights weights = ReturnWeights::none;
  bool training = false;      // enables dropout
  std::int64_t position = 0;  // of the first token, for rotary embedding; with a cache, the cache determines it
  // Self-attention with a KV cache: the tokens of this call follow the cached tokens of their sequences. Row b belongs
  // to sequences[b]; empty: to sequence b. Key lengths give the number of tokens in each row of this call.
  KvCache* cache = nullptr;
  std::span<const std::int64_t> sequences{};
  LayerWorkspace* workspace = nullptr;  // absent: allocated for this call
  LayerActivations* keep = nullptr;     // where forward saves activations for backward; absent: not saved
};

// The outputs of forward. For unbatched input, the shapes have no B. Outputs must not overlap each other or an input.
struct LayerOutputs {
  TensorView out{};      // (B, Lq, O), or (Lq, B, O)
  TensorView weights{};  // as selected by options.weights; Lk includes the added keys, which come last
  // As in AttentionOutputs, for the heads of this slice: f32, or f64 for an f64 layer. backward accepts no gradients of
  // lse and captures.
  TensorView lse{};                 // (B, Hq, Lq)
  std::vector<Capture> captures{};  // scores and weights at any stage; Lk includes the added keys
};

// The result of forward.
struct LayerResult {
  Tensor out;
  Tensor weights;  // empty if not requested
};

// Upstream gradients, in the shapes of LayerOutputs.
struct LayerUpstream {
  ConstTensorView dout{};      // f32, bf16 or f16; f64 for an f64 layer
  ConstTensorView dweights{};  // of the weights that forward returned; undefined: zero
};

// The gradients that backward computes; undefined ones are skipped. All are f32, or f64 for an f64 layer.
struct LayerGradients {
  // Written, each in the shape of its input. If forward got no value, dkey includes the value's gradient; if it got no
  // key, dquery includes both.
  TensorView dquery{}, dkey{}, dvalue{};
  // Gradients of parameters(), in the same order and shapes: see zero_gradients(). Accumulated: eight calls of one
  // batch row each, in order, give the same bits as one call of eight rows.
  std::span<Tensor> parameters{};
  TensorView dsinks{};                 // written: (Hq), for the heads of this slice
  std::vector<MaskGradient> dmasks{};  // written: for additive masks in options.attention.masks; not with added keys
};

struct LoadedLayer;

class MultiHeadAttention {
 public:
  // Initializes the parameters with PyTorch's distributions and rapt's own random number generator; the parameters
  // depend only on config and seed. A slice gets its part of the whole layer's parameters.
  explicit MultiHeadAttention(const MultiHeadAttentionConfig& config, std::uint64_t seed = 0);
  MultiHeadAttention(MultiHeadAttention&&) noexcept;
  MultiHeadAttention& operator=(MultiHeadAttention&&) noexcept;
  ~MultiHeadAttention();

  const MultiHeadAttentionConfig& config() const;  // with every default filled in

  // Self-attention: key and value are the query. An undefined key means the query; an undefined value means the key.
  LayerResult forward(const ConstTensorView& query, const LayerOptions& options = {}) const;
  LayerResult forward(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                      const LayerOptions& options = {}) const;
  // The same, writing to the caller's memory.
  void forward(const LayerOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const LayerOptions& options = {}) const;

  // Computes the gradients of a forward call that saved its activations in `kept`, given the same inputs and options.
  // Each sum in a matrix product is one chain, as in forward. In the gradients of weights, the sum runs over batch rows
  // and tokens in ascending order.
  void backward(const LayerGradients& gradients, const LayerUpstream& upstream, const LayerActivations& kept,
                const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                const LayerOptions& options = {}) const;
  // Zero tensors for LayerGradients::parameters.
  std::vector<Tensor> zero_gradients() const;

  // All parameters, in PyTorch's order and with its state-dict names. For the whole layer:
  //   in_proj_weight ((Hq + 2·Hkv)·D, E), or q_proj_weight (Hq·D, E), k_proj_weight and v_proj_weight (Hkv·D, …)
  //   in_proj_bias ((Hq + 2·Hkv)·D) · bias_k, bias_v (1, 1, Hkv·D) · out_proj.weight (O, Hq·D) · out_proj.bias (O)
  std::vector<NamedTensor> parameters() const;
  // Copies `value` into the parameter, rounded to its type. Do not call while a forward of this layer runs.
  void set_parameter(std::string_view name, const ConstTensorView& value);
  // Calls change(n, value) with each parameter, in the order of parameters(), to update it in place, as an optimizer
  // does. Do not call while a forward of this layer runs.
  void change_parameters(const std::function<void(std::size_t n, const TensorView& value)>& change);

  // Loads a layer whose parameters follow one of the naming schemes in rapt/layer_names.h, under any prefix, and
  // reports what was found. A causal mask stored with the parameters, like a PyTorch buffer, sets context_length.
  static LoadedLayer load(const std::vector<NamedTensor>& tensors, const LoadOptions& options);
  static LoadedLayer load(const SafetensorsFile& file, const LoadOptions& options);
  static LoadedLayer load(const std::string& path, const LoadOptions& options);  // .safetensors, or .npz
  // The reverse of load. `state_dict` returns views into this layer where possible: use them while the layer is alive.
  StateDict state_dict(const SaveOptions& options = {}) const;
  void save(const std::string& path, const SaveOptions& options = {}) const;  // .safetensors, or .npz

  // A copy of this layer whose parameters are on another device. The copy's inputs, outputs, cache, workspace,
  // activations and gradients are on that device too.
  MultiHeadAttention to(Device device) const;
  // A slice of this layer's heads, with its own copy of the parameters.
  MultiHeadAttention slice(std::int64_t index, std::int64_t count) const;

 private:
  struct [[gnu::visibility("hidden")]] Layer;
  explicit MultiHeadAttention(std::unique_ptr<Layer> layer);
  static MultiHeadAttention of_zeros(const MultiHeadAttentionConfig& config);
  TensorView writable_parameter(std::string_view name);
  std::unique_ptr<Layer> layer_;
};

// The result of load.
struct LoadedLayer {
  MultiHeadAttention layer;
  FoundLayer found;  // the role of each tensor, and the tensors that were left over
};

// Memory reused across calls. It grows to the need of the largest call; after that, forward does not allocate, except
// that added keys (add_bias_kv, add_zero_attention) require copies of masks and captures. Only one call may use it at a
// time.
class LayerWorkspace {
 public:
  LayerWorkspace();
  LayerWorkspace(LayerWorkspace&&) noexcept;
  LayerWorkspace& operator=(LayerWorkspace&&) noexcept;
  ~LayerWorkspace();

  std::size_t bytes() const;         // of activations and scratch memory, on the host and on the device
  std::size_t device_bytes() const;  // the part of bytes() on a device other than the CPU

  struct [[gnu::visibility("hidden")]] Memory;  // implementation detail
  Memory& memory() { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

// The activations that one forward call saved for backward: q, k and v as attention read them, and the output and lse
// of the heads. The next call that saves its activations here reuses the memory.
class LayerActivations {
 public:
  LayerActivations();
  LayerActivations(LayerActivations&&) noexcept;
  LayerActivations& operator=(LayerActivations&&) noexcept;
  ~LayerActivations();

  std::size_t bytes() const;

  struct [[gnu::visibility("hidden")]] Memory;  // implementation detail
  Memory& memory() { return *memory_; }
  const Memory& memory() const { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

// A rank-3 mask is ambiguous, and a rank-2 mask may apply to keys only. Each of these functions states one
// interpretation; none of them copies the mask.
ConstTensorView mask_of_batch(const ConstTensorView& mask);  // (B, Lq, Lk), shared by all heads -> (B, 1, Lq, Lk)
ConstTensorView mask_of_heads(const ConstTensorView& mask,   // (B·Hq, Lq, Lk), PyTorch's attn_mask -> (B, Hq, Lq, Lk)
                              std::int64_t heads);
ConstTensorView mask_of_keys(const ConstTensorView& mask);  // (B, Lk), PyTorch's key_padding_mask -> (B, 1, 1, Lk)

}  // namespace rapt
#pragma GCC visibility pop
