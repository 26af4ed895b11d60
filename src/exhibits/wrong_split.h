// A common mistake, made on purpose: view(B, H, L, D) instead of view(B, L, H, D).transpose(1, 2). The shape is the
// same and there is no error, but a "head" is then a slice of the sentence instead of a slice of every token.
#pragma once

#include <cstdint>
#include <vector>

#include "exhibits/walk.h"
#include "rapt/tensor.h"

namespace rapt::exhibits {

// What row `row` of head `head` holds under the wrong view: D numbers of a token, starting at its number `first`.
struct Piece {
  std::int64_t token = 0;
  std::int64_t first = 0;
};
Piece wrong_piece(const Walk& walk, std::int64_t head, std::int64_t row);

struct WrongSplit {
  Tensor weights;                   // (B, H, L, L)
  Tensor heads_out;                 // (B, H, L, D)
  Tensor y;                         // (B, L, E)
  std::int64_t misplaced_rows = 0;  // of H·L: rows that do not hold their token
  double weights_difference = 0;    // the largest |wrong − right|
  double output_difference = 0;     // |wrong − right| / |right|, Euclidean, of y
  // With a causal mask, the last word is changed: which earlier tokens' outputs change? With the right split, none may.
  std::vector<std::int64_t> leaks_right;
  std::vector<std::int64_t> leaks_wrong;
};

WrongSplit split_wrongly(const Walk& walk);

}  // namespace rapt::exhibits
