// A digest of results: two builds that print the same digest computed the same bits.
#pragma once

#include <cstdint>
#include <string>

#include "cases/case.h"

namespace rapt::cases {

// FNV-1a over the elements of every added tensor, in row-major order, each as the bits of an f64 (exact for every
// narrower type), preceded by the shape. All NaNs count as equal: the arithmetic contract specifies where a NaN occurs,
// not its bits.
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

// Adds the results of layers on one engine: forward, backward, cached steps, and the training of a small model; for the
// CPU engine, rotations too.
void add_layers(Engine engine, Digest& digest);

}  // namespace rapt::cases
