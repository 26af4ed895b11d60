// Error texts are built from pieces: text("key has head size ", 64, ", query has ", 128).
#pragma once

#include <sstream>
#include <string>

#include "rapt/tensor.h"

namespace rapt {

inline std::ostream& operator<<(std::ostream& stream, const Dims& dims) { return stream << to_string(dims); }
inline std::ostream& operator<<(std::ostream& stream, Device device) { return stream << to_string(device); }
inline std::ostream& operator<<(std::ostream& stream, DType dtype) { return stream << name_of(dtype); }

template <class... Pieces>
std::string text(const Pieces&... pieces) {
  std::ostringstream stream;
  (stream << ... << pieces);
  return stream.str();
}

}  // namespace rapt
