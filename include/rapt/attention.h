// Scaled dot-product attention, forward and backward, with every option in one struct.
//
//   rapt::Tensor out = rapt::attention(q, k, v, {.causal = true});
//
// q is (B, Hq, Lq, D), k is (B, Hkv, Lk, D), v is (B, Hkv, Lk, Dv), out is (B, Hq, Lq, Dv). Hq is a multiple of Hkv:
// query head h reads kv head h / (Hq / Hkv). Any strides; k and v may lie in pages, and may be i8 with scales. For
// every b, h, query i and key j, in this order:
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
// A row that sees no key gives 0, never NaN. Only −inf hides: −1e9 is an ordinary number.
//
// Hidden means hidden: a key whose score is −inf after step 5 has no influence on the row, whatever k and v hold there,
// NaN and infinities included, and the row none on the gradients of that key. −inf in a Mask::add hides even where the
// score is NaN; a later mask that adds NaN or +inf to it makes it NaN again. A score of NaN or +inf makes its own row NaN. A key that dropout drops is seen: NaN in its v stays NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rapt/parallel.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// A mask says what true means. Shape: (Lq, Lk), or rank 4 that broadcasts to (B, Hq, Lq, Lk).
struct Mask {
  enum class Kind : std::uint8_t { keep, drop, add, fill };

  // A mask is a view: the tensor it is made of must live until the call is over, so a temporary is refused.
  static Mask keep(Tensor&&) = delete;
  static Mask drop(Tensor&&) = delete;
  static Mask add(Tensor&&) = delete;
  static Mask fill(Tensor&&, double) = delete;

  static Mask keep(const ConstTensorView& where) { return {Kind::keep, where, 0.0}; }  // true: this key is seen
  static Mask drop(const ConstTensorView& where) { return {Kind::drop, where, 0.0}; }  // true: this key is hidden
  static Mask add(const ConstTensorView& bias) { return {Kind::add, bias, 0.0}; }      // a float mask, added to s
  // true: s becomes `value`. The notes' masked_fill(mask == 0, -1e9) is Mask::fill(mask == 0, -1e9).
  static Mask fill(const ConstTensorView& where, double value) { return {Kind::fill, where, value}; }

  Kind kind = Kind::keep;
  ConstTensorView view{};
  double value = 0.0;
};

// Where query 0 stands among the keys: query i has position i + offset. Causal, window and ALiBi share it. Must be
// named when one of them is used and Lq ≠ Lk; where they are equal, both alignments mean offset 0 (with key lengths
// that shorten a row, unnamed means top-left).
struct Alignment {
  enum class Kind : std::uint8_t { unnamed, top_left, bottom_right, offset };

  static Alignment top_left() { return {Kind::top_left, {}}; }          // offset 0
  static Alignment bottom_right() { return {Kind::bottom_right, {}}; }  // offset Lk − Lq, of each row's own lengths
  static Alignment offset(std::int64_t keys) { return {Kind::offset, {keys}}; }  // with a cache: the cached keys
  static Alignment offsets(std::vector<std::int64_t> per_row) { return {Kind::offset, std::move(per_row)}; }

  Kind kind = Kind::unnamed;
  std::vector<std::int64_t> values{};  // for Kind::offset: one for all, or one per batch row
};

// Query at position i sees keys i − left … i + right. An absent side is open.
struct Window {
  std::optional<std::int64_t> left{};
  std::optional<std::int64_t> right{};
};

// Several sequences laid end to end along L in one batch row (B = 1): sequence n holds queries
// query_starts[n] … query_starts[n + 1] − 1, and keys likewise. It behaves exactly as batch row n of a padded call
// would: i, j, alignment, key lengths and dropout all count within the sequence. Masks, weights and scores cover the
// packed (Lq, Lk) plane; what crosses sequences is hidden.
struct PackedSequences {
  std::vector<std::int64_t> query_starts{};  // N + 1 values from 0 to Lq, ascending; empty: not packed
  std::vector<std::int64_t> key_starts{};    // N + 1 values from 0 to Lk, ascending
};

// k and v in pages: k is then (P, Hkv, page size, D) and v (P, Hkv, page size, Dv), in any strides. Key j of batch row
// b lies in page table[b · per_row + j / page size], which is checked as far as the row's key length goes and not
// looked at beyond. The page size is a power of two from 16; with one page to a row it may be anything, which picks
// rows of a tensor in any order. key_lengths must say how many keys of each row
// exist; Lk, which masks, weights and scores have, is `keys`. A row may share pages with another.
struct Pages {
  std::span<const std::int32_t> table{};  // (B, per_row), read during the call; empty and per_row 0: no pages
  std::int64_t per_row = 0;
  std::int64_t keys = 0;  // Lk, at most per_row · page size; 0: that
};

