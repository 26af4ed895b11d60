// Rotary position embedding (RoPE): queries and keys are rotated by angles proportional to their position.
//
// The first `size` elements of a head form size/2 pairs. At position p, pair d is rotated by the angle p · f(d), where
// f(d) = base^(−2d / size) is its frequency:
//
//   x1' = x1 · cos − x2 · sin
//   x2' = x2 · cos + x1 · sin
//
// If q and k are rotated by their own positions, q·k depends only on the difference of the two positions. Values are
// not rotated.
//
//   const rapt::Rotary rotary(64, {.base = 500000.0, .max_positions = 8192});
//   rotary.apply(q, cached);  // (B, H, L, 64), in place, after `cached` earlier tokens
//   rotary.apply(k, cached);
//
// Same bits: angle, cos and sin are computed in double and rounded once to f32. Two products and a sum in f32 follow,
// and one rounding to the tensor's type. (f64 stays f64 throughout.) So the bits of a token's result depend only on the
// token and its position: not on other tokens, the number of threads, or whether there is a table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "rapt/parallel.h"
#include "rapt/tensor.h"

#pragma GCC visibility push(default)
namespace rapt {

// Which elements of a head form pair d.
enum class RotaryPairs : std::uint8_t {
  half_split,   // (d, d + size/2): Llama, GPT-NeoX and most of transformers
  interleaved,  // (2d, 2d + 1): GPT-J, the original Llama weights, and ONNX's RotaryEmbedding with interleaved = 1
};

// Context extension for a model trained on `original_length` positions. The names linear, dynamic, yarn and llama3 are
// those of Hugging Face transformers.
struct RotaryScaling {
  enum class Kind : std::uint8_t { none, linear, ntk, dynamic, yarn, llama3 };

  // YaRN's parameters besides the factor. Pairs with more than beta_fast rotations over the original length keep their
  // frequency, pairs with fewer than beta_slow have it divided by the factor, and a ramp interpolates between them.
  struct Yarn {
    double beta_fast = 32.0;
    double beta_slow = 1.0;
    std::optional<double> attention_factor{};  // multiplies cos and sin; absent: 0.1 · ln(factor) + 1 (1 if factor ≤ 1)
    bool truncate = true;                      // rounds the ends of the ramp outward to integers
  };

  Kind kind = Kind::none;
  double factor = 1.0;
  std::int64_t original_length = 0;  // dynamic, yarn and llama3
  std::int64_t length = 0;           // dynamic
  Yarn ramp{};                       // yarn
  double low_freq_factor = 1.0;      // llama3
  double high_freq_factor = 4.0;     // llama3

