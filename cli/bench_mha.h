// `rapt bench mha`: the layer, built in several ways, compared with each other and with the cost of its arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "exit_code.h"
#include "terminal.h"

namespace rapt::cli {

class Command;

enum class MhaVariant : std::uint8_t {
  per_head,      // three small products and attention for each head by itself
  separate,      // a product each for q, k and v
  packed,        // one product for all three: what the others are compared with
  plain,         // packed, with the plain formula: all scores are written to memory
  mean_weights,  // packed, and the mean of the weights over heads
  all_weights,   // packed, and the weights of every head
  bf16,          // packed; parameters, input and output in this type
  f16,
  training,          // packed, and back: the gradients of input and parameters
  training_dropout,  // the same with dropout
};

// As the command line spells them.
inline constexpr std::array<std::pair<std::string_view, MhaVariant>, 10> kMhaVariants{{
    {"per-head", MhaVariant::per_head},
    {"separate", MhaVariant::separate},
    {"packed", MhaVariant::packed},
    {"plain", MhaVariant::plain},
    {"mean-weights", MhaVariant::mean_weights},
    {"all-weights", MhaVariant::all_weights},
    {"bf16", MhaVariant::bf16},
    {"f16", MhaVariant::f16},
    {"training", MhaVariant::training},
    {"training-dropout", MhaVariant::training_dropout},
}};

inline bool trains(MhaVariant variant) {
  return variant == MhaVariant::training || variant == MhaVariant::training_dropout;
}

// Self-attention without biases of q, k and v, with one of the output.
struct MhaSizes {
  std::int64_t batch = 8;
  std::int64_t tokens = 1024;
  std::int64_t embed = 768;  // E
  std::int64_t heads = 12;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  bool causal = true;

  std::int64_t head_size() const { return embed / heads; }
  std::int64_t key_width() const { return kv_heads * head_size(); }  // numbers in the keys of a token
  // Of useful work: 2·M·N·K for each projection, 4·D for every (query, key) pair of a head that causal leaves visible.
  // Backward has two products for each projection's one, and five for the two of a pair.
  double flops(MhaVariant variant = MhaVariant::packed) const;
};

struct MhaOptions {
  bool asked = false;  // set when the command is given
  MhaSizes sizes;
  std::vector<MhaVariant> variants;  // empty: all
  std::vector<std::int64_t> threads{1};
  std::int64_t rounds = 9;
  double shortest_sample = 0.02;  // seconds
  bool json = false;
  ColorChoice color = ColorChoice::automatic;
};

void add_bench_mha(Command& bench, MhaOptions& options);
ExitCode run_bench_mha(const MhaOptions& options);

}  // namespace rapt::cli
