// The frequencies of rotary embedding, and the factor on cos and sin.
#pragma once

#include <vector>

#include "attention/checks.h"
#include "rapt/rotary.h"

namespace rapt::nn {

// Validates the options; `size` is already the number of rotated dimensions.
void check_scaling(const Checks& checks, double base, std::int64_t size, const RotaryScaling& scaling);

// (size / 2), in double.
std::vector<double> rotary_frequencies(double base, std::int64_t size, const RotaryScaling& scaling);

double rotary_attention_factor(const RotaryScaling& scaling);

}  // namespace rapt::nn
