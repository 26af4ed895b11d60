// Rotary embedding. Tokens are processed in blocks: the angles of a block are computed once for all heads.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu/convert.h"
#include "cpu/layer/layer_kernels.h"
#include "cpu/layer/layer_ops.h"
#include "cpu/layer/rows.h"

namespace rapt::cpu {

namespace {

constexpr std::int64_t kMaxPairs = 512;       // of one token, rotated together
constexpr std::int64_t kBlockPairs = 2048;    // in one block: their angles and a head's elements stay in L1
constexpr std::int64_t kMaxTokens = 64;       // in one block
constexpr std::int64_t kTurnCost = 2;         // per element, in multiply-adds
constexpr std::int64_t kAngleInNumbers = 32;  // the cost of a cosine and a sine, relative to rotating one element

// The only place that computes cosines and sines, so that a table and a call have the same bits.
template <class C>
void find_angles(std::span<const double> frequencies, double factor, std::int64_t position, C* cosines, C* sines) {
  for (std::size_t n = 0; n < frequencies.size(); ++n) {
    const double angle = static_cast<double>(position) * frequencies[n];
    cosines[n] = static_cast<C>(std::cos(angle) * factor);
    sines[n] = static_cast<C>(std::sin(angle) * factor);
  }
}

// Pair n is first[n] and second[n]; the arrays do not overlap. With `first` and `second` swapped, this is the inverse
// rotation.
void turn_halves(float* first, float* second, const float* cosines, const float* sines, std::int64_t count) {
  layer_kernels().turn_halves(first, second, cosines, sines, count);
}
void turn_halves(double* first, double* second, const double* cosines, const double* sines, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n) {
    const double x1 = first[n], x2 = second[n];
    first[n] = x1 * cosines[n] - x2 * sines[n];
    second[n] = x2 * cosines[n] + x1 * sines[n];
  }
}

// Pair n is x[2n] and x[2n + 1]; `sign` is −1 for the inverse rotation.
void turn_neighbours(float* x, float sign, const float* cosines, const float* sines, std::int64_t count) {
  layer_kernels().turn_neighbours(x, sign, cosines, sines, count);
}
void turn_neighbours(double* x, double sign, const double* cosines, const double* sines, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n) {
    const double x1 = x[2 * n], x2 = x[2 * n + 1], sine = sign * sines[n];
    x[2 * n] = x1 * cosines[n] - x2 * sine;
    x[2 * n + 1] = x2 * cosines[n] + x1 * sine;
  }
}

// Converts elements of any float type, `step` apart, to the compute type and back, rounded once.
void load(const std::byte* from, DType dtype, std::int64_t step, std::int64_t count, float* to) {
  if (step == 1) return layer_kernels().widen(from, dtype, to, count);
  load_row(from, dtype, 0, step, count, to);
}
void load(const std::byte* from, DType /*f64*/, std::int64_t step, std::int64_t count, double* to) {
  for (std::int64_t n = 0; n < count; ++n) to[n] = reinterpret_cast<const double*>(from)[n * step];
}
void store(const float* from, std::int64_t count, std::byte* to, DType dtype, std::int64_t step) {
  if (step == 1) return layer_kernels().narrow(from, to, dtype, count);
  store_row(from, count, to, dtype, 0, step);
}
void store(const double* from, std::int64_t count, std::byte* to, DType /*f64*/, std::int64_t step) {
  for (std::int64_t n = 0; n < count; ++n) reinterpret_cast<double*>(to)[n * step] = from[n];
}

// C is the compute type: float, or double for f64.
template <class C>
class Rotation {
 public:
  explicit Rotation(const RotaryProblem& problem)
      : p_(problem),
        half_(static_cast<std::int64_t>(problem.angles.frequencies.size())),
        from_size_(static_cast<std::int64_t>(size_of(problem.from.dtype()))),
        to_size_(static_cast<std::int64_t>(size_of(problem.to.dtype()))),
        step_(problem.to.stride(3)),
        in_place_(problem.from.data() == problem.to.data()),
        one_type_(problem.from.dtype() == problem.to.dtype()) {}

  // Rotates tokens begin … end − 1 of all B · L.
  void run(std::int64_t begin, std::int64_t end) {
    const std::int64_t length = p_.to.size(2);
    const std::int64_t most = std::clamp<std::int64_t>(kBlockPairs / std::min(half_, kMaxPairs), 1, kMaxTokens);
    while (begin < end) {
      const std::int64_t b = begin / length, i = begin % length;
      const std::int64_t tokens = std::min({most, length - i, end - begin});
      for (std::int64_t pair = 0; pair < half_; pair += kMaxPairs) {
        rotate_block(b, i, tokens, pair, std::min(kMaxPairs, half_ - pair));
      }
      begin += tokens;
    }
  }

 private:
  struct Angles {
    const C* cosines;
    const C* sines;
  };

