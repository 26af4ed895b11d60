// Rows of k or v of one kv head of one sequence: where they lie, and which will be read soon.
#pragma once

#include "cpu/ahead.h"
#include "cpu/rows.h"

namespace rapt::cpu {

class CacheRows {
 public:
  CacheRows(const ConstTensorView& view, const RowBlock& block)
      : view_(view),
        base_(row_offset(view, block.sequence->batch, block.kv_head, block.sequence->key_begin)),
        bytes_(static_cast<std::int64_t>(size_of(view.dtype()))),
        ahead_(std::max<std::int64_t>(16, Ahead::kDistance / std::max<std::int64_t>(1, view.size(3) * bytes_))),
        source_(view.count() * bytes_ <= kStays ? Source::cache
                : bytes_ == 4                   ? Source::stream
                                                : Source::memory) {}

  const ConstTensorView& view() const { return view_; }
  // The element where row j begins.
  std::int64_t offset(std::int64_t j) const { return base_ + j * view_.stride(2); }
  template <class T>
  const T* row(std::int64_t j) const {
    return static_cast<const T*>(view_.data()) + offset(j);
  }

  // Rows that will be read soon, beginning with row j.
  Ahead ahead(std::int64_t j, std::int64_t count) const {
    if (view_.stride(3) != 1) return {};
    return {static_cast<const std::byte*>(view_.data()) + offset(j) * bytes_, view_.size(3) * bytes_,
            view_.stride(2) * bytes_, count, source_};
  }
  // How many rows to ask ahead: no fewer than are read side by side.
  std::int64_t rows_ahead() const { return ahead_; }

 private:
  // Tensors up to this size may still be in a cache when they are read again.
  static constexpr std::int64_t kStays = std::int64_t{2} << 20;

  const ConstTensorView& view_;
  std::int64_t base_, bytes_, ahead_;
  Source source_;
};

// Two stretches of rows that are read one after the other, `now` from `first` to `last`, then `next` from its own first
// row: what to ask for while rows j … are worked on.
struct ReadingOrder {
  const CacheRows& now;
  KeyRange range;
  const CacheRows* next = nullptr;
  KeyRange next_range{0, 0};

  Ahead while_reading(std::int64_t j, std::int64_t count) const {
    const std::int64_t at = j + now.rows_ahead();
    if (at < range.last) return now.ahead(at, std::min(count, range.last - at));
    if (next == nullptr) return {};
    const std::int64_t after = next_range.first + at - range.last;
    return next->ahead(after, std::min(count, next_range.last - after));
  }
};

}  // namespace rapt::cpu
