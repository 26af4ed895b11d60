// The steps of a layer besides attention and products, after validation.
//
// src/nn builds these problems and an engine may trust them: shapes and types agree, every default is filled in.
// Tensors are in memory of the engine's device; lists (spans) are in host memory, and are read before a function
// returns.
#pragma once

#include <cstdint>
#include <span>

#include "core/product.h"
#include "rapt/random.h"
#include "rapt/rotary.h"

namespace rapt {

// ---------------------------------------------------------------- rotary embedding

// The position of token i of batch row b: offset + i · step, plus the entry of `given` if there is one.
struct PositionRule {
  std::int64_t offset = 0;
  const std::int64_t* given = nullptr;
  std::int64_t row_stride = 0, token_stride = 0;  // in `given`
  std::int64_t step = 1;                          // 0 if `given` has an entry for each token

  std::int64_t at(std::int64_t b, std::int64_t i) const {
    return offset + i * step + (given == nullptr ? 0 : given[b * row_stride + i * token_stride]);
  }
};

// Only the engine computes cosines and sines of angles, for tables and for calls: in double, rounded once.
struct RotaryAngles {
  std::span<const double> frequencies;  // (size / 2)
  double attention_factor = 1.0;
};

struct RotaryProblem {
  RotaryAngles angles;
  bool back = false;  // rotates by the negative angles
  RotaryPairs pairs = RotaryPairs::half_split;
  const float* table = nullptr;  // (table_positions, 2, size / 2): the cosines of a position, then its sines
  std::int64_t table_positions = 0;
  PositionRule positions;
  ConstTensorView from;  // (B, H, L, D)
  TensorView to;         // (B, H, L, D); either `from` itself, with the same strides, or separate memory
};

// ---------------------------------------------------------------- KV cache

// `count` tokens of one batch row that are stored consecutively in one page: token `token` + i in row `row` + i.
struct CacheRun {
  std::int64_t batch, token, page, row, count;
};

struct AppendProblem {
  ConstTensorView from;  // (B, Hkv, L, D), f32, bf16 or f16
  TensorView to;         // (P, Hkv, rows, D): the numbers of a row are contiguous
  TensorView scales;     // (P, Hkv, rows), f32, for i8; else undefined
  std::span<const CacheRun> runs;
};

// ---------------------------------------------------------------- training

// x (B, L, O), in place: element o of token i of batch row b is kept iff word o mod 4 of Philox counter (b +
// batch_start, 2³² − 1, i + query_start, ⌊o / 4⌋) is at least `threshold`; kept elements are multiplied by `scale`.
struct OutputDropoutProblem {
  TensorView x;
  std::uint64_t threshold = 0;
  double scale = 1.0;
  PhiloxKey key{};
  std::uint32_t batch_start = 0, query_start = 0;
};

// Rows of (T, E) tensors are contiguous. All tensors are f32, or all are f64.
struct NormProblem {
  TensorView y;
  ConstTensorView x, weight, bias;  // bias undefined: none
  double epsilon;
};
struct NormBackwardProblem {
  TensorView dx, dweight, dbias;  // undefined: not requested; dx may be dy
  ConstTensorView dy, x, weight;
  double epsilon;
};

struct CrossEntropyProblem {
  TensorView dlogits;      // undefined: not requested; may be logits
  ConstTensorView logits;  // (T, V)
  std::span<const std::int32_t> targets;
  double share;  // of one target in the mean loss
  double scale;  // of the gradient
};

// For contiguous tensors of one shape and type:
//   first = beta1 · first + (1 − beta1) · g,  second = beta2 · second + (1 − beta2) · g · g
//   parameter = kept · parameter − step · first / (sqrt(second) · inverse + epsilon)
struct AdamProblem {
  TensorView parameter, first, second;
  ConstTensorView gradient;
  double beta1, beta2, kept, step, inverse, epsilon;
};

// ---------------------------------------------------------------- the table

// Every function writes the same bits for any number of workers.
struct LayerOps {
  // Copies element by element, with any strides and types; a conversion rounds once. `from` and `to` must not overlap.
  void (*copy)(const ConstTensorView& from, const TensorView& to, const Workers& workers);
  void (*fill)(const TensorView& to, double value, const Workers& workers);

  void (*rotate)(const RotaryProblem& problem, const Workers& workers);
  void (*fill_rotary_table)(const RotaryAngles& angles, std::int64_t positions, float* table, const Workers& workers);

  void (*append)(const AppendProblem& problem, const Workers& workers);
  // The first row of (B, H, L, D), as (b · H + h) · L + i, that holds a non-finite number; −1: none. Only the first
  // counts[b] tokens of batch row b are checked; empty: all. Waits for the result.
  std::int64_t (*find_not_finite)(const ConstTensorView& x, std::span<const std::int64_t> counts,
                                  const Workers& workers);

  void (*drop_output)(const OutputDropoutProblem& problem, const Workers& workers);
  // to += x, both (T, E)
  void (*add)(const TensorView& to, const ConstTensorView& x, const Workers& workers);
  // sums (N) += Σ rows of (M, N), in ascending order: one chain per element
  void (*add_row_sums)(const ConstTensorView& rows, const TensorView& sums, const Workers& workers);
  void (*norm)(const NormProblem& problem, const Workers& workers);
  void (*norm_backward)(const NormBackwardProblem& problem, const Workers& workers);
  void (*gelu)(const TensorView& y, const ConstTensorView& x, const Workers& workers);
  void (*gelu_backward)(const TensorView& dx, const ConstTensorView& dy, const ConstTensorView& x,
                        const Workers& workers);
  void (*embed)(const TensorView& y, std::span<const std::int32_t> tokens, const ConstTensorView& table,
                const Workers& workers);
  void (*embed_backward)(const TensorView& dtable, const ConstTensorView& dy, std::span<const std::int32_t> tokens,
                         const Workers& workers);
  // The sum over targets, in order, of −log softmax(logits)[target]. Waits for the result.
  double (*cross_entropy)(const CrossEntropyProblem& problem, const Workers& workers);
  // start + Σ x², in one chain of doubles; x is contiguous. Waits for the result.
  double (*add_squares)(double start, const ConstTensorView& x, const Workers& workers);
  void (*scale)(const TensorView& x, double factor, const Workers& workers);  // x is contiguous
  void (*adam)(const AdamProblem& problem, const Workers& workers);
};

}  // namespace rapt
