// What must hold for any input: it is either rejected with rapt::Error or read completely. After writing and reading a
// file of tensors again, the result is the same; the tokens of a tokenizer are tokens that it has. Each function throws
// std::logic_error if this does not hold.
#pragma once

#include <cstddef>
#include <span>

namespace rapt::fuzz {

void check_safetensors(std::span<const std::byte> bytes);
void check_npy(std::span<const std::byte> bytes);
void check_npz(std::span<const std::byte> bytes);
// Files of a tokenizer, separated by zero bytes. Each starts with its name and the end of a line.
void check_tokenizer(std::span<const std::byte> bytes);

}  // namespace rapt::fuzz
