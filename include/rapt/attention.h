// Scaled dot-product attention, forward and backward, with every option in one struct.
//
//   rapt::Tensor out = rapt::attention(q, k, v, {.causal = true});
//
// q is (B, Hq, Lq, D), k is (B, Hkv, Lk, D), v is (B, Hkv, Lk, Dv), out is (B, Hq, Lq, Dv). Hq is a multiple of Hkv:
// query head h reads kv head h / (Hq / Hkv). Any strides are accepted. k and v may be paged, and may be i8 with
// dequantization scales. For every b, h, query i and key j, in this order:
//
//   1. s = scale · (q·k)                     scale is 1/sqrt(D) unless given
//   2. s = softcap · tanh(s / softcap)       where softcap > 0
//   3. s = s + every additive term           Mask::add, and ALiBi: −slope_h · |i + offset − j|
//   4. s = value                             where a Mask::fill is true
//   5. s = −inf                              where j is hidden: causal, window, Mask::keep, Mask::drop, key lengths
//   6. p = exp(s − m) / Σ exp(s − m)         m is the row's maximum; a sink adds exp(sink_h − m) to the sum
//   7. p = p · keep / (1 − rate)             dropout
//   8. out = p · V
//
// A row with no visible key gives 0, never NaN. Only −inf hides a key: −1e9 is an ordinary number.
//
// A hidden key (score −inf after step 5) has no effect on the row, even if its k or v holds NaN or infinity, and the
// row contributes nothing to that key's gradients. −inf in a Mask::add hides a key even if its score is NaN, unless a
// later mask adds NaN or +inf. A score of NaN or +inf makes the whole row NaN. A key dropped by dropout is not hidden:
// a NaN in its v still gives NaN.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rapt/parallel.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// A mask whose kind says what its elements mean. Shape: (Lq, Lk), or rank 4 that broadcasts to (B, Hq, Lq, Lk).
struct Mask {
  enum class Kind : std::uint8_t { keep, drop, add, fill };

  // A mask is a non-owning view, so its tensor must outlive the call. These overloads reject temporaries.
  static Mask keep(Tensor&&) = delete;
  static Mask drop(Tensor&&) = delete;
  static Mask add(Tensor&&) = delete;
  static Mask fill(Tensor&&, double) = delete;

  static Mask keep(const ConstTensorView& where) { return {Kind::keep, where, 0.0}; }  // true: the key is visible
  static Mask drop(const ConstTensorView& where) { return {Kind::drop, where, 0.0}; }  // true: the key is hidden
  static Mask add(const ConstTensorView& bias) { return {Kind::add, bias, 0.0}; }      // a float mask, added to s
  // true: s becomes `value`. PyTorch's scores.masked_fill(mask == 0, -1e9) is Mask::fill(mask == 0, -1e9).
  static Mask fill(const ConstTensorView& where, double value) { return {Kind::fill, where, value}; }

  Kind kind = Kind::keep;
  ConstTensorView view{};
  double value = 0.0;
};

// The position of query 0 relative to the keys: query i has position i + offset. Causal, window and ALiBi use these
// positions. The alignment must be set when one of these options is used and Lq ≠ Lk. When Lq = Lk, an unset alignment
// means top-left, even where key lengths shorten a batch row; without key lengths, top-left and bottom-right are then
// the same.
struct Alignment {
  enum class Kind : std::uint8_t { unnamed, top_left, bottom_right, offset };

  static Alignment top_left() { return {Kind::top_left, {}}; }          // offset 0
  static Alignment bottom_right() { return {Kind::bottom_right, {}}; }  // offset Lk − Lq, from each row's own lengths
  static Alignment offset(std::int64_t keys) { return {Kind::offset, {keys}}; }  // such as the number of cached keys
  static Alignment offsets(std::vector<std::int64_t> per_row) { return {Kind::offset, std::move(per_row)}; }

  Kind kind = Kind::unnamed;
  std::vector<std::int64_t> values{};  // for Kind::offset: one for all batch rows, or one per row
};

