// Locates the K or V rows of one kv head of one sequence, paged or not, and gives the dequantization scale of an int8
// row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/problem.h"

namespace rapt {

class KvRows {
 public:
  static KvRows keys(const AttentionProblem& problem, const SequenceSpan& sequence, std::int64_t kv_head) {
    return {problem.key, problem.key_scales, problem.pages, sequence, kv_head};
  }
  static KvRows values(const AttentionProblem& problem, const SequenceSpan& sequence, std::int64_t kv_head) {
    return {problem.value, problem.value_scales, problem.pages, sequence, kv_head};
  }

  const ConstTensorView& view() const { return *view_; }
  bool paged() const { return table_ != nullptr; }

  // The offset of row j, in elements.
  std::int64_t offset(std::int64_t j) const { return rows_.offset(*this, j); }
  // The number of rows from row j on, at most `count`, that are evenly spaced, stride(2) apart.
  std::int64_t run(std::int64_t j, std::int64_t count) const {
    if (!paged()) return count;
    std::int64_t rows = page_size() - (j & in_page_);
    if (pages_touch_) {
      for (std::int64_t page = j >> page_shift_; rows < count && page + 1 < pages_; ++page) {
        if (table_[page + 1] != table_[page] + 1) break;
        rows += page_size();
      }
    }
    return std::min(count, rows);
  }
  std::int64_t page_size() const { return in_page_ + 1; }
  // A page holds 2^page_shift rows. If one page holds the whole sequence, the shift is so large that j >> shift is
  // always 0.
  int page_shift() const { return page_shift_; }

  // If the pages of the first `rows` rows are consecutive, as in a sequence written in one append, treats them as one
  // contiguous range. This scans the page table, so it pays off only if all these rows are then read.
  void join_pages(std::int64_t rows) {
    if (!paged() || !pages_touch_ || rows <= 0) return;
    const std::int64_t used = (rows + page_size() - 1) >> page_shift_;
    for (std::int64_t page = 1; page < used; ++page) {
      if (table_[page] != table_[0] + page) return;
    }
    rows_.base += table_[0] * rows_.page;
    scale_rows_.base += table_[0] * scale_rows_.page;
    table_ = nullptr;
  }

  bool scaled() const { return scales_ != nullptr; }
  float scale(std::int64_t j) const { return scales_[scale_rows_.offset(*this, j)]; }
  // Copies the scales of rows j … j + count − 1, which must be in one run.
  void copy_scales(std::int64_t j, std::int64_t count, float* to) const {
    const float* from = scales_ + scale_rows_.offset(*this, j);
    for (std::int64_t n = 0; n < count; ++n) to[n] = from[n * scale_rows_.row];
  }

 private:
  // The offset of row j is base + j · row; with pages, base + page number · page + index in the page · row.
  struct Steps {
    Steps(const ConstTensorView& view, bool paged, const SequenceSpan& sequence, std::int64_t kv_head)
        : page(view.stride(0)), row(view.stride(2)), base(kv_head * view.stride(1)) {
      if (!paged) base += sequence.batch * view.stride(0) + sequence.key_begin * row;
    }
    Steps() = default;

    std::int64_t offset(const KvRows& rows, std::int64_t j) const {
      if (!rows.paged()) return base + j * row;
      return base + rows.table_[j >> rows.page_shift_] * page + (j & rows.in_page_) * row;
    }

    // Whether page n + 1 follows page n in memory at the same row stride. Divides, because page_size · row would
    // overflow when one page holds the whole sequence.
    bool pages_touch(std::int64_t page_size) const { return row != 0 && page % row == 0 && page / row == page_size; }

    std::int64_t page = 0, row = 0, base = 0;
  };

  KvRows(const ConstTensorView& view, const ConstTensorView& scales, const PagesInUse& pages,
         const SequenceSpan& sequence, std::int64_t kv_head)
      : view_(&view),
        table_(pages.used ? pages.table.data() + sequence.batch * pages.per_row : nullptr),
        pages_(pages.per_row),
        page_shift_(pages.shift),
        in_page_((std::int64_t{1} << pages.shift) - 1),
        rows_(view, pages.used, sequence, kv_head),
        pages_touch_(rows_.pages_touch(page_size())) {
    if (!scales.defined()) return;
    scales_ = static_cast<const float*>(scales.data());
    scale_rows_ = Steps(scales, pages.used, sequence, kv_head);
    pages_touch_ = pages_touch_ && scale_rows_.pages_touch(page_size());
  }

  const ConstTensorView* view_;
  const std::int32_t* table_;  // the page table of this sequence; null: not paged
  std::int64_t pages_;         // entries in the page table
  int page_shift_;
  std::int64_t in_page_;  // mask: j & in_page_ is the index within the page
  Steps rows_, scale_rows_;
  bool pages_touch_;
  const float* scales_ = nullptr;
};

}  // namespace rapt