// Which weights are dropped is a pure function of (seed, b + batch_start, h + head_start, i + query_start, j): see
// rapt/random.h. The starts let a micro-batch, a slice of heads or a chunk of queries drop what the whole would.
struct Dropout {
  double rate = 0.0;
  std::uint64_t seed = 0;
  std::int64_t batch_start = 0;
  std::int64_t head_start = 0;
  std::int64_t query_start = 0;
};

// Who computes. `automatic` takes the fastest engine there is for the types at hand: `cpu` for f32, bf16 and f16,
// `reference` for f64.
enum class Engine : std::uint8_t { automatic, reference, cpu };

struct AttentionOptions {
  std::optional<double> scale{};  // any finite value; absent: 1/sqrt(D)
  double softcap = 0.0;           // 0: none
  std::vector<Mask> masks{};      // all apply, by kind, in the order of the steps above
  bool causal = false;            // position i sees keys 0 … i
  Window window{};                // open on both sides
  Alignment alignment{};          // where query 0 stands
  std::vector<std::int64_t>
      key_lengths{};         // one per batch row: later keys are hidden and never read; empty: all are there
  PackedSequences packed{};  // empty: batch rows are separate
  Pages pages{};             // empty: k and v lie in batch rows; forward only
  // Of k and v in i8: (B, Hkv, Lk), or with pages (P, Hkv, page size), in f32. A number n of key j counts as n times
  // the scale of j, rounded to f32, and then as a key in f32 would. Forward only.
  ConstTensorView key_scales{}, value_scales{};
  std::vector<double> alibi_slopes{};  // one per query head; empty: none
  ConstTensorView sinks{};             // (Hq), added to the softmax sum as exp(sink_h); undefined: none
  Dropout dropout{};                   // rate 0: none

  Engine engine = Engine::automatic;
  int threads = 0;                   // at most so many; 0: thread_count()
  ParallelFor parallel_for{};        // absent: the library's pool
  std::span<std::byte> workspace{};  // absent: allocated for the call; see attention_workspace_bytes
};

// The L×L numbers on the way, for those who want to see them.
enum class Stage : std::uint8_t {
  raw,              // after step 1
  capped,           // after step 2
  masked,           // after step 5
  weights,          // after step 6
  dropped_weights,  // after step 7: what PyTorch returns as weights
};

// Which heads and rows of a stage.
struct Selection {
  bool mean_over_heads = false;         // of the chosen heads; the head dimension is then absent
  std::vector<std::int64_t> heads{};    // empty: all
  std::vector<std::int64_t> queries{};  // empty: all
};

// A request: write `stage`, or the chosen part of it, to `to`: (B, heads, queries, Lk), or (B, queries, Lk) for a mean.
// Its type is the query's, or f32 (f64 for f64 input). Keys past a row's key length, or in another packed sequence,
// read −inf in a stage of scores and 0 in a stage of weights; a hidden key reads its score in `raw` and `capped`.
struct Capture {
  Stage stage = Stage::dropped_weights;
  TensorView to{};
  Selection of{};
};

// What attention writes. `out` is required; the others where wanted. An output that shares memory with another or with
// an input is refused; views that interleave, such as slices of one (B, L, 3, H, D) tensor, do not share any.
struct AttentionOutputs {
  TensorView out{};                 // (B, Hq, Lq, Dv), the query's type
  TensorView lse{};                 // (B, Hq, Lq), log Σ exp(s), the sink included: f32, or f64 for f64 input
  std::vector<Capture> captures{};  // weights and scores
};

Tensor attention(const ConstTensorView& query, const ConstTensorView& key, const ConstTensorView& value,
                 const AttentionOptions& options = {});
void attention(const AttentionOutputs& outputs, const ConstTensorView& query, const ConstTensorView& key,
               const ConstTensorView& value, const AttentionOptions& options = {});

// How many bytes options.workspace needs for exactly this call. It need not be aligned.
std::size_t attention_workspace_bytes(const AttentionOutputs& outputs, const ConstTensorView& query,
                                      const ConstTensorView& key, const ConstTensorView& value,
                                      const AttentionOptions& options = {});

// A gradient that arrives at weights which forward returned.
struct WeightsGradient {
  Stage stage = Stage::dropped_weights;  // or Stage::weights
  ConstTensorView from{};                // shaped as the capture was
  Selection of{};
};

// What arrives from above. `out` and `lse` are forward's results, which spare an engine work; where they are absent it
// computes them again. An `out` of 16 bits brings its rounding into the gradients of q and k.
struct AttentionUpstream {
  ConstTensorView dout{};  // (B, Hq, Lq, Dv); undefined: zero
  ConstTensorView dlse{};  // (B, Hq, Lq); undefined: zero
  std::vector<WeightsGradient> dweights{};
  ConstTensorView out{};
  ConstTensorView lse{};
};

// The gradient of options.masks[mask], a Mask::add: shaped as that mask, summed over what it was broadcast along.
struct MaskGradient {
  std::size_t mask = 0;
  TensorView to{};
};

// What backward writes: any that are defined, each shaped and typed as the tensor it belongs to.
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
