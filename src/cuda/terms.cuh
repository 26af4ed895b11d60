// Steps 2 to 5 of attention (rapt/attention.h) for one score: softcap, additive terms, fill, hide.
//
// A score belongs to query i and key j of a sequence. Sums are in f32, as in the definition: −1e9 + s is −1e9, an
// ordinary number, and only −inf hides a key.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/arguments.h"
#include "cuda/elements.cuh"

namespace rapt::cuda {

inline constexpr float kHidden = -__builtin_huge_valf();  // −inf

// The offset of a mask's element for key 0 of a row. The element for key j is j · view.element further on.
RAPT_HOST_DEVICE std::int64_t row_offset(const MaskTerm& mask, const Sequence& sequence, std::int32_t head,
                                         std::int32_t i) {
  return mask.view.offset(sequence.batch, head, std::int64_t{sequence.query_begin} + i, sequence.key_begin);
}

RAPT_HOST_DEVICE bool is_true(const MaskTerm& mask, std::int64_t offset) {
  return load_truth(mask.view.data, mask.view.dtype, offset);
}

// Step 2.
RAPT_HOST_DEVICE float softcap(float s, float cap) { return cap * tanhf(s / cap); }

// Step 3. A term of −inf hides the key even if the score is NaN: NaN + −inf would be NaN.
RAPT_HOST_DEVICE float add_term(float s, float term) { return term == kHidden ? kHidden : s + term; }

RAPT_HOST_DEVICE float add_mask(float s, const MaskTerm& mask, std::int64_t offset) {
  if (mask.view.dtype == DType::f64) {  // the sum is rounded, not the term
    const double term = static_cast<const double*>(mask.view.data)[offset];
    return term == static_cast<double>(kHidden) ? kHidden : static_cast<float>(static_cast<double>(s) + term);
  }
  return add_term(s, load_float(mask.view.data, mask.view.dtype, offset));
}

RAPT_HOST_DEVICE float add_alibi(float s, float slope, const Sequence& sequence, std::int32_t i, std::int32_t j) {
  const std::int64_t distance = std::int64_t{i} + sequence.offset - j;
  return fmaf(-slope, static_cast<float>(distance < 0 ? -distance : distance), s);
}

// Steps 3, 4 and 5 for a key that the causal mask, the window and the key length leave visible.
RAPT_HOST_DEVICE float apply_terms(const Arguments& call, const Sequence& sequence, std::int32_t head, std::int32_t i,
                                   std::int32_t j, float s) {
  const auto offset = [&](const MaskTerm& mask) { return row_offset(mask, sequence, head, i) + j * mask.view.element; };
  for (std::int32_t n = 0; n < call.mask_count; ++n) {
    const MaskTerm& mask = call.mask(n);
    if (mask.kind == MaskKind::add) s = add_mask(s, mask, offset(mask));
  }
  if (call.has_alibi) s = add_alibi(s, call.slope(head), sequence, i, j);
  bool hidden = false;
  for (std::int32_t n = 0; n < call.mask_count; ++n) {
    const MaskTerm& mask = call.mask(n);
    if (mask.kind == MaskKind::add) continue;
    const bool truth = is_true(mask, offset(mask));
    if (mask.kind == MaskKind::fill) {
      s = truth ? static_cast<float>(mask.value) : s;
    } else {
      hidden = hidden || truth == (mask.kind == MaskKind::drop);
    }
  }
  return hidden ? kHidden : s;
}

// Whether a Mask::fill replaces the score, so that no gradient passes through it.
RAPT_HOST_DEVICE bool is_filled(const Arguments& call, const Sequence& sequence, std::int32_t head, std::int32_t i,
                                std::int32_t j) {
  for (std::int32_t n = 0; n < call.mask_count; ++n) {
    const MaskTerm& mask = call.mask(n);
    if (mask.kind != MaskKind::fill) continue;
    if (is_true(mask, row_offset(mask, sequence, head, i) + j * mask.view.element)) return true;
  }
  return false;
}

}  // namespace rapt::cuda
