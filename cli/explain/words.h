// The texts of `rapt explain` in each language. Numbers are placeholders {0}, {1}, …, so that each language can order
// them freely.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "exhibits/exhibit.h"

namespace rapt::cli {

using exhibits::Lang;

struct Words {
  std::string_view sentence;  // the built-in one
  std::string_view title;
  std::string_view sizes;      // {0} L, {1} E, {2} H, {3} D
  std::string_view made;       // where the numbers come from
  std::string_view shortened;  // {0} tokens shown, {1} tokens

  std::string_view embedding;  // {0} last number of the word code, {1} first of the position, {2} last of the position
  std::string_view who;
  std::string_view where;
  std::string_view projections;  // {0} E, {1} the followed token
  std::string_view split;        // {0} 4·E·E, {1} E
  std::string_view split_in_memory;
  std::string_view split_pieces;  // {0} token
  std::string_view head;          // {0} number
  std::string_view numbers_of;    // {0} first, {1} last
  std::string_view scores;        // {0} token
  std::string_view by_hand;       // {0} head, {1} query token, {2} key token
  std::string_view more;          // {0} how many terms
  std::string_view scale;         // {0} variance before, {1} after, {2} d_k, {3} largest weight without, {4} with
  std::string_view no_mask;
  std::string_view causal_mask;
  std::string_view causal_row;  // {0} token, {1} last key it sees
  std::string_view softmax;
  std::string_view edges;
  std::string_view hidden_key;
  std::string_view blinded;  // {0} head
  std::string_view one_head;
  std::string_view dropout;
  std::string_view weighted_sum;  // {0} token, {1} head
  std::string_view other_keys;    // {0} how many, {1} their weight
  std::string_view combine;
  std::string_view combine_copy;
  std::string_view output;
  std::string_view checks;
  std::string_view rows_sum;    // {0} error
  std::string_view out_equals;  // {0} error
  std::string_view try_next;
  std::string_view try_causal;
  std::string_view try_wrong;
  std::string_view try_heads;
  std::string_view try_questions;
  std::string_view try_text;
  std::string_view try_lang;
  std::string_view try_lang_means;
  std::string_view try_json;

  std::string_view habit_previous;  // {0} percent
  std::string_view habit_same;
  std::string_view habit_itself;
  std::string_view habit_first;
  std::string_view habit_next;
  std::string_view habit_blinded;
  std::string_view habit_spread;  // {0} keys

  std::string_view wrong_title;
  std::string_view wrong_intro;
  std::string_view right_name;
  std::string_view wrong_name;
  std::string_view wrong_memory;  // {0} numbers, {1} E
  std::string_view wrong_holds;
  std::string_view wrong_rows;  // {0} misplaced, {1} all
  std::string_view wrong_weights;
  std::string_view wrong_same;  // {0} H, {1} L
  std::string_view breaks;
  std::string_view weights_differ;  // {0} largest difference
  std::string_view output_differs;  // {0} percent
  std::string_view leak;
  std::string_view leak_right;  // {0} how many, {1} of how many
  std::string_view leak_wrong;  // {0} how many, {1} of how many
  std::string_view why_right;

  std::string_view error_empty;
  std::string_view error_long;    // {0} tokens, {1} most
  std::string_view error_heads;   // {0} N
  std::string_view error_divide;  // {0} N, {1} E, {2} E / N, {3} which work
};

const Words& words(Lang lang);

template <class... Args>
std::string say(std::string_view pattern, const Args&... args) {
  return fmt::format(fmt::runtime(pattern), args...);
}

}  // namespace rapt::cli
