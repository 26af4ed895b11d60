#include "core/copy.h"

#include <cstdlib>
#include <cstring>

#include "core/elements.h"

namespace rapt::core {

namespace {

template <class From, class To>
void convert_row(const From* from, std::int64_t from_step, To* to, std::int64_t to_step, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n) to[n * to_step] = from_double<To>(to_double(from[n * from_step]));
}

// Without a conversion all bits are preserved, even of a signaling NaN.
template <std::size_t kSize>
void move_row(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t count) {
  constexpr auto kBytes = static_cast<std::int64_t>(kSize);
  for (std::int64_t n = 0; n < count; ++n) std::memcpy(to + n * to_step * kBytes, from + n * from_step * kBytes, kSize);
}

class RowCopy {
 public:
  RowCopy(const ConstTensorView& from, const TensorView& to)
      : from_type_(from.dtype()),
        to_type_(to.dtype()),
        // A bool that is neither 0 nor 1 becomes 1.
        same_bits_(from.dtype() == to.dtype() && from.dtype() != DType::boolean) {}

  void operator()(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                  std::int64_t count) const {
    if (same_bits_) return move(from, from_step, to, to_step, count);
    if (from_type_ == DType::boolean) {  // read as a byte, because memory may hold values other than 0 and 1
      for (std::int64_t n = 0; n < count; ++n) store(to, to_type_, n * to_step, load(from, from_type_, n * from_step));
      return;
    }
    with_element_type(from_type_, [&](auto given) {
      with_element_type(to_type_, [&](auto wanted) {
        convert_row(reinterpret_cast<const decltype(given)*>(from), from_step, reinterpret_cast<decltype(wanted)*>(to),
                    to_step, count);
      });
    });
  }

 private:
  void move(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
            std::int64_t count) const {
    const std::size_t size = size_of(from_type_);
    if (from_step == 1 && to_step == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * size);
      return;
    }
    switch (size) {
      case 1: return move_row<1>(from, from_step, to, to_step, count);
      case 2: return move_row<2>(from, from_step, to, to_step, count);
      case 4: return move_row<4>(from, from_step, to, to_step, count);
      default: return move_row<8>(from, from_step, to, to_step, count);
    }
  }

  DType from_type_, to_type_;
  bool same_bits_;
};

}  // namespace

void copy_elements(const ConstTensorView& from, const TensorView& to) {
  const Dims& shape = to.shape();
  const RowCopy copy_row(from, to);
  const auto* source = static_cast<const std::byte*>(from.data());
  auto* target = static_cast<std::byte*>(to.data());
  if (to.count() == 0) return;
  if (shape.rank() == 0) return copy_row(source, 1, target, 1, 1);

  // Adjacent dimensions are merged if, in both tensors, one stride steps through them.
  Dims sizes, from_steps, to_steps;
  int rank = 0;
  sizes = shape, from_steps = from.strides(), to_steps = to.strides();
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (rank > 0 && from_steps[rank - 1] == from.stride(dim) * shape[dim] &&
        to_steps[rank - 1] == to.stride(dim) * shape[dim]) {
      sizes[rank - 1] *= shape[dim];
    } else {
      sizes[rank++] = shape[dim];
    }
    from_steps[rank - 1] = from.stride(dim), to_steps[rank - 1] = to.stride(dim);
  }

  const auto from_size = static_cast<std::int64_t>(size_of(from.dtype()));
  const auto to_size = static_cast<std::int64_t>(size_of(to.dtype()));
  const int last = rank - 1;
  Dims index = sizes;
  for (int dim = 0; dim < rank; ++dim) index[dim] = 0;
  for (;;) {
    copy_row(source, from_steps[last], target, to_steps[last], sizes[last]);
    int dim = last - 1;
    for (; dim >= 0; --dim) {  // advance the index, last dimension first
      source += from_steps[dim] * from_size, target += to_steps[dim] * to_size;
      if (++index[dim] < sizes[dim]) break;
      source -= from_steps[dim] * sizes[dim] * from_size, target -= to_steps[dim] * sizes[dim] * to_size;
      index[dim] = 0;
    }
    if (dim < 0) return;
  }
}

}  // namespace rapt::core
