// Memory that will be read soon, asked for a few lines at a time while other work is done.
//
// Few rows read k and v faster than a core's own guesses bring them, since several rows are read side by side. Asking
// in the order of addresses, at an even pace and some kilobytes ahead, makes memory as fast as a plain read of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rapt/tensor.h"

namespace rapt::cpu {

// How rows come from memory.
enum class Source : std::uint8_t {
  cache,   // they may still be in some cache
  memory,  // they are not, and will not stay in one: they are asked for twice, first into the second-level cache
};

class Ahead {
 public:
  static constexpr std::int64_t kLine = 64;
  static constexpr std::int64_t kDistance = 4096;  // bytes; with what is at hand, less than half a first-level cache
  static constexpr std::int64_t kFar = 12288;      // beyond that, into the second-level cache

  Ahead() = default;  // nothing to ask for
  // Rows of row_bytes, `stride` bytes apart; what comes from memory is also asked for `far` bytes further.
  Ahead(const std::byte* rows, std::int64_t row_bytes, std::int64_t stride, std::int64_t count, Source source,
        std::int64_t far)
      : at_(rows), row_bytes_(row_bytes), stride_(stride), left_(count), far_(far), source_(source) {
    if (stride == row_bytes) {
      row_bytes_ = stride_ = count * row_bytes;
      left_ = 1;
    }
    row_end_ = at_ + row_bytes_;
    if (count <= 0 || row_bytes <= 0) at_ = nullptr;
  }

  // The next lines: as many as are read meanwhile.
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
