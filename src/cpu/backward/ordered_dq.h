// Ordered dq: chunks of keys, processed by several workers, add their parts of dq in ascending order.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>

namespace rapt::cpu {

// The contribution of one chunk of keys to dq of one tile of rows, and its destination.
struct DqPart {
  std::atomic<std::int64_t>* next_chunk = nullptr;  // the place of the chunk that is added next
  std::int64_t chunk = 0;                           // the place of this chunk among those that the tile visits
  float* to = nullptr;                              // row r begins at to + r · stride
  std::int64_t stride = 0;
  std::int64_t rows = 0;

  bool may_add() const { return next_chunk->load(std::memory_order_acquire) == chunk; }
  void added() const { next_chunk->store(chunk + 1, std::memory_order_release); }
};

// The parts of one worker that cannot be added yet. They are buffered here, so that the worker can continue; under a
// causal mask it would otherwise stall at the start of every chunk until the worker of the previous chunk has caught
// up.
//
// If the buffer is full, the worker waits, and adds what it can meanwhile. This cannot deadlock: blocks of chunks are
// issued in ascending order, so the lowest unfinished chunk can always make progress.
class PendingDq {
 public:
  static constexpr std::int64_t kMost = 16;

  // Provides buffers for parts of `rows` rows, `width` elements each; none if memory is empty.
  void begin(std::span<float> memory, std::int64_t rows, std::int64_t width) {
    memory_ = memory, rows_ = rows, width_ = width, count_ = 0;
    room_ = std::min(kMost, static_cast<std::int64_t>(memory.size()) / std::max<std::int64_t>(rows * width, 1));
    for (std::int64_t n = 0; n < kMost; ++n) parts_[static_cast<std::size_t>(n)].slot = n;
  }

  // Calls add(to, stride) to add the part: to dq if it is next, otherwise to a zeroed buffer.
  template <class Add>
  void add(const DqPart& part, const Add& add) {
    constexpr int kSpins = 200;
    for (int spins = 0;; ++spins) {
      add_ready_parts();
      if (part.may_add()) {
        add(part.to, part.stride);
        return part.added();
      }
      if (count_ < room_) break;
      if (spins > kSpins) std::this_thread::yield();
    }
    Pending& pending = parts_[static_cast<std::size_t>(count_++)];
    pending.part = part;
    std::fill_n(numbers(pending), part.rows * width_, 0.0F);
    add(numbers(pending), width_);
  }

  // Adds all remaining parts.
  void add_rest() {
    while (count_ > 0) {
      add_ready_parts();
      if (count_ > 0) std::this_thread::yield();
    }
  }

 private:
  struct Pending {
    DqPart part{};
    std::int64_t slot = 0;
  };

  float* numbers(const Pending& pending) const { return memory_.data() + pending.slot * rows_ * width_; }

  void add_ready_parts() {
    for (std::int64_t n = 0; n < count_;) {
      Pending& pending = parts_[static_cast<std::size_t>(n)];
      if (!pending.part.may_add()) {
        ++n;
        continue;
      }
      const DqPart& part = pending.part;
      const float* from = numbers(pending);
      for (std::int64_t r = 0; r < part.rows; ++r, from += width_) {
        float* to = part.to + r * part.stride;
        for (std::int64_t d = 0; d < width_; ++d) to[d] += from[d];
      }
      part.added();
      std::swap(pending, parts_[static_cast<std::size_t>(--count_)]);
    }
  }

  std::span<float> memory_;
  std::int64_t rows_ = 0, width_ = 0, room_ = 0, count_ = 0;
  std::array<Pending, kMost> parts_{};
};

}  // namespace rapt::cpu
