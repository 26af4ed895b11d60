// Carves a workspace into arrays. Without memory it only counts, so that one piece of code both says how large a
// workspace must be and lays it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace rapt {

class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  Arena() = default;                                                       // counts
  explicit Arena(std::span<std::byte> memory) : memory_(memory.data()) {}  // hands out; memory is aligned

  template <class T>
  std::span<T> take(std::int64_t count) {
    const std::size_t begin = used_;
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes) || __builtin_add_overflow(bytes, kAlignment - 1, &bytes) ||
        __builtin_add_overflow(used_, bytes / kAlignment * kAlignment, &used_)) {
      throw std::bad_alloc();  // more than there are addresses: 32 bits of them in a page
    }
    if (memory_ == nullptr) return {};
    return {reinterpret_cast<T*>(memory_ + begin), static_cast<std::size_t>(count)};
  }

  // The same, with an object in each place.
  template <class T>
  std::span<T> make(std::int64_t count) {
    const std::span<T> places = take<T>(count);
    std::uninitialized_value_construct(places.begin(), places.end());
    return places;
  }

  std::size_t used() const { return used_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace rapt
