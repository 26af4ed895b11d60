#include "io/tensor_bytes.h"

#include <algorithm>
#include <vector>

namespace rapt::io {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

// Steps through a view's elements in row-major order.
class Walk {
 public:
  explicit Walk(const ConstTensorView& view)
      : view_(view), index_(view.shape()), at_(static_cast<const std::byte*>(view.data())) {
    for (int dim = 0; dim < index_.rank(); ++dim) index_[dim] = 0;
  }

  const std::byte* element() const { return at_ + offset_ * static_cast<std::ptrdiff_t>(size_of(view_.dtype())); }
  void next() {
    for (int dim = view_.rank() - 1; dim >= 0; --dim) {
      offset_ += view_.stride(dim);
      if (++index_[dim] < view_.size(dim)) return;
      offset_ -= view_.stride(dim) * view_.size(dim);
      index_[dim] = 0;
    }
  }

 private:
  const ConstTensorView& view_;
  Dims index_;
  const std::byte* at_;
  std::int64_t offset_ = 0;
};

}  // namespace

void require_writable(const ConstTensorView& view, const FileChecks& checks) {
  checks.require(view.defined(), "is undefined; give a tensor");
  checks.require(view.device().kind == Device::Kind::cpu, "is on ", view.device(), "; copy it to the CPU first");
  checks.require(view.data() != nullptr || view.count() == 0, "has no memory");
}

std::uint64_t byte_count(const ConstTensorView& view) {
  return static_cast<std::uint64_t>(view.count()) * size_of(view.dtype());
}

void make_bools(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
}

void for_each_block(const ConstTensorView& view, const std::function<void(Bytes)>& take) {
  const std::size_t size = size_of(view.dtype());
  std::uint64_t left = byte_count(view);
  if (left == 0) return;
  if (view.is_contiguous() && view.dtype() != DType::boolean) {
    const auto* data = static_cast<const std::byte*>(view.data());
    constexpr std::uint64_t kStep = std::uint64_t{1} << 30;  // the limit of one call of zlib or write
    for (; left > 0;) {
      const auto step = static_cast<std::size_t>(std::min(left, kStep));
      take({data, step});
      data += step;
      left -= step;
    }
    return;
  }
  std::vector<std::byte> block(static_cast<std::size_t>(std::min<std::uint64_t>(left, kBlock)));
  Walk walk(view);
  while (left > 0) {
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(left, block.size()));
    for (std::size_t at = 0; at < step; at += size) {
      std::memcpy(block.data() + at, walk.element(), size);
      walk.next();
    }
    if (view.dtype() == DType::boolean) make_bools(std::span(block).first(step));
    take(Bytes(block).first(step));
    left -= step;
  }
}

}  // namespace rapt::io
