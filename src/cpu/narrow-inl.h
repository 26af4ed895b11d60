// The two products for few rows, as in decoding, where reading k and v is all the work: each is read once, in order.
//
// With one row to a lane most lanes would be empty. So scores are computed with keys in lanes, and p·V with columns in
// lanes. Each number is the same chain of multiply-adds as for many rows, so its bits are the same.
#if defined(RAPT_CPU_NARROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_CPU_NARROW_INL_H
#undef RAPT_CPU_NARROW_INL_H
#else
#define RAPT_CPU_NARROW_INL_H
#endif

#include "cpu/convert-inl.h"
#include "cpu/kernel_table.h"
#include "cpu/row_state-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::cpu::HWY_NAMESPACE {

// Rows j of k or v for one kv head of one sequence, as f32: in place where they are that, else converted a few at a
// time.
class CacheRows {
 public:
  CacheRows(const ConstTensorView& view, const RowBlock& block, float* memory)
      : view_(view),
        base_(row_offset(view, block.sequence->batch, block.kv_head, block.sequence->key_begin)),
        memory_(memory) {}

  // The address of row first + n, for n < count. `memory` holds kNarrowKeys rows.
  void load(std::int64_t first, std::int64_t count, const float** rows) const {
    const std::int64_t size = view_.size(3);
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t offset = base_ + (first + n) * view_.stride(2);
      if (reads_in_place(view_)) {
        rows[n] = static_cast<const float*>(view_.data()) + offset;
      } else {
        float* row = memory_ + n * RoundUp(size, 16);
        LoadRow(view_, offset, view_.stride(3), size, row);
        rows[n] = row;
      }
    }
  }

  // Memory that will be read next, asked for in small portions while the rows at hand are worked on.
  class Ahead {
   public:
    Ahead() = default;
    Ahead(const std::byte* row, std::int64_t row_bytes, std::int64_t stride_bytes, std::int64_t rows)
        : row_(row), row_bytes_(row_bytes), stride_(stride_bytes), rows_(rows) {}

    HWY_INLINE void fetch(int lines) {
      for (; lines > 0 && rows_ > 0; --lines) {
        hwy::Prefetch(row_ + at_);
        at_ += 64;
        if (at_ < row_bytes_) continue;
        at_ = 0;
        row_ += stride_;
        --rows_;
      }
    }

   private:
    const std::byte* row_ = nullptr;
    std::int64_t row_bytes_ = 0, stride_ = 0, rows_ = 0, at_ = 0;
  };
  Ahead ahead(std::int64_t first, std::int64_t last) const {
    if (view_.stride(3) != 1 || first >= last) return {};
    const auto bytes = static_cast<std::int64_t>(size_of(view_.dtype()));
    return {static_cast<const std::byte*>(view_.data()) + (base_ + first * view_.stride(2)) * bytes,
            view_.size(3) * bytes, view_.stride(2) * bytes, last - first};
  }

 private:
  const ConstTensorView& view_;
  std::int64_t base_;
  float* memory_;
};

// Keys that are worked on together: two vectors of them, so that one chain of sums does not wait for another.
constexpr std::int64_t kNarrowKeys = 2 * kLanes;

// Scores of kRows rows with kNarrowKeys keys. q is (D, kTileRows); sums go to s: (keys, kTileRows).
template <int kRows>
HWY_NOINLINE void NarrowScores(const float* HWY_RESTRICT q, std::int64_t head_size, const float* const* keys,
                               CacheRows::Ahead ahead, float* HWY_RESTRICT s) {
  static_assert(kRows % 4 == 0);
  Columns<kRows> low, high;  // of the first kLanes keys, and of the others
  for (int r = 0; r < kRows; ++r) low[r] = high[r] = hn::Zero(kF32);
  const auto add = [&](Vec first, Vec second, const float* row) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) {
      const Vec factor = Set(row[r]);
      low[r] = hn::MulAdd(factor, first, low[r]);
      high[r] = hn::MulAdd(factor, second, high[r]);
    }
  };
  std::int64_t d = 0;
  for (; d + 4 <= head_size; d += 4, q += 4 * kTileRows) {
    Vec a0, a1, a2, a3, b0, b1, b2, b3;
    LoadFourColumns(keys, d, a0, a1, a2, a3);
    LoadFourColumns(keys + kLanes, d, b0, b1, b2, b3);
    ahead.fetch(kLanes / 2);
    add(a0, b0, q), add(a1, b1, q + kTileRows), add(a2, b2, q + 2 * kTileRows), add(a3, b3, q + 3 * kTileRows);
  }
  for (; d < head_size; ++d, q += kTileRows) {
    HWY_ALIGN float column[kNarrowKeys];
    for (std::int64_t n = 0; n < kNarrowKeys; ++n) column[n] = keys[n][d];
    add(Load(column), Load(column + kLanes), q);
  }
  float* rows[kNarrowKeys];
  for (std::int64_t n = 0; n < kNarrowKeys; ++n) rows[n] = s + n * kTileRows;
  for (int r = 0; r < kRows; r += 4) {
    StoreFourColumns(low[r], low[r + 1], low[r + 2], low[r + 3], rows, r);
    StoreFourColumns(high[r], high[r + 1], high[r + 2], high[r + 3], rows + kLanes, r);
  }
}

// o[r] += Σ_j p[j][r] · v_j for kRows rows, over a few keys: columns [d, d + kV · lanes of the tag).
template <int kRows, int kV, class D>
HWY_INLINE void NarrowColumns(D tag, const float* HWY_RESTRICT p, const float* const* values, std::int64_t count,
                              std::int64_t d, float* const* o) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(tag));
  hn::Vec<D> sums[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(kV)];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kV; ++v) sums[r][v] = hn::LoadU(tag, o[r] + d + v * lanes);
  }
  for (std::int64_t j = 0; j < count; ++j, p += kTileRows) {
    hn::Vec<D> columns[static_cast<std::size_t>(kV)];
    for (int v = 0; v < kV; ++v) columns[v] = hn::LoadU(tag, values[j] + d + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const hn::Vec<D> weight = hn::Set(tag, p[r]);
      for (int v = 0; v < kV; ++v) sums[r][v] = hn::MulAdd(weight, columns[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kV; ++v) hn::StoreU(sums[r][v], tag, o[r] + d + v * lanes);
  }
}

template <int kRows>
HWY_NOINLINE void NarrowWeightedSum(const float* p, const float* const* values, std::int64_t count, std::int64_t size,
                                    CacheRows::Ahead ahead, float* const* o) {
  constexpr int kWide = kRows <= 2 ? 4 : 2;
  std::int64_t d = 0;
  for (; d + kWide * kLanes <= size; d += kWide * kLanes) {
    ahead.fetch(static_cast<int>(kWide * kLanes * count / 16));  // as many bytes as are read here
    NarrowColumns<kRows, kWide>(kF32, p, values, count, d, o);
  }
  for (; d + kLanes <= size; d += kLanes) NarrowColumns<kRows, 1>(kF32, p, values, count, d, o);
  for (; d < size; ++d) NarrowColumns<kRows, 1>(hn::CappedTag<float, 1>(), p, values, count, d, o);
}

}  // namespace rapt::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