  void rotate_block(std::int64_t b, std::int64_t i, std::int64_t tokens, std::int64_t pair, std::int64_t count) {
    for (std::int64_t n = 0; n < tokens; ++n) angles_[index(n)] = angles(p_.positions.at(b, i + n), n, pair, count);
    const std::int64_t heads = p_.to.size(1);
    // Rotates in memory order: in (B, H, L, D) tokens are adjacent, in (B, L, H, D) heads are.
    if (std::abs(p_.to.stride(1)) < std::abs(p_.to.stride(2))) {
      for (std::int64_t n = 0; n < tokens; ++n) {
        for (std::int64_t h = 0; h < heads; ++h) rotate_row(b, h, i + n, angles_[index(n)], pair, count);
      }
    } else {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t n = 0; n < tokens; ++n) rotate_row(b, h, i + n, angles_[index(n)], pair, count);
      }
    }
  }

  // Angles of `count` pairs from `pair` on, for token n of the block.
  Angles angles(std::int64_t position, std::int64_t n, std::int64_t pair, std::int64_t count) {
    if constexpr (std::is_same_v<C, float>) {
      if (position < p_.table_positions) {
        const float* row = p_.table + position * 2 * half_ + pair;
        return {row, row + half_};
      }
    }
    C* cosines = cosines_.data() + n * count;
    C* sines = sines_.data() + n * count;
    find_angles(p_.angles.frequencies.subspan(index(pair), index(count)), p_.angles.attention_factor, position, cosines,
                sines);
    return {cosines, sines};
  }

  void rotate_row(std::int64_t b, std::int64_t h, std::int64_t i, const Angles& by, std::int64_t pair,
                  std::int64_t count) {
    const std::byte* from = static_cast<const std::byte*>(p_.from.data()) + offset(p_.from, b, h, i) * from_size_;
    std::byte* to = static_cast<std::byte*>(p_.to.data()) + offset(p_.to, b, h, i) * to_size_;
    if (!in_place_ && pair == 0) copy_row(from, to);
    if (one_type_ && step_ == 1 && p_.to.dtype() == dtype_of<C>) {
      C* x = reinterpret_cast<C*>(to);
      if (p_.pairs == RotaryPairs::half_split) {
        C* first = x + pair;
        C* second = x + half_ + pair;
        if (p_.back) std::swap(first, second);
        turn_halves(first, second, by.cosines, by.sines, count);
      } else {
        turn_neighbours(x + 2 * pair, static_cast<C>(p_.back ? -1 : 1), by.cosines, by.sines, count);
      }
      return;
    }
    // Strides from pair to pair, and from the first element of a pair to the second.
    const bool halves = p_.pairs == RotaryPairs::half_split;
    const std::int64_t stride = halves ? 1 : 2, apart = halves ? half_ : 1;
    const std::int64_t from_step = one_type_ ? step_ : p_.from.stride(3);
    const std::byte* source = one_type_ ? to : from;
    const auto read = [&](std::int64_t first, std::array<C, kMaxPairs>& numbers) {
      load(source + first * from_step * from_size_, p_.from.dtype(), stride * from_step, count, numbers.data());
    };
    const auto write = [&](std::int64_t first, const std::array<C, kMaxPairs>& numbers) {
      store(numbers.data(), count, to + first * step_ * to_size_, p_.to.dtype(), stride * step_);
    };
    read(stride * pair, first_);
    read(stride * pair + apart, second_);
    C* const pair_parts[] = {first_.data(), second_.data()};
    turn_halves(pair_parts[p_.back ? 1 : 0], pair_parts[p_.back ? 0 : 1], by.cosines, by.sines, count);
    write(stride * pair, first_);
    write(stride * pair + apart, second_);
  }

  // Copies a row to `to`, where it is then rotated. If the types differ, copies only the elements that are not rotated,
  // because rotate_row converts the others.
  void copy_row(const std::byte* from, std::byte* to) const {
    const std::int64_t from_step = p_.from.stride(3), size = p_.to.size(3);
    if (one_type_ && step_ == 1 && from_step == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(size * to_size_));
      return;
    }
    for (std::int64_t d = one_type_ ? 0 : 2 * half_; d < size; ++d) {
      const std::byte* source = from + d * from_step * from_size_;
      std::byte* target = to + d * step_ * to_size_;
      if (one_type_) {
        std::memcpy(target, source, static_cast<std::size_t>(to_size_));
      } else {
        C number;
        load(source, p_.from.dtype(), 1, 1, &number);
        store(&number, 1, target, p_.to.dtype(), 1);
      }
    }
  }

  template <bool kMutable>
  static std::int64_t offset(const BasicTensorView<kMutable>& view, std::int64_t b, std::int64_t h, std::int64_t i) {
    return b * view.stride(0) + h * view.stride(1) + i * view.stride(2);
  }
  static std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

  const RotaryProblem& p_;
  const std::int64_t half_, from_size_, to_size_, step_;
  const bool in_place_, one_type_;
  // These arrays are not initialized, because each element is written before it is read.
  std::array<Angles, kMaxTokens> angles_;
  alignas(64) std::array<C, kBlockPairs> cosines_, sines_;
  alignas(64) std::array<C, kMaxPairs> first_, second_;
};

}  // namespace

void rotate(const RotaryProblem& problem, const Workers& workers) {
  if (problem.to.count() == 0) return;
  const std::int64_t tokens = problem.to.size(0) * problem.to.size(2);
  const auto size = static_cast<std::int64_t>(2 * problem.angles.frequencies.size());
  const std::int64_t angle_cost = problem.table_positions > 0 ? 0 : kAngleInNumbers;
  for_parts(workers, tokens, kTurnCost * tokens * size * (problem.to.size(1) + angle_cost),
            [&](std::int64_t begin, std::int64_t end) {
              if (problem.to.dtype() == DType::f64) {
                Rotation<double>(problem).run(begin, end);
              } else {
                Rotation<float>(problem).run(begin, end);
              }
            });
}

void fill_rotary_table(const RotaryAngles& angles, std::int64_t positions, float* table, const Workers& workers) {
  const auto half = static_cast<std::int64_t>(angles.frequencies.size());
  for_parts(workers, positions, kTurnCost * positions * 2 * half * kAngleInNumbers,
            [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t position = begin; position < end; ++position) {
                float* row = table + position * 2 * half;
                find_angles(angles.frequencies, angles.attention_factor, position, row, row + half);
              }
            });
}

}  // namespace rapt::cpu