// A query at position i attends to keys i − left … i + right. An absent side is unbounded. The first keys of a
// sequence, 0 … first − 1, stay visible wherever the window is (the "attention sinks" of streaming models). A causal
// mask, other masks and key lengths can still hide them.
struct Window {
  std::optional<std::int64_t> left{};
  std::optional<std::int64_t> right{};
  std::int64_t first = 0;
};

// Calls visit("left", window.left) and so on, for every field in order. Checks and conversions from other languages use
// this function, so that they need no change for a new field. `Of` is Window or const Window.
template <class Of, class Visit>
requires std::same_as<std::remove_const_t<Of>, Window>
void for_each_field(Of& window, const Visit& visit) {
  visit("left", window.left);
  visit("right", window.right);
  visit("first", window.first);
}

// Variable-length sequences concatenated along L in one batch row (B = 1). Sequence n holds queries query_starts[n] …
// query_starts[n + 1] − 1, and keys likewise (cu_seqlens in FlashAttention). Sequence n behaves exactly like batch row
// n of a padded call: i, j, alignment, key lengths and dropout are relative to the sequence. Masks, weights and scores
// cover the packed (Lq, Lk) plane; keys of other sequences are hidden.
struct PackedSequences {
  std::vector<std::int64_t> query_starts{};  // N + 1 values from 0 to Lq, ascending; empty: not packed
  std::vector<std::int64_t> key_starts{};    // N + 1 values from 0 to Lk, ascending
};

// Paged k and v: k is (P, Hkv, page size, D) and v is (P, Hkv, page size, Dv), with any strides. Key j of batch row b
// is in page table[b · per_row + j / page size]. Table entries are validated up to the row's key length and not read
// past it. The page size is a power of two, at least 16. If per_row is 1, any page size is allowed, and the table
// selects rows of a tensor in any order. key_lengths must give the number of keys in each row. `keys` is the Lk of
// masks, weights and scores. Rows may share pages.
struct Pages {
  std::span<const std::int32_t> table{};  // (B, per_row), read during the call; empty with per_row 0: not paged
  std::int64_t per_row = 0;
  std::int64_t keys = 0;  // Lk, at most per_row · page size; 0: per_row · page size
};

// Which weights are dropped is a pure function of (seed, b + batch_start, h + head_start, i + query_start, j): see
// rapt/random.h. The starts make a micro-batch, a slice of heads or a part of the queries drop the same weights as the
// full call.
struct Dropout {
  double rate = 0.0;
  std::uint64_t seed = 0;
  std::int64_t batch_start = 0;
  std::int64_t head_start = 0;
  std::int64_t query_start = 0;
};

// The implementation that runs a call. `automatic` picks the fastest engine for the tensors' device and types: `cuda`
// on a GPU; on the CPU `cpu` for f32, bf16 and f16, `reference` for f64.
enum class Engine : std::uint8_t { automatic, reference, cpu, cuda };

struct AttentionOptions {
  std::optional<double> scale{};            // any finite value; absent: 1/sqrt(D)
  double softcap = 0.0;                     // 0: none
  std::vector<Mask> masks{};                // all are applied, by kind, in the order of the steps above
  bool causal = false;                      // position i attends to keys 0 … i
  Window window{};                          // unbounded on both sides
  Alignment alignment{};                    // position of query 0
  std::vector<std::int64_t> key_lengths{};  // keys per batch row; later keys are hidden and never read; empty: all
  PackedSequences packed{};                 // empty: not packed
  Pages pages{};                            // empty: not paged; forward only
  // Dequantization scales of i8 k and v, in f32: (B, Hkv, Lk), or (P, Hkv, page size) with pages. An i8 element x of
  // key j becomes x · scale[j], rounded to f32, and is then treated as an f32 element. Forward only.
  ConstTensorView key_scales{}, value_scales{};
  std::vector<double> alibi_slopes{};  // one per query head; empty: none
  ConstTensorView sinks{};             // (Hq), added to the softmax sum as exp(sink_h); undefined: none
  Dropout dropout{};                   // rate 0: none

