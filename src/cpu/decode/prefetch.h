// Software prefetch: a few cache lines at a time, issued between other work.
//
// With few query rows the hardware prefetcher cannot keep up, because several K or V rows are streamed at once.
// Prefetching in address order, at an even pace and some kilobytes ahead, reaches the bandwidth of a plain streaming
// read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rapt/tensor.h"

namespace rapt::cpu {

// Where rows are expected to be.
enum class Source : std::uint8_t {
  cache,   // they may still be in a cache
  memory,  // they are in memory and will not stay in a cache: prefetched twice, first into L2
};

class Prefetcher {
 public:
  static constexpr std::int64_t kLine = 64;
  static constexpr std::int64_t kDistance = 4096;  // bytes; with the current rows, less than half of L1
  static constexpr std::int64_t kFar = 12288;      // bytes beyond kDistance, into L2

  Prefetcher() = default;  // nothing to prefetch
  // Rows of row_bytes, `stride` bytes apart; rows in memory are also prefetched into L2, `far` bytes ahead.
  Prefetcher(const std::byte* rows, std::int64_t row_bytes, std::int64_t stride, std::int64_t count, Source source,
             std::int64_t far)
      : at_(rows), row_bytes_(row_bytes), stride_(stride), left_(count), far_(far), source_(source) {
    if (stride == row_bytes) {
      row_bytes_ = stride_ = count * row_bytes;
      left_ = 1;
    }
    row_end_ = at_ + row_bytes_;
    if (count <= 0 || row_bytes <= 0) at_ = nullptr;
  }

  // Prefetches the next kLines lines: as many as the caller reads until its next call.
  template <int kLines>
  [[gnu::always_inline]] void fetch() {
    if (at_ == nullptr) return;
    if (source_ == Source::cache) {
      for (int n = 0; n < kLines; ++n) __builtin_prefetch(at_ + n * kLine, 0, 3);
    } else {
      for (int n = 0; n < kLines; ++n) __builtin_prefetch(at_ + n * kLine, 0, 0);
      for (int n = 0; n < kLines; ++n) __builtin_prefetch(at_ + n * kLine + far_, 0, 2);
    }
    at_ += kLines * kLine;
    if (at_ >= row_end_) next_row();
  }

  void fetch_all() {
    while (at_ != nullptr) fetch<1>();
  }

 private:
  void next_row() {
    row_end_ += stride_;
    at_ = --left_ > 0 ? row_end_ - row_bytes_ : nullptr;
  }

  const std::byte* at_ = nullptr;  // null: nothing left
  const std::byte* row_end_ = nullptr;
  std::int64_t row_bytes_ = 0, stride_ = 0, left_ = 0, far_ = 0;
  Source source_ = Source::cache;
};

}  // namespace rapt::cpu
