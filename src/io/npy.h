// Reads an NpyArray from any source of bytes.
#pragma once

#include <functional>

#include "io/npy_header.h"
#include "rapt/npy.h"

namespace rapt::io {

// Fills a span with the next bytes of the data.
using ReadData = std::function<void(std::span<std::byte>)>;

// `available` is the number of bytes after the header: it must match the size of the array exactly, which is checked
// before any memory is allocated.
NpyArray read_array(const NpyHeader& header, std::uint64_t available, const NpyOptions& options,
                    const FileChecks& checks, const ReadData& read);

}  // namespace rapt::io
