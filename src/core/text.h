// Builds error messages from parts: text("key has head size ", 64, ", query has ", 128).
#pragma once

#include <locale>
#include <sstream>
#include <string>

#include "rapt/tensor.h"

namespace rapt {

inline std::ostream& operator<<(std::ostream& stream, const Dims& dims) { return stream << to_string(dims); }
inline std::ostream& operator<<(std::ostream& stream, Device device) { return stream << to_string(device); }
inline std::ostream& operator<<(std::ostream& stream, DType dtype) { return stream << name_of(dtype); }

// A stream that is independent of the locale and throws when it runs out of memory; by default it would silently
// truncate the text.
inline std::ostringstream plain_stream() {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  stream.exceptions(std::ios::badbit);
  return stream;
}

template <class... Pieces>
std::string text(const Pieces&... pieces) {
  std::ostringstream stream = plain_stream();
  (stream << ... << pieces);
  return stream.str();
}

}  // namespace rapt
