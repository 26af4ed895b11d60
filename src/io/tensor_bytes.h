// A view's elements as the bytes of a file.
#pragma once

#include <functional>

#include "io/bytes.h"
#include "io/file_checks.h"
#include "rapt/tensor.h"

namespace rapt::io {

// Rejects a view that cannot be written: undefined, on another device, or without memory.
void require_writable(const ConstTensorView& view, const FileChecks& checks);

std::uint64_t byte_count(const ConstTensorView& view);

// Visits the elements in row-major order, in blocks: in place if contiguous, otherwise packed in a small buffer. Bools
// become 0 and 1.
void for_each_block(const ConstTensorView& view, const std::function<void(Bytes)>& take);

// Turns bytes other than 0 and 1 into 1.
void make_bools(std::span<std::byte> bytes);

}  // namespace rapt::io
