// The softmax of one row, step by step: maximum, sum, rescaling, and how chunks are merged.
//
// Scores are in base 2 after one multiplication: p = 2^(s·c − m·c). A thread has two rows, r and r + 8 of a fragment
// (see cuda/wgmma.cuh); the four lanes of a quad share them. Every decision is made row by row, so a row's bits do not
// depend on its neighbours.
//
// The lazy maximum. A step first computes its exponentials with the row's old m. If some p exceeds 2^14, or if the row
// has no m yet, m becomes the largest score of the row so far and the step is repeated. So no exponential waits for the
// search for the maximum: the largest p is searched for afterwards, in pairs of rounded 16-bit numbers. The limit keeps
// p in the range of f16 (65504) after rounding; bf16 has the same limit, so that both types run the same code.
//
// Each operation names its rounding (__fmul_rn, …), so that the compiler cannot contract operations differently in two
// kernels, and the host can repeat them.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/terms.cuh"

#if defined(__CUDACC__)
#include "cuda/lanes.cuh"
#endif

namespace rapt::cuda {

inline constexpr int kLazyLimit = 14;  // log2 of the largest p with which a maximum is kept
// If the magnitude of m = maximum·c is larger than this, s·c − m is not computed by one fused multiply-add, because the
// rounding error of m would become an error of the exponent.
inline constexpr float kHugeMaximum = 1048576.0F;

// Two rows of a thread: their maxima (kHidden for a row that has seen no key) and the thread's parts of their sums.
struct RowPair {
  float maximum[2] = {kHidden, kHidden};
  float sum[2] = {0.0F, 0.0F};
  bool huge = false;  // for some row, maximum·c is beyond ±kHugeMaximum
};

RAPT_DEVICE float quad_sum(float x) {
  x = __fadd_rn(x, from_lane_xor(x, 1));
  return __fadd_rn(x, from_lane_xor(x, 2));
}
RAPT_DEVICE float quad_max(float x) {
  x = fmaxf(x, from_lane_xor(x, 1));
  return fmaxf(x, from_lane_xor(x, 2));
}
RAPT_DEVICE bool quad_any(bool x) {
  x |= from_lane_xor(x, 1);
  return x | from_lane_xor(x, 2);
}

// 0 for a row that has seen no key, so that no difference of maxima is inf − inf.
RAPT_DEVICE float finite_maximum(float maximum) { return maximum == kHidden ? 0.0F : maximum; }

// Whether either of two rounded values of p exceeds the limit. NaN and infinity do.
template <class Type>
RAPT_DEVICE bool exceeds_limit(std::uint32_t pair) {
  constexpr std::uint32_t kLimit = static_cast<std::uint32_t>(Type::kBias + kLazyLimit) << Type::kFraction;
  return (pair & 0xFFFF) > kLimit || (pair >> 16) > kLimit;
}

// p = 2^(s·c − m) of a step, rounded in pairs, and the sums of the unrounded values in f32. Each lane adds its own
// scores, first those within 32 keys, then these sums. `largest` collects the largest rounded p of each row.
template <class Type, int kKeys>
RAPT_DEVICE void exponentials(const float (&s)[kKeys / 2], const float (&c)[2], const float (&m)[2],
                              std::uint32_t (&p)[kKeys / 16][4], float (&sum)[2], std::uint32_t (&largest)[2]) {
#pragma unroll
  for (int block = 0; block < kKeys / 2; block += 16) {
    float part[2];
#pragma unroll
    for (int i = block; i < block + 16; i += 2) {
      const int row = i / 2 % 2;
      const float low = exp2_approx(__fmaf_rn(s[i], c[row], -m[row]));
      const float high = exp2_approx(__fmaf_rn(s[i + 1], c[row], -m[row]));
      part[row] = i - block == 2 * row ? low : __fadd_rn(part[row], low);
      part[row] = __fadd_rn(part[row], high);
      const std::uint32_t pair = Type::pair(low, high);
      p[i / 8][i / 2 % 4] = pair;
      largest[row] = max_pair(largest[row], pair);
    }
    sum[0] = __fadd_rn(sum[0], part[0]);
    sum[1] = __fadd_rn(sum[1], part[1]);
  }
}

// Repeats a step: in rows with `move`, the maximum becomes the largest score so far. `rescale` is the factor for
// earlier results: this function multiplies the sum by it, and the caller must multiply o.
template <class Type, int kKeys>
RAPT_DEVICE void move_maximum(float (&s)[kKeys / 2], RowPair& row, float c, const bool (&move)[2],
                              std::uint32_t (&p)[kKeys / 16][4], float (&rescale)[2]) {
  float top[2], m[2];
  bool huge[2];
#pragma unroll
  for (int x = 0; x < 2; ++x) {
    float even = kHidden, odd = kHidden;
#pragma unroll
    for (int i = 2 * x; i < kKeys / 2; i += 4) {
      even = fmaxf(even, s[i]);
      odd = fmaxf(odd, s[i + 1]);
    }
    const float largest = quad_max(fmaxf(even, odd));
    const float moved = quad_any(move[x]) ? fmaxf(largest, row.maximum[x]) : row.maximum[x];
    top[x] = finite_maximum(moved);
    m[x] = __fmul_rn(top[x], c);
    huge[x] = fabsf(m[x]) > kHugeMaximum;
    rescale[x] = moved == row.maximum[x] ? 1.0F : exp2_approx(__fmul_rn(__fsub_rn(row.maximum[x], top[x]), c));
    row.maximum[x] = moved;
    row.sum[x] = __fmul_rn(row.sum[x], rescale[x]);
  }
  row.huge = huge[0] || huge[1];
  // With a huge maximum, s − maximum is computed before it is multiplied by c. So s·c may be beyond the range of f32,
  // as in a row where every score is the lowest number.
  if (any_lane(row.huge)) {
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) s[i] = huge[i / 2 % 2] ? __fsub_rn(s[i], top[i / 2 % 2]) : s[i];
  }
  const float factor[2] = {c, c};
  m[0] = huge[0] ? 0.0F : m[0];
  m[1] = huge[1] ? 0.0F : m[1];
  std::uint32_t unused[2] = {0, 0};
  exponentials<Type, kKeys>(s, factor, m, p, row.sum, unused);
}

