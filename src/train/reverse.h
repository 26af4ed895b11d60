// A task for one layer: letters, a bar, and then the same letters in reverse order.
//
//   vnqkdhxwzebt|tbezwxhdkqnv
#pragma once

#include <cstdint>
#include <string>

#include "train/task.h"

namespace rapt::train {

class Reverse final : public Task {
 public:
  static constexpr std::int64_t kLetters = 12;
  static constexpr char kBar = '|';

  Reverse();
  std::string name() const override { return "reverse"; }
  Batch batch(std::uint64_t seed, std::int64_t step) const override;
  Evaluation evaluate(const Transformer& model) const override;
};

}  // namespace rapt::train
