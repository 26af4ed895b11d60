// Rows of k or v of one kv head of one sequence, and which of them will be read soon.
#pragma once

#include "core/kv_rows.h"
#include "cpu/decode/prefetch.h"

namespace rapt::cpu {

class CacheRows : public KvRows {
 public:
  CacheRows(const KvRows& rows, std::int64_t count)
      : KvRows(joined(rows, count)),
        bytes_(static_cast<std::int64_t>(size_of(view().dtype()))),
        distance_(std::max<std::int64_t>(16, rows_in(Prefetcher::kDistance))),
        far_(std::max<std::int64_t>(16, rows_in(Prefetcher::kFar))),
        in_pages_(paged() && page_size() < kLong),
        source_(view().count() * bytes_ <= kStays ? Source::cache : Source::memory) {
    if (!in_pages_) return;
    // Pages end at multiples of 16 rows, usually of 64. With both distances rounded to these, the runs of even_run()
    // are long.
    distance_ = distance_ / 16 * 16;
    far_ = (distance_ + far_ + 63) / 64 * 64 - distance_;
  }

  template <class T>
  const T* row(std::int64_t j) const {
    return static_cast<const T*>(view().data()) + offset(j);
  }

  // A prefetcher for `count` rows from row j on, or fewer if the page of row j ends earlier. `last` is the end of the
  // rows that will be read.
  Prefetcher prefetcher(std::int64_t j, std::int64_t count, std::int64_t last) const {
    if (view().stride(3) != 1 || count <= 0) return {};
    std::int64_t far = Prefetcher::kFar;
    if (in_pages_) far = j + far_ < last ? (offset(j + far_) - offset(j)) * bytes_ : 0;
    return {static_cast<const std::byte*>(view().data()) + offset(j) * bytes_,
            view().size(3) * bytes_,
            view().stride(2) * bytes_,
            run(j, count),
            source_,
            far};
  }
  // How far ahead to prefetch, in rows: at least as many as are read at once.
  std::int64_t prefetch_distance() const { return distance_; }
  // The number of rows from row j on, at most `count`, that are evenly spaced, and for which the rows to prefetch, at
  // both distances ahead, are evenly spaced too.
  std::int64_t even_run(std::int64_t j, std::int64_t count) const {
    return in_pages_ ? run(j + distance_ + far_, run(j + distance_, run(j, count))) : count;
  }

 private:
  // Tensors up to this size may still be in a cache when they are read again.
  static constexpr std::int64_t kStays = std::int64_t{2} << 20;
  // Pages of at least this many rows behave like contiguous memory. In smaller ones the hardware prefetcher does not
  // help.
  static constexpr std::int64_t kLong = 1024;

  static KvRows joined(KvRows rows, std::int64_t count) {
    rows.join_pages(count);
    return rows;
  }

  std::int64_t rows_in(std::int64_t bytes) const { return bytes / std::max<std::int64_t>(1, view().size(3) * bytes_); }

  std::int64_t bytes_, distance_, far_;
  bool in_pages_;
  Source source_;
};

// Two ranges of rows that are read one after the other: `range` of `now`, then `next_range` of `next`. while_reading
// says what to prefetch while `count` rows from row j on are processed.
struct ReadingOrder {
  const CacheRows& now;
  KeyRange range;
  const CacheRows* next = nullptr;
  KeyRange next_range{0, 0};

  // How many rows to read together from row j on: a multiple of `step`, as `count` is, and within one page.
  std::int64_t rows_at_once(std::int64_t j, std::int64_t count, std::int64_t step) const {
    return std::max(step, now.even_run(j, count) / step * step);
  }
  Prefetcher while_reading(std::int64_t j, std::int64_t count) const {
    const std::int64_t at = j + now.prefetch_distance();
    if (at < range.last) return now.prefetcher(at, std::min(count, range.last - at), range.last);
    if (next == nullptr) return {};
    const std::int64_t after = next_range.first + at - range.last;
    return next->prefetcher(after, std::min(count, next_range.last - after), next_range.last);
  }
};

}  // namespace rapt::cpu
