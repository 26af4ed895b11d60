// An array's bytes become an NpyArray, wherever they come from.
#pragma once

#include <functional>

#include "io/npy_header.h"
#include "rapt/npy.h"

namespace rapt::io {

// Fills a span with the next bytes of the data.
using ReadData = std::function<void(std::span<std::byte>)>;

// `available` is how many bytes there are after the header: they must be the array's, no more and no fewer, before any
// memory is asked for.
NpyArray read_array(const NpyHeader& header, std::uint64_t available, const NpyOptions& options,
                    const FileChecks& checks, const ReadData& read);

}  // namespace rapt::io
