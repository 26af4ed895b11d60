// What each head of a model mostly does with a text, from its weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rapt/tensor.h"

namespace rapt::models {

enum class Habit : std::uint8_t {
  previous,   // the token before
  next,       // the token after
  same,       // equal tokens elsewhere
  itself,     // the token itself
  first,      // the first token: [CLS], <s>, or the first word
  delimiter,  // [SEP], </s>, and punctuation between parts of a text
  induction,  // what followed an earlier occurrence of the token
  spread,     // none of these
};
inline constexpr int kHabits = 8;

struct HeadSummary {
  Habit habit = Habit::spread;
  double share = 0;  // the mean weight on the target of `habit`, over the tokens that have such a target; 0 for spread
  double keys = 0;   // exp of the mean entropy: the effective number of tokens that a row attends to
};

// What a summary needs to know about a token.
struct TokenKind {
  std::int32_t id = 0;
  bool special = false;    // it was added to the text: its own row does not count
  bool delimiter = false;  // other tokens may attend to it as to a delimiter
};

// Whether a token ends or divides: special tokens other than the first, and . , ; : ! ? and their Chinese forms.
bool is_delimiter(const std::string& text, bool special, bool first);

// `weights` is one head's (T, T), in f32.
HeadSummary summarize(const ConstTensorView& weights, std::span<const TokenKind> tokens);
// All heads of (L, H, T, T), layer after layer.
std::vector<HeadSummary> summarize_all(const ConstTensorView& weights, std::span<const TokenKind> tokens);

}  // namespace rapt::models