  Engine engine = Engine::automatic;
  int threads = 0;             // maximum number; 0: thread_count()
  ParallelFor parallel_for{};  // absent: the library's pool
  // Memory on the tensors' device; absent: allocated for the call; see attention_workspace_bytes
  std::span<std::byte> workspace{};
  // For tensors on a GPU: the stream that the call runs on. The call returns when its work is enqueued. The tensors
  // must stay alive until that work is done; the options and the lists in them may be destroyed earlier. Default: the
  // device's default stream.
  StreamHandle stream{};
};

// The intermediate (Lq, Lk) scores and weights that a capture can return.
enum class Stage : std::uint8_t {
  raw,              // after step 1
  capped,           // after step 2
  masked,           // after step 5
  weights,          // after step 6
  dropped_weights,  // after step 7: what PyTorch returns as weights
};

// Selects heads and query rows of a stage.
struct Selection {
  bool mean_over_heads = false;         // mean of the selected heads; removes the head dimension
  std::vector<std::int64_t> heads{};    // empty: all
  std::vector<std::int64_t> queries{};  // empty: all
};

// A request to write `stage`, or the selected part of it, to `to`: (B, heads, queries, Lk), or (B, queries, Lk) for a
// mean. `to` has the query's type, or f32 (f64 for f64 input). Keys past a row's key length, or in another packed
// sequence, are written as −inf in score stages and as 0 in weight stages. Other hidden keys keep their scores in `raw`
// and `capped`.
struct Capture {
  Stage stage = Stage::dropped_weights;
  TensorView to{};
  Selection of{};
};

// The outputs of attention. `out` is required, the others are optional. An output that shares memory with another
// output or an input is rejected. Interleaved views, such as slices of one (B, L, 3, H, D) tensor, do not share memory.
struct AttentionOutputs {
  TensorView out{};                 // (B, Hq, Lq, Dv), the query's type
  TensorView lse{};                 // (B, Hq, Lq), log Σ exp(s), the sink included: f32, or f64 for f64 input
  std::vector<Capture> captures{};  // weights and scores
};

Tensor attention(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                 const AttentionOptions& options = {});
void attention(const AttentionOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const AttentionOptions& options = {});

// The size in bytes that options.workspace needs for exactly this call. The workspace need not be aligned.
std::size_t attention_workspace_bytes(const AttentionOutputs& outputs, const ConstTensorView& query,
                                      const ConstTensorView& key, const ConstTensorView& value,
                                      const AttentionOptions& options = {});

// The upstream gradient of weights that forward captured.
struct WeightsGradient {
  Stage stage = Stage::dropped_weights;  // or Stage::weights
  ConstTensorView from{};                // in the shape of the capture
  Selection of{};
};

// Upstream gradients. `out` and `lse` are the results of forward. If they are absent, the CPU engine recomputes them;
// the other engines always do. A 16-bit `out` carries its rounding error into the gradients of q and k.
struct AttentionUpstream {
  ConstTensorView dout{};  // (B, Hq, Lq, Dv); undefined: zero
  ConstTensorView dlse{};  // (B, Hq, Lq); undefined: zero
  std::vector<WeightsGradient> dweights{};
  ConstTensorView out{};
  ConstTensorView lse{};
};

// The gradient of options.masks[mask], a Mask::add, in the shape of that mask: summed over its broadcast dimensions.
struct MaskGradient {
  std::size_t mask = 0;
  TensorView to{};
};

// The outputs of attention_backward. Defined views are written; each has the shape and type of the tensor that it is
// the gradient of.
struct AttentionGradients {
  TensorView dquery{};
  TensorView dkey{};
  TensorView dvalue{};
  TensorView dsinks{};
  std::vector<MaskGradient> dmasks{};
};

void attention_backward(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                        const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                        const AttentionOptions& options = {});

std::size_t attention_backward_workspace_bytes(const AttentionGradients& gradients, const AttentionUpstream& upstream,
                                               const ConstTensorView& query, const ConstTensorView& key,
                                               const ConstTensorView& value, const AttentionOptions& options = {});

}  // namespace rapt
#pragma GCC visibility pop
