#include "cases/digest.h"

#include <bit>
#include <cmath>

namespace rapt::cases {

void Digest::add_word(std::uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) {
    state_ = (state_ ^ (word & 0xFFU)) * 0x100000001B3U;
    word >>= 8;
  }
}

void Digest::add(double value) {
  add_word(std::isnan(value) ? 0x7FF8000000000000U : std::bit_cast<std::uint64_t>(value));
}

void Digest::add(const ConstTensorView& tensor) {
  for (const std::int64_t size : tensor.shape()) add_word(static_cast<std::uint64_t>(size));
  const Tensor exact = Tensor::copy_of(tensor, DType::f64);
  for (const double value : exact.values<double>()) add(value);
}

void Digest::add(const Answer& answer) {
  add(answer.out.view());
  add(answer.lse.view());
  for (const Tensor& capture : answer.captures) add(capture.view());
}

void Digest::add(const Gradients& gradients) {
  for (const Gradient& gradient : gradients) add(gradient.values.view());
}

std::string Digest::text() const {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += kDigits[(state_ >> shift) & 0xFU];
  return hex;
}

}  // namespace rapt::cases
