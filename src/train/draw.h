// Random numbers for batches. They depend only on a seed, a stream and a step, so that any batch can be reproduced, in
// any order.
#pragma once

#include <cstdint>

#include "rapt/random.h"

namespace rapt::train {

// Selects a stream: training and evaluation never share numbers.
enum class Stream : std::uint32_t { training = 0x54524149, evaluation = 0x4556414c, sampling = 0x53414d50 };

class Draw {
 public:
  Draw(std::uint64_t seed, Stream stream, std::int64_t step)
      : key_(philox_key(seed)), stream_(static_cast<std::uint32_t>(stream)), step_(static_cast<std::uint64_t>(step)) {}

  std::uint32_t bits() {
    if (next_ == 4) {
      words_ = philox4x32_10(
          {count_++, static_cast<std::uint32_t>(step_), static_cast<std::uint32_t>(step_ >> 32), stream_}, key_);
      next_ = 0;
    }
    return words_[next_++];
  }
  // 0 … n − 1, from the high half of a product: the relative bias is about n / 2³² at most.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>((std::uint64_t{bits()} * static_cast<std::uint64_t>(n)) >> 32);
  }
  double uniform() { return bits() * 0x1p-32; }  // 0 ≤ x < 1

 private:
  PhiloxKey key_;
  std::uint32_t stream_;
  std::uint64_t step_;
  std::uint32_t count_ = 0;
  PhiloxCounter words_{};
  std::size_t next_ = 4;
};

}  // namespace rapt::train
