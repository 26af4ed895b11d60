// A digest of answers: two builds that print the same one computed the same bits.
#pragma once

#include <cstdint>
#include <string>

#include "cases/case.h"

namespace rapt::cases {

// FNV-1a over the elements of every tensor that is added, in row-major order, each as the bits of an f64 (which is
// exact for every narrower type) with its shape before it. Every NaN counts as the same one: the arithmetic contract
// says where a NaN is, and not which.
class Digest {
 public:
  void add(const ConstTensorView& tensor);
  void add(double value);
  void add(const Answer& answer);
  void add(const Gradients& gradients);

  std::string text() const;  // 16 hexadecimal digits

 private:
  void add_word(std::uint64_t word);

  std::uint64_t state_ = 0xCBF29CE484222325U;
};

// Adds what layers give on one engine: forward, backward, cached steps, and, on the CPU engine, training.
void add_layers(Engine engine, Digest& digest);

}  // namespace rapt::cases
