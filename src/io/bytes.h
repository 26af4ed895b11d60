// Little-endian numbers in files, and arithmetic that reports overflow.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace rapt::io {

// The numbers in all headers here are little-endian, and are read without conversion.
static_assert(std::endian::native == std::endian::little);

using Bytes = std::span<const std::byte>;

// The caller has checked that there are enough bytes.
template <class T>
T read_number(Bytes bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // NOLINT: bytes are characters here
}
inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// The number of elements of a shape; nullopt if it overflows. Sizes of 0 are multiplied last, as in rapt::Layout, so
// (0, 2^40, 2^40) is rejected like (1, 2^40, 2^40).
template <class Shape>
std::optional<std::uint64_t> checked_count(const Shape& shape) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, size, &count)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(count);
}

}  // namespace rapt::io