// The softmax of one step: p, the sums, and, where a maximum moved, its new value. Fresh rows have no maximum yet, so
// no exponentials are computed with an old maximum. Returns whether o must be multiplied by `rescale`.
template <class Type, int kKeys>
RAPT_DEVICE bool softmax_step(float (&s)[kKeys / 2], RowPair& row, float c, bool fresh,
                              std::uint32_t (&p)[kKeys / 16][4], float (&rescale)[2]) {
  bool move[2] = {true, true};
  if (!fresh) [[likely]] {
    std::uint32_t largest[2] = {0, 0};
    float sum[2] = {row.sum[0], row.sum[1]};
    const float same[2] = {c, c};
    const float m[2] = {__fmul_rn(row.maximum[0], c), __fmul_rn(row.maximum[1], c)};
    exponentials<Type, kKeys>(s, same, m, p, sum, largest);
    if (!any_lane(exceeds_limit<Type>(max_pair(largest[0], largest[1])) || row.huge)) [[likely]] {
      row.sum[0] = sum[0];
      row.sum[1] = sum[1];
      return false;
    }
#pragma unroll
    for (int x = 0; x < 2; ++x) move[x] = exceeds_limit<Type>(largest[x]) || row.maximum[x] == kHidden;
  }
  move_maximum<Type, kKeys>(s, row, c, move, p, rescale);
  return any_lane(rescale[0] != 1.0F || rescale[1] != 1.0F);
}

// Two partial results of a row are merged as total·before + added·now.
struct MergeWeights {
  float before[2], now[2];
};
RAPT_DEVICE float merge(float total, float before, float added, float now) {
  return __fmaf_rn(total, before, __fmul_rn(added, now));
}

// Merges a finished chunk into the total of the chunks before it. The chunk's sum is first completed over the quad, in
// the same order in all kernels. Afterwards `total.sum` covers all chunks so far and is the same in all lanes of the
// quad.
RAPT_DEVICE MergeWeights merge_chunk(RowPair& total, const RowPair& chunk, float c, bool has_total) {
  MergeWeights weights;
#pragma unroll
  for (int x = 0; x < 2; ++x) {
    const float sum = quad_sum(chunk.sum[x]);
    const float maximum = fmaxf(total.maximum[x], chunk.maximum[x]), m = finite_maximum(maximum);
    weights.before[x] = exp2_approx(__fmul_rn(__fsub_rn(total.maximum[x], m), c));
    weights.now[x] = exp2_approx(__fmul_rn(__fsub_rn(chunk.maximum[x], m), c));
    total.sum[x] = has_total ? merge(total.sum[x], weights.before[x], sum, weights.now[x]) : sum;
    total.maximum[x] = has_total ? maximum : chunk.maximum[x];
  }
  return weights;
}

// A finished row: out = o · scale, and log Σ exp(s).
struct RowResult {
  float scale, lse;
};
// `c` is the factor of the scores; `sink` (kHidden: none) is merged last.
RAPT_DEVICE RowResult finish_row(float maximum, float sum, float c, float sink) {
  constexpr float kLn2 = 0.6931471805599453F, kToBase2 = 1.4426950408889634F;
  const float own = __fmul_rn(maximum, __fmul_rn(c, kLn2));  // in base e, as in log Σ exp(s)
  const float whole = fmaxf(own, sink), m = finite_maximum(whole);
  const float rescale = exp2_approx(__fmul_rn(__fsub_rn(own, m), kToBase2));
  if (sink != kHidden) sum = __fmaf_rn(sum, rescale, exp2_approx(__fmul_rn(__fsub_rn(sink, m), kToBase2)));
  return {sum == 0.0F ? 0.0F : __fmul_rn(rescale, __fdiv_rn(1.0F, sum)), __fadd_rn(whole, logf(sum))};
}

}  // namespace rapt::cuda
