// One pass of a sentence through multi-head attention, with all intermediate results. The engine computes attention;
// the row sums of its weights and its output are then verified without it.
#pragma once

#include <cstdint>
#include <vector>

#include "exhibits/tokens.h"
#include "exhibits/toy_model.h"
#include "rapt/tensor.h"

namespace rapt::exhibits {

// What a head mostly attends to, derived from its weights. `blinded`: it would attend to the next word, but a causal
// mask hides it.
enum class Habit : std::uint8_t { previous, same, itself, first, next, blinded, spread };

struct HeadSummary {
  Habit habit = Habit::spread;
  double share = 0;          // the mean weight on the target of `habit`
  double keys_in_sight = 0;  // exp of the mean entropy: the effective number of keys of a row
};

// Everything is f64, contiguous, with B = 1.
struct Walk {
  Sentence sentence;
  std::int64_t length = 0;     // L
  std::int64_t heads = 0;      // H
  std::int64_t head_size = 0;  // D
  bool causal = false;

  Projections weight;
  Tensor x;                 // (B, L, E)
  Tensor q, k, v;           // (B, L, E)
  Tensor scores;            // (B, H, L, L)  q·kᵀ
  Tensor scaled;            // (B, H, L, L)  Stage::raw
  Tensor masked;            // (B, H, L, L)  Stage::masked
  Tensor weights;           // (B, H, L, L)  Stage::weights
  Tensor unscaled_weights;  // (B, H, L, L)  softmax without 1/sqrt(d_k): what scaling prevents
  Tensor heads_out;         // (B, H, L, D)
  Tensor combined;          // (B, L, E)
  Tensor y;                 // (B, L, E)
  std::vector<HeadSummary> summary;

  double row_sum_error = 0;  // the largest |Σ_j weights − 1|
  double output_error = 0;   // the largest |heads_out − weights·v|, with v read directly from the (B, L, E) rows
  bool good() const { return row_sum_error < 1e-12 && output_error < 1e-12; }
};

Walk take_walk(Sentence sentence, std::int64_t heads, bool causal);

double variance(const ConstTensorView& scores);              // of all scores
double mean_largest_weight(const ConstTensorView& weights);  // mean over all rows

}  // namespace rapt::exhibits
