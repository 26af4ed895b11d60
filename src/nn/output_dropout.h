// Dropout of a layer's output (resid_dropout).
#pragma once

#include "core/product.h"
#include "nn/layer_call.h"

namespace rapt::nn {

// Number o of token i of batch row b is kept iff word o mod 4 of Philox counter (b + b0, 2³² − 1, i + i0, ⌊o / 4⌋) is
// at least rate · 2³², with the key and the starts b0 and i0 of the dropout of weights, where no head has that number.
// What is kept is multiplied by 1 / (1 − rate). Slices of a layer drop the same numbers, so they still add up.
// `out` is (B, L, O): the output, or in backward its gradient.
void drop_output(const LayerCall& call, const TensorView& out, const Workers& workers);

}  // namespace rapt::nn
