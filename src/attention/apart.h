// Overlap checks for the tensors of a call: outputs must not overlap inputs or each other.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <string_view>
#include <vector>

#include "attention/checks.h"
#include "attention/overlap.h"

namespace rapt {

// Stores references to tensors, not copies, because this runs in every call.
class Apart {
 public:
  explicit Apart(const Checks& checks) : checks_(checks) {}

  // Adds a tensor that is only read. Such tensors may overlap each other.
  template <bool kMutable>
  void add_input(const Name& name, const BasicTensorView<kMutable>& tensor) {
    if (tensor.defined()) take(taken(name, tensor));
  }
  template <bool kMutable>
  void add_input(const Name& name, BasicTensorView<kMutable>&& tensor) = delete;

  // Adds a tensor that is written. Throws if it overlaps itself or anything that was added before it, except that it
  // may be the same tensor as the input named `in_place`.
  template <bool kMutable>
  void add_output(const Name& name, const BasicTensorView<kMutable>& tensor, std::string_view in_place = {}) {
    if (!tensor.defined()) return;
    checks_.writable(name, tensor);
    const Taken written = taken(name, tensor);
    const auto check_all = [&](const Taken& other) {
      if (other.name == in_place && written.is_same(other)) return;
      check(written, other);
    };
    for (std::size_t n = 0; n < count_ && n < kFew; ++n) check_all(few(n));
    for (const Taken& other : more_) check_all(other);
    take(written);
  }
  template <bool kMutable>
  void add_output(const Name& name, BasicTensorView<kMutable>&& tensor) = delete;

 private:
  struct Taken {
    Name name;
    const void* data;
    const Dims *shape, *strides;
    DType dtype;
    ByteRange bytes;

    ConstTensorView tensor() const { return {data, dtype, *shape, *strides}; }
    bool is_same(const Taken& other) const {
      return data == other.data && dtype == other.dtype && *strides == *other.strides;
    }
  };

  template <bool kMutable>
  static Taken taken(const Name& name, const BasicTensorView<kMutable>& tensor) {
    return {name,
            tensor.data(),
            &tensor.shape(),
            &tensor.strides(),
            tensor.dtype(),
            byte_range(tensor.data(), tensor.dtype(), tensor.shape(), tensor.strides())};
  }

  void check(const Taken& written, const Taken& other) const {
    if (!written.bytes.meets(other.bytes)) return;
    checks_.require(!overlap(written.tensor(), other.tensor()), written.name, " overlaps ", other.name,
                    "; it needs separate memory");
  }

  void take(const Taken& tensor) {
    if (count_ < kFew) {
      new (place(count_++)) Taken(tensor);
    } else {
      ++count_;
      more_.push_back(tensor);
    }
  }

  std::byte* place(std::size_t n) { return few_.data() + n * sizeof(Taken); }
  const Taken& few(std::size_t n) const {
    return *std::launder(reinterpret_cast<const Taken*>(few_.data() + n * sizeof(Taken)));
  }

  static constexpr std::size_t kFew = 16;  // further tensors are on the heap
  const Checks& checks_;
  std::size_t count_ = 0;
  // The first `count_`, at most kFew, are initialized. These are raw bytes, because constructing kFew tensors would
  // take longer than checking a few.
  alignas(Taken) std::array<std::byte, kFew * sizeof(Taken)> few_;
  std::vector<Taken> more_;
};

}  // namespace rapt
