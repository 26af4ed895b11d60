// The header of a .npy file:
//   6 bytes    \x93NUMPY
//   2 bytes    version: 1.0, 2.0 or 3.0
//   u16 / u32  the size of the text (u16 in version 1), little-endian
//   text       {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, padded with spaces, then a newline
// and after it the elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/bytes.h"
#include "io/file_checks.h"
#include "rapt/npy.h"

namespace rapt::io {

struct NpyHeader {
  NpyInfo info;
  char kind = 0;                // NumPy's letter: f, i, u, b, V; 0 if it is not a plain number
  std::uint64_t item_size = 0;  // in bytes; 0 if unknown
  std::uint64_t data_begin = 0;
};

// The maximum size of a header, including the bytes before its text: a reader of a compressed file needs no more.
inline constexpr std::size_t kMaxNpyHeader = (std::size_t{1} << 16) + 12;

// `start` is the file, or enough of its start for any header. Does not check whether the data is complete.
NpyHeader parse_npy_header(Bytes start, const FileChecks& checks);

// The header that NumPy would write, for row-major data. Its size is a multiple of 64, so that data is aligned.
std::string npy_header_for(const ConstTensorView& view);

}  // namespace rapt::io
