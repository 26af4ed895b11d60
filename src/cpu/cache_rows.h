// Rows of k or v of one kv head of one sequence, and which of them will be read soon.
#pragma once

#include "core/kv_rows.h"
#include "cpu/ahead.h"

namespace rapt::cpu {

class CacheRows : public KvRows {
 public:
  explicit CacheRows(const KvRows& rows)
      : KvRows(rows),
        bytes_(static_cast<std::int64_t>(size_of(view().dtype()))),
        ahead_(std::max<std::int64_t>(16, Ahead::kDistance / std::max<std::int64_t>(1, view().size(3) * bytes_))),
        source_(view().count() * bytes_ <= kStays       ? Source::cache
                : bytes_ == 4 && run(0, kLong) == kLong ? Source::stream
                                                        : Source::memory) {
    if (paged()) ahead_ = (ahead_ + 15) / 16 * 16;  // pages end at multiples of 16 rows
  }

  template <class T>
  const T* row(std::int64_t j) const {
    return static_cast<const T*>(view().data()) + offset(j);
  }

  // Rows that will be read soon, beginning with row j, to the end of its page at most.
  Ahead ahead(std::int64_t j, std::int64_t count) const {
    if (view().stride(3) != 1 || count <= 0) return {};
    return {static_cast<const std::byte*>(view().data()) + offset(j) * bytes_, view().size(3) * bytes_,
            view().stride(2) * bytes_, run(j, count), source_};
  }
  // How many rows to ask ahead: no fewer than are read side by side.
  std::int64_t rows_ahead() const { return ahead_; }

 private:
  // Tensors up to this size may still be in a cache when they are read again.
  static constexpr std::int64_t kStays = std::int64_t{2} << 20;
  // Rows in a page from which on it is worth asking far ahead.
  static constexpr std::int64_t kLong = 1024;

  std::int64_t bytes_, ahead_;
  Source source_;
};

// Two stretches of rows that are read one after the other, `now` from `first` to `last`, then `next` from its own first
// row: what to ask for while rows j … are worked on.
struct ReadingOrder {
  const CacheRows& now;
  KeyRange range;
  const CacheRows* next = nullptr;
  KeyRange next_range{0, 0};

  // How many rows from row j on to read as one, a multiple of `step` as `count` is: they are evenly spaced, and so are
  // those asked for meanwhile, but for a step that the end of a page falls into.
  std::int64_t rows_at_once(std::int64_t j, std::int64_t count, std::int64_t step) const {
    count = now.run(j, count);
    const std::int64_t at = j + now.rows_ahead();
    return at < range.last ? std::max(step, now.run(at, count) / step * step) : count;
  }
  Ahead while_reading(std::int64_t j, std::int64_t count) const {
    const std::int64_t at = j + now.rows_ahead();
    if (at < range.last) return now.ahead(at, std::min(count, range.last - at));
    if (next == nullptr) return {};
    const std::int64_t after = next_range.first + at - range.last;
    return next->ahead(after, std::min(count, next_range.last - after));
  }
};

}  // namespace rapt::cpu
