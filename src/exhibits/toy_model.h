// The small model that `rapt explain` walks through: made by hand, not trained, so that every head has one visible job.
//
// A token's embedding encodes its word (numbers 0 … 11) and its position (12 … 23). The projections are made for four
// heads of six numbers:
//
//   numbers    q asks for                 k offers
//    0 …  5    the position before mine   my position       "previous word"
//    6 … 11    my word                    my word           "same word"
//   12 … 17    position 0                 my position       "first word"
//   18 … 23    the position after mine    my position       "next word"
//
// The matrices do not depend on the number of heads. With another number of heads, the same 24 numbers are split
// differently: two heads have two jobs each, one head has all four and must average them.
#pragma once

#include <cstdint>

#include "exhibits/tokens.h"
#include "rapt/tensor.h"

namespace rapt::exhibits {

inline constexpr std::int64_t kEmbedding = 24;  // E
inline constexpr std::int64_t kDefaultHeads = 4;
inline constexpr std::int64_t kWho = 12;  // how many of the E numbers encode the word; the others encode the position

// All (E, E), f64, as nn.Linear holds them: y[r] = Σ_c w[r, c] · x[c].
struct Projections {
  Tensor w_q;
  Tensor w_k;
  Tensor w_v;
  Tensor w_o;
};

Projections make_projections();
Tensor embed(const Sentence& sentence);                                  // (1, L, E), f64
Tensor linear(const ConstTensorView& x, const ConstTensorView& weight);  // (1, L, E) x (E, E) -> (1, L, E)

}  // namespace rapt::exhibits
