// The built-in model, trained by `rapt train induction --seed 1`.
#pragma once

#include <cstddef>
#include <span>

namespace rapt::train {

// A safetensors file, src/train/data/induction.safetensors.
std::span<const std::byte> builtin_induction();

}  // namespace rapt::train
