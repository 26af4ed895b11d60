// The gradient of one score, for the plain backward kernels: the steps of src/reference/backward.cc.
//
//   8.  g'_j = dout · v_j + the upstream gradient of p'_j
//   7.  g_j  = g'_j · keep / (1 − rate) + the upstream gradient of p_j
//   6.  ds_j = p_j · (g_j − delta)       delta = Σ_k p_k g_k − dlse
//   5.  ds_j = 0 for a hidden key and for a weight of 0, even if its v or the row's delta is NaN
//   4.  ds_j = 0 for a filled score
#pragma once

#include <cstdint>

#include "cuda/plain_row.cuh"
#include "cuda/selected.cuh"

namespace rapt::RAPT_KERNELS {

// What the backward pass keeps for each row, in the order of Row::number.
struct RowSums {
  RowState* states = nullptr;
  float* deltas = nullptr;
};

// The weight of a key before dropout, and the derivative of the softcap at its score.
struct Weight {
  float p = 0.0F;
  float slope = 1.0F;
};

RAPT_HOST_DEVICE Weight weight_of(const Arguments& call, const Row& row, const RowState& state, std::int32_t j) {
  Weight weight;
  if (!row.visible.sees(j)) return weight;
  const float capped = capped_score(call, row, j);
  const float s = apply_terms(call, row.sequence, row.head, row.i, j, capped);
  if (s == kHidden) return weight;
  weight.p = state.weight(s);
  if (call.softcap != 0.0F) {
    const float tanh = capped / call.softcap;
    weight.slope = fmaf(-tanh, tanh, 1.0F);
  }
  return weight;
}

// The gradient of the weight of key j that one upstream gradient `from` gives. A selection may name a head or a query
// several times; the numbers for all of these places are added.
RAPT_HOST_DEVICE float arriving(const Arguments& call, const Selected& from, const Row& row, std::int32_t j) {
  float sum = 0.0F;
  for_each_place(call, from.heads, row.head, [&](std::int32_t head) {
    for_each_place(call, from.queries, row.query(), [&](std::int32_t query) {
      const std::int64_t place = from.tensor.offset(row.sequence.batch, from.mean_over_heads ? 0 : head, query,
                                                    std::int64_t{row.sequence.key_begin} + j);
      sum += load_float(from.tensor.data, from.tensor.dtype, place);
    });
  });
  return from.mean_over_heads ? sum / static_cast<float>(count_of(from.heads, call.query_heads)) : sum;
}

// g_j
RAPT_HOST_DEVICE float weight_gradient(const Arguments& call, const Gradients& gradients, const Row& row,
                                       std::int32_t j) {
  float dropped = 0.0F, kept = 0.0F;
  if (gradients.dout.data != nullptr) {
    const MemoryRow dout = memory_row(gradients.dout, row.sequence.batch, row.head, row.query());
    dropped = dot(dout, value_row(call, row, j), call.value_size);
  }
  for (std::int32_t n = 0; n < gradients.weights_count; ++n) {
    const Selected& from = reinterpret_cast<const Selected*>(call.lists.block() + gradients.weights)[n];
    const float one = arriving(call, from, row, j);
    if (from.stage == CaptureStage::dropped_weights) {
      dropped += one;
    } else {
      kept += one;
    }
  }
  return fmaf(dropped, dropout_factor(call, row, j), kept);
}

// ds_j; with `uncap`, times the derivative of the softcap.
RAPT_HOST_DEVICE float score_gradient(const Arguments& call, const Gradients& gradients, const Row& row,
                                      const RowSums& sums, std::int32_t j, bool uncap) {
  const Weight weight = weight_of(call, row, sums.states[row.number], j);
  if (weight.p == 0.0F || is_filled(call, row.sequence, row.head, row.i, j)) return 0.0F;
  const float ds = weight.p * (weight_gradient(call, gradients, row, j) - sums.deltas[row.number]);
  return uncap ? ds * weight.slope : ds;
}

}  // namespace rapt::RAPT_KERNELS
