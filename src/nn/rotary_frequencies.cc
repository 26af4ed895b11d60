// The scalings as formulas, in double. They match transformers' rope functions, as tests check with tests/data/rotary.
#include "nn/rotary_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rapt::nn {

namespace {

using Kind = RotaryScaling::Kind;

constexpr double kTurn = 2.0 * std::numbers::pi;

// The factor on base such that the last pair, whose exponent is (size − 2) / size, slows down by exactly `factor`.
double ntk_base(double factor, double size) { return std::pow(factor, size / (size - 2.0)); }

double dynamic_factor(const RotaryScaling& scaling) {
  const auto original = static_cast<double>(scaling.original_length);
  const double length = std::max(static_cast<double>(scaling.length), original);
  return scaling.factor * length / original - (scaling.factor - 1.0);
}

double scaled_base(double base, double size, const RotaryScaling& scaling) {
  if (scaling.kind == Kind::ntk) return base * ntk_base(scaling.factor, size);
  if (scaling.kind == Kind::dynamic) return base * ntk_base(dynamic_factor(scaling), size);
  return base;
}

// The range of pairs over which yarn blends from the original frequency to the frequency divided by the factor.
struct Ramp {
  Ramp(double base, double size, const RotaryScaling& scaling) {
    // The index of the pair, as a real number, that makes this many rotations over the original length.
    const auto pair_that_turns = [&](double turns) {
      const double wave = static_cast<double>(scaling.original_length) / (turns * kTurn);
      return size * std::log(wave) / (2.0 * std::log(base));
    };
    first = pair_that_turns(scaling.ramp.beta_fast);
    last = pair_that_turns(scaling.ramp.beta_slow);
    if (scaling.ramp.truncate) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0);
    last = std::min(last, size - 1.0);
    if (first == last) last += 0.001;  // the ramp is a step, without a division by 0
  }
  double at(std::size_t pair) const {
    return std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
  }

  double first, last;
};

double llama3_frequency(double frequency, const RotaryScaling& scaling) {
  const double turns = static_cast<double>(scaling.original_length) * frequency / kTurn;
  if (turns > scaling.high_freq_factor) return frequency;
  if (turns < scaling.low_freq_factor) return frequency / scaling.factor;
  const double kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - kept) * frequency / scaling.factor + kept * frequency;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::none: return "none";
    case Kind::linear: return "linear";
    case Kind::ntk: return "ntk";
    case Kind::dynamic: return "dynamic";
    case Kind::yarn: return "yarn";
    case Kind::llama3: return "llama3";
  }
  return "?";
}

}  // namespace

void check_scaling(const Checks& checks, double base, std::int64_t size, const RotaryScaling& scaling) {
  const Kind kind = scaling.kind;
  const auto positive = [](double value) { return std::isfinite(value) && value > 0.0; };
  checks.require(positive(base), "base is ", base, "; it must be finite and above 0");
  if (kind == Kind::none) return;
  checks.require(positive(scaling.factor), "scaling.factor is ", scaling.factor, "; it must be finite and above 0");
  if (kind == Kind::ntk || kind == Kind::dynamic) {
    checks.require(size > 2, name_of(kind), " scaling is requested with size ", size,
                   "; its exponent is size / (size - 2), so size must be above 2");
  }
  if (kind == Kind::dynamic || kind == Kind::yarn || kind == Kind::llama3) {
    checks.require(scaling.original_length > 0, "scaling.original_length is ", scaling.original_length, "; ",
                   name_of(kind), " scaling needs the number of positions that the model was trained on");
  }
  if (kind == Kind::dynamic) {
    checks.require(scaling.length >= 0, "scaling.length is ", scaling.length, "; it must not be negative");
  }
  if (kind == Kind::yarn) {
    const RotaryScaling::Yarn& ramp = scaling.ramp;
    checks.require(base > 1.0, "base is ", base, "; yarn scaling takes its logarithm, so it must be above 1");
    checks.require(positive(ramp.beta_slow) && std::isfinite(ramp.beta_fast) && ramp.beta_fast > ramp.beta_slow,
                   "scaling.ramp has beta_fast ", ramp.beta_fast, " and beta_slow ", ramp.beta_slow,
                   "; the first must be larger, and both above 0");
    checks.require(positive(ramp.attention_factor.value_or(1.0)), "scaling.ramp.attention_factor is ",
                   ramp.attention_factor.value_or(1.0), "; it must be finite and above 0");
  }
  if (kind == Kind::llama3) {
    checks.require(positive(scaling.low_freq_factor) && std::isfinite(scaling.high_freq_factor) &&
                       scaling.high_freq_factor > scaling.low_freq_factor,
                   "scaling has low_freq_factor ", scaling.low_freq_factor, " and high_freq_factor ",
                   scaling.high_freq_factor, "; the second must be larger, and both above 0");
  }
}

std::vector<double> rotary_frequencies(double base, std::int64_t size, const RotaryScaling& scaling) {
  const auto width = static_cast<double>(size);
  const double used_base = scaled_base(base, width, scaling);
  std::vector<double> frequencies(static_cast<std::size_t>(size / 2));
  for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
    frequencies[pair] = 1.0 / std::pow(used_base, static_cast<double>(2 * pair) / width);
  }
  if (scaling.kind == Kind::linear) {
    for (double& frequency : frequencies) frequency /= scaling.factor;
  } else if (scaling.kind == Kind::llama3) {
    for (double& frequency : frequencies) frequency = llama3_frequency(frequency, scaling);
  } else if (scaling.kind == Kind::yarn) {
    const Ramp ramp(base, width, scaling);
    for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
      const double divided = ramp.at(pair);
      frequencies[pair] = frequencies[pair] / scaling.factor * divided + frequencies[pair] * (1.0 - divided);
    }
  }
  return frequencies;
}

double rotary_attention_factor(const RotaryScaling& scaling) {
  if (scaling.kind != Kind::yarn) return 1.0;
  if (scaling.ramp.attention_factor) return *scaling.ramp.attention_factor;
  return scaling.factor <= 1.0 ? 1.0 : 0.1 * std::log(scaling.factor) + 1.0;
}

}  // namespace rapt::nn
