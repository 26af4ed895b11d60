// Dropout of a layer's output (resid_dropout).
#pragma once

#include "core/product.h"
#include "nn/layer_call.h"

namespace rapt::nn {

// Element o of token i of batch row b is kept iff word o mod 4 of Philox counter (b + b0, 2³² − 1, i + i0, ⌊o / 4⌋) is
// at least rate · 2³². The key and the starts b0 and i0 are those of weight dropout, whose counters have a head index
// in place of 2³² − 1, so the two never share a random number. Kept elements are multiplied by 1 / (1 − rate). Slices
// of a layer drop the same elements, so their outputs still add up to the whole layer's. `out` is (B, L, O): the
// output, or in backward its gradient.
void drop_output(const LayerCall& call, const TensorView& out, const Workers& workers);

}  // namespace rapt::nn