  static RotaryScaling none() { return {}; }
  // Positions are divided by the factor.
  static RotaryScaling linear(double factor) { return {.kind = Kind::linear, .factor = factor}; }
  // "NTK-aware": base becomes base · factor^(size / (size − 2)), so that only the last pair slows down by the whole
  // factor.
  static RotaryScaling ntk(double factor) { return {.kind = Kind::ntk, .factor = factor}; }
  // ntk with factor · length / original_length − (factor − 1) as its factor, for a sequence of `length` tokens; no
  // change up to the original length. A longer sequence needs another Rotary, which is incompatible with keys rotated
  // by this one.
  static RotaryScaling dynamic(double factor, std::int64_t original_length, std::int64_t length) {
    return {.kind = Kind::dynamic, .factor = factor, .original_length = original_length, .length = length};
  }
  static RotaryScaling yarn(double factor, std::int64_t original_length) { return yarn(factor, original_length, {}); }
  static RotaryScaling yarn(double factor, std::int64_t original_length, const Yarn& ramp) {
    return {.kind = Kind::yarn, .factor = factor, .original_length = original_length, .ramp = ramp};
  }
  // Llama 3.1: pairs with at least high_freq_factor rotations over the original length keep their frequency, pairs with
  // fewer than low_freq_factor have it divided by the factor, and pairs in between are blended.
  static RotaryScaling llama3(double factor, std::int64_t original_length, double low_freq_factor = 1.0,
                              double high_freq_factor = 4.0) {
    return {.kind = Kind::llama3,
            .factor = factor,
            .original_length = original_length,
            .low_freq_factor = low_freq_factor,
            .high_freq_factor = high_freq_factor};
  }
};

struct RotaryOptions {
  double base = 10000.0;
  std::int64_t size = 0;  // number of leading elements of a head to rotate; even; 0: all
  RotaryPairs pairs = RotaryPairs::half_split;
  RotaryScaling scaling{};
  // The constructor precomputes cos and sin for positions below max_positions, in a table of 4 · size · max_positions
  // bytes. For other positions, and for f64 tensors, they are computed in the call, with the same bits but much more
  // slowly.
  std::int64_t max_positions = 0;
  int threads = 0;             // maximum for building the table; 0: thread_count()
  ParallelFor parallel_for{};  // absent: the library's pool
};

// The position of each token. No position is negative.
class RotaryPositions {
 public:
  // Token i of every batch row has position offset + i.
  // NOLINTNEXTLINE(google-explicit-constructor): so that apply(q, cached) can be written
  RotaryPositions(std::int64_t offset = 0) : offset_(offset) {}
  // Token i of batch row b has position offsets[b] + i. The caller keeps the list alive, here and below.
  static RotaryPositions rows(std::span<const std::int64_t> offsets) { return {Kind::rows, offsets}; }
  // Token i of batch row b has position positions[b · L + i].
  static RotaryPositions tokens(std::span<const std::int64_t> positions) { return {Kind::tokens, positions}; }

  enum class Kind : std::uint8_t { offset, rows, tokens };
  Kind kind() const { return kind_; }
  std::int64_t offset() const { return offset_; }
  std::span<const std::int64_t> given() const { return given_; }  // (B) for rows, (B, L) for tokens

 private:
  RotaryPositions(Kind kind, std::span<const std::int64_t> given) : kind_(kind), given_(given) {}

  Kind kind_ = Kind::offset;
  std::int64_t offset_ = 0;
  std::span<const std::int64_t> given_{};
};

struct RotaryCall {
  int threads = 0;             // maximum number; 0: thread_count()
  ParallelFor parallel_for{};  // absent: the library's pool
  bool back = false;           // rotates by the negative angles, for the backward pass
};

// Copies share the table, which is immutable. Several threads may use one object at once. apply does not allocate.
class Rotary {
 public:
  explicit Rotary(std::int64_t head_size, const RotaryOptions& options = {});
  // Copy-only, because a moved-from object would have no state.
  Rotary(const Rotary&) = default;
  Rotary& operator=(const Rotary&) = default;
  ~Rotary() = default;

  std::int64_t head_size() const;               // D
  std::int64_t size() const;                    // number of rotated elements per head
  std::span<const double> frequencies() const;  // size / 2, after scaling
  double attention_factor() const;              // multiplies cos and sin: 1 except for yarn
  std::int64_t max_positions() const;           // positions in the table

  // x is (B, H, L, D), f32, bf16, f16 or f64, with any strides. Elements past `size` are not modified.
  void apply(const TensorView& x, const RotaryPositions& positions = {}, const RotaryCall& call = {}) const;
  // Writes to another tensor, which may have another type (f64 only with f64). Elements past `size` are copied. `to`
  // may be `from` itself, but must not overlap it otherwise.
  void apply(const ConstTensorView& from, const TensorView& to, const RotaryPositions& positions = {},
             const RotaryCall& call = {}) const;

  // A copy of this object on another device, for tensors on that device.
  Rotary to(Device device) const;

  struct [[gnu::visibility("hidden")]] State;  // implementation detail
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace rapt
#pragma GCC visibility pop
