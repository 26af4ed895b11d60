// What must hold for any input: it is rejected with rapt::Error, or read in full, and what was read and written again
// reads the same. Each function throws std::logic_error where that does not hold.
#pragma once

#include <cstddef>
#include <span>

namespace rapt::fuzz {

void check_safetensors(std::span<const std::byte> bytes);
void check_npy(std::span<const std::byte> bytes);
void check_npz(std::span<const std::byte> bytes);

}  // namespace rapt::fuzz
