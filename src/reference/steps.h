// The steps of attention for one row, that is one query of one head, in the notation of the formula (rapt/attention.h).
//
// A row holds one number for each key of its sequence: s[j], later p[j], for j = 0 … key_count − 1.
#pragma once

#include <span>

#include "reference/inputs.h"

namespace rapt::reference {

struct Row {
  const AttentionProblem& problem;
  const SequenceSpan& sequence;
  std::int64_t head = 0;
  std::int64_t i = 0;  // query within the sequence

  std::int64_t batch() const { return sequence.batch; }
  std::int64_t kv_head() const { return head / problem.group; }
  std::int64_t query() const { return sequence.query_begin + i; }                                      // as a row of q
  std::int64_t key(std::size_t j) const { return sequence.key_begin + static_cast<std::int64_t>(j); }  // as a row of k
};

double dot(std::span<const double> a, std::span<const double> b);

// Step 1: s = scale · (q·k).
void scores(const Row& row, const Inputs& inputs, std::span<double> s);

// Step 2: s = softcap · tanh(s / softcap).
void cap(const Row& row, std::span<double> s);

// Steps 3 to 5: add, fill, hide. A row sees the keys whose score is then not −inf.
void apply_mask(const Row& row, std::span<double> s);
void find_seen(std::span<const double> s, std::span<bool> seen);

// Whether a Mask::fill replaced the score of key j, so that no gradient passes through it.
bool is_filled(const Row& row, std::size_t j);

// Step 6: turns s into p in place.
struct Softmax {
  double lse = 0.0;   // log Σ exp(s), the sink included
  double sink = 0.0;  // the weight of the sink
};
Softmax softmax(const Row& row, std::span<double> s);

// Step 7: p · keep / (1 − rate).
void dropout(const Row& row, std::span<double> p);

// Step 8: out = p · V. Masked keys are skipped rather than multiplied by 0, because their values may be NaN or
// infinite.
void weighted_sum(const Row& row, const Inputs& inputs, std::span<const bool> seen, std::span<const double> p,
                  std::span<double> out);

}  // namespace rapt::reference
