// Carves a workspace into arrays. Without memory it only counts bytes, so that the same code computes the size of a
// workspace and lays it out.
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

  Arena() = default;                                                       // counts only
  explicit Arena(std::span<std::byte> memory) : memory_(memory.data()) {}  // aligned to kAlignment

  template <class T>
  std::span<T> take(std::int64_t count) {
    const std::size_t begin = used_;
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes) || __builtin_add_overflow(bytes, kAlignment - 1, &bytes) ||
        __builtin_add_overflow(used_, bytes / kAlignment * kAlignment, &used_)) {
      throw std::bad_alloc();  // exceeds the address space, which has 32 bits in WebAssembly
    }
    if (memory_ == nullptr) return {};
    return {reinterpret_cast<T*>(memory_ + begin), static_cast<std::size_t>(count)};
  }

  // Like take, but with value-initialized objects.
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
