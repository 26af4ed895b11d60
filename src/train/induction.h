// The induction task: random tokens, a block of tokens, and later the same block again.
//
//   x q B 7 k M w 2 … r t B 7 k M w 2        in the repeat, each next token can be read off the first occurrence
//
// The task takes two steps, which two layers with one head each learn. In the first layer every token attends to the
// previous one. The second layer finds the position whose previous token equals the current token, and predicts the
// token at that position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/draw.h"
#include "train/task.h"

namespace rapt::train {

class Induction final : public Task {
 public:
  static constexpr std::int64_t kLength = 32, kBlock = 8;

  Induction();
  std::string name() const override { return "induction"; }
  Batch batch(std::uint64_t seed, std::int64_t step) const override;
  Evaluation evaluate(const Transformer& model) const override;

  // One row: where the block begins, and how many tokens later it is repeated.
  struct Row {
    std::vector<std::int32_t> tokens;
    std::int64_t block = 0, distance = 0;
  };
  static Row row(Draw& draw);
};

}  // namespace rapt::train
