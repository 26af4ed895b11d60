// What must hold for any input: it is either rejected with rapt::Error or read completely, and after writing and
// reading it again the result is the same. Each function throws std::logic_error if this does not hold.
#pragma once

#include <cstddef>
#include <span>

namespace rapt::fuzz {

void check_safetensors(std::span<const std::byte> bytes);
void check_npy(std::span<const std::byte> bytes);
void check_npz(std::span<const std::byte> bytes);

}  // namespace rapt::fuzz
