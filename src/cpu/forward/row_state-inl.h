// The running softmax of a row as one block of memory, for rows whose chunks of keys are computed separately: few rows,
// as in decoding, and blocks that are split among workers (split-KV). The arithmetic is that of TileState, with columns
// in lanes instead of rows.
#if defined(RAPT_CPU_ROW_STATE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_ROW_STATE_INL_H
#undef RAPT_CPU_ROW_STATE_INL_H
#else
#define RAPT_CPU_ROW_STATE_INL_H
#endif

#include <cmath>
#include <limits>

#include "cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// m, l and o of one row; o is (Dv), padded to whole vectors.
class RowState {
 public:
  // Floats that a state takes: whole cache lines.
  static std::int64_t floats(std::int64_t value_size) { return 16 + RoundUp(value_size, 16); }

  RowState() = default;
  RowState(float* memory, std::int64_t value_size) : memory_(memory), size_(RoundUp(value_size, kLanes)) {}

  float& m() const { return memory_[0]; }
  float& l() const { return memory_[1]; }
  float* o() const { return memory_ + 16; }

  void clear() const {
    m() = -std::numeric_limits<float>::infinity();
    l() = 0.0F;
    std::fill_n(o(), size_, 0.0F);
  }

  // Merges the next chunk's state into this one.
  void merge(const RowState& chunk) const {
    const Merge merge = merge_sums(chunk.m(), chunk.l());
    for (std::int64_t d = 0; d < size_; d += kLanes) {
      Store(hn::MulAdd(Load(chunk.o() + d), merge.keep_new, hn::Mul(Load(o() + d), merge.keep_old)), o() + d);
    }
  }

  void add_sink(float sink) const {
    const Merge merge = merge_sums(sink, sink == -std::numeric_limits<float>::infinity() ? 0.0F : 1.0F);
    for (std::int64_t d = 0; d < size_; d += kLanes) Store(hn::Mul(Load(o() + d), merge.keep_old), o() + d);
  }

  // o · keep / l, in place. 0 is added to turn −0 into 0, because a sum of zeros may have either sign, depending on
  // which keys were skipped. Returns whether all numbers are finite.
  bool normalise(float keep) const {
    const Vec sum = Set(l());
    const Vec factor = hn::IfThenElse(hn::Eq(sum, hn::Zero(kF32)), hn::Zero(kF32), hn::Div(Set(keep), sum));
    Vec check = hn::Zero(kF32);
    for (std::int64_t d = 0; d < size_; d += kLanes) {
      const Vec x = hn::MulAdd(Load(o() + d), factor, hn::Zero(kF32));
      check = NotFinite(x, check);
      Store(x, o() + d);
    }
    return AllFinite(check);
  }

 private:
  Merge merge_sums(float chunk_max, float chunk_sum) const {
    HWY_ALIGN float max[kLanes];
    HWY_ALIGN float sum[kLanes];
    Store(Set(m()), max);
    Store(Set(l()), sum);
    const Merge merge = MergeSums(max, sum, Set(chunk_max), Set(chunk_sum));
    m() = max[0];
    l() = sum[0];
    return merge;
  }

  float* memory_ = nullptr;
  std::int64_t size_ = 0;
};

inline float LogSumExp(float m, float l) {
  const double sum = l;
  return static_cast<float>(sum == 0.0 ? -std::numeric_limits<double>::infinity() : m + std::log(sum));
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
