// Where the rows of k or v of one kv head of one sequence lie, in pages or not, and what an i8 row counts times.
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

  // The element where row j begins.
  std::int64_t offset(std::int64_t j) const { return rows_.offset(*this, j); }
  // How many rows from row j on, at most `count`, lie evenly spaced, stride(2) apart.
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
  // A page holds 2^page_shift rows; one that holds all rows of its sequence has a shift beyond any of them.
  int page_shift() const { return page_shift_; }

  // Pages of these first rows that all follow one another, as those of a sequence that was written in one go, become
  // one stretch. This looks at each of them: it pays where the rows are then gone through as a whole.
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
  // Scales of rows j … that lie in one run.
  void copy_scales(std::int64_t j, std::int64_t count, float* to) const {
    const float* from = scales_ + scale_rows_.offset(*this, j);
    for (std::int64_t n = 0; n < count; ++n) to[n] = from[n * scale_rows_.row];
  }

 private:
  // Row j of a tensor: base + j · row, or with pages base + page · number of its page + row · place in it.
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

    // Whether the first row of page n + 1 follows the last one of page n as rows follow each other.
    // Divided, since one page for a whole sequence has a size beyond any other number.
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
  const std::int32_t* table_;  // of this sequence; null: no pages
  std::int64_t pages_;         // in the table
  int page_shift_;
  std::int64_t in_page_;  // the bits of j that say which row of a page it is
  Steps rows_, scale_rows_;
  bool pages_touch_;
  const float* scales_ = nullptr;
};

}  // namespace rapt
