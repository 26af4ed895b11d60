#include "rapt/tensor.h"

#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/elements.h"
#include "core/memory.h"
#include "core/text.h"

namespace rapt {

// ---------------------------------------------------------------- views

template <bool kMutable>
Layout BasicTensorView<kMutable>::checked(const Dims& shape, const Dims& strides) {
  if (shape.rank() != strides.rank()) {
    throw Error(text("tensor: shape ", shape, " has ", shape.rank(), " sizes, strides ", strides, " have ",
                     strides.rank(), "; give one stride for each size"));
  }
  (void)Layout::contiguous(shape);  // rejects negative sizes and overflow
  std::int64_t extent = 0;
  for (int dim = 0; dim < shape.rank(); ++dim) {
    std::int64_t steps = 0;
    const bool overflows = shape[dim] > 1 && (strides[dim] == std::numeric_limits<std::int64_t>::min() ||
                                              __builtin_mul_overflow(std::abs(strides[dim]), shape[dim] - 1, &steps) ||
                                              __builtin_add_overflow(extent, steps, &extent));
    if (overflows) throw Error(text("tensor: strides ", strides, " of shape ", shape, " overflow a 64-bit offset"));
  }
  return {shape, strides, 0};
}

template <bool kMutable>
void BasicTensorView<kMutable>::require_dtype(DType wanted) const {
  if (dtype_ != wanted) throw Error(text("tensor: holds ", dtype_, ", but was accessed as ", wanted));
}

template <bool kMutable>
void BasicTensorView<kMutable>::require_reshape(const Dims& shape) const {
  if (!is_contiguous()) {
    throw Error(text("reshape: shape ", shape_, " with strides ", strides_, " is not contiguous; copy it first"));
  }
  if (Layout::contiguous(shape).count() != count()) {
    throw Error(text("reshape: shape ", shape_, " has ", count(), " elements, ", shape, " has ",
                     Layout::contiguous(shape).count()));
  }
}

template <bool kMutable>
std::int64_t BasicTensorView<kMutable>::offset_of(std::initializer_list<std::int64_t> index) const {
  if (static_cast<int>(index.size()) != rank()) {
    throw Error(text("at: ", index.size(), " indices for shape ", shape_));
  }
  std::int64_t offset = 0;
  int dim = 0;
  for (const std::int64_t i : index) {
    if (i < 0 || i >= shape_[dim]) {
      throw Error(text("at: index ", i, " of dimension ", dim, ", which has size ", shape_[dim]));
    }
    offset += i * strides_[dim++];
  }
  return offset;
}

template <bool kMutable>
BasicTensorView<kMutable> BasicTensorView<kMutable>::with(const Layout& layout) const {
  using Byte = std::conditional_t<kMutable, std::byte, const std::byte>;
  BasicTensorView view = *this;
  // The null pointer of an empty tensor must not be offset.
  if (layout.offset != 0 && data_ != nullptr) {
    view.data_ = static_cast<Byte*>(data_) + layout.offset * static_cast<std::int64_t>(size_of(dtype_));
  }
  view.shape_ = layout.shape;
  view.strides_ = layout.strides;
  return view;
}

template class BasicTensorView<true>;
template class BasicTensorView<false>;

// ---------------------------------------------------------------- tensors

void Tensor::Free::operator()(std::byte* memory) const { core::FreeBytes()(memory); }

Tensor::Tensor(const Dims& shape, DType dtype) : shape_(shape), dtype_(dtype) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(Layout::contiguous(shape).count(), size_of(dtype), &bytes)) {
    throw Error(text("tensor: shape ", shape, " of ", dtype, " has more bytes than a 64-bit integer can count"));
  }
  if (bytes == 0) return;
  memory_.reset(core::allocate(bytes).release());
  std::memset(memory_.get(), 0, bytes);
}

std::int64_t Tensor::count() const { return Layout::contiguous(shape_).count(); }

Tensor Tensor::copy_of(const ConstTensorView& view) { return copy_of(view, view.dtype()); }

Tensor Tensor::copy_of(const ConstTensorView& view, DType dtype) {
  Tensor tensor(view.shape(), dtype);
  copy(view, tensor);
  return tensor;
}

Tensor Tensor::copy_of(const ConstTensorView& flat, const Dims& shape) {
  return copy_of(flat.reshape(shape), flat.dtype());
}

void copy(const ConstTensorView& from, const TensorView& to) {
  if (!from.defined() || !to.defined()) throw Error("copy: a view is undefined; give a tensor");
  if (from.shape() != to.shape()) {
    throw Error(text("copy: from shape ", from.shape(), " to shape ", to.shape(), "; they must be equal"));
  }
  const Dims& shape = from.shape();
  const int rank = shape.rank();
  Dims index(std::span(shape.begin(), shape.end()));
  for (int dim = 0; dim < rank; ++dim) index[dim] = 0;

  // Without a conversion all bits are preserved, even of a signaling NaN. A bool that is neither 0 nor 1 becomes 1.
  const bool same_bits = from.dtype() == to.dtype() && from.dtype() != DType::boolean;
  const auto size = static_cast<std::int64_t>(size_of(from.dtype()));
  std::int64_t source = 0;
  std::int64_t target = 0;
  for (std::int64_t left = from.count(); left > 0; --left) {
    if (same_bits) {
      std::memcpy(static_cast<std::byte*>(to.data()) + target * size,
                  static_cast<const std::byte*>(from.data()) + source * size, static_cast<std::size_t>(size));
    } else {
      store(to.data(), to.dtype(), target, load(from.data(), from.dtype(), source));
    }
    for (int dim = rank - 1; dim >= 0; --dim) {  // advance the index, last dimension first
      source += from.stride(dim);
      target += to.stride(dim);
      if (++index[dim] < shape[dim]) break;
      source -= from.stride(dim) * shape[dim];
      target -= to.stride(dim) * shape[dim];
      index[dim] = 0;
    }
  }
}

// ---------------------------------------------------------------- heads

namespace {

template <class View>
View split(const View& x, std::int64_t heads) {
  if (x.rank() != 3) throw Error(text("split_heads: shape ", x.shape(), " must be (B, L, E)"));
  if (heads < 1 || x.size(2) % heads != 0) {
    throw Error(text("split_heads: embedding size ", x.size(2), " cannot be divided into ", heads, " heads"));
  }
  return x.split(2, heads).transpose(1, 2);
}

template <class View>
View combine(const View& x) {
  if (x.rank() != 4) throw Error(text("combine_heads: shape ", x.shape(), " must be (B, H, L, D)"));
  const View tokens = x.transpose(1, 2);  // (B, L, H, D)
  try {
    return tokens.merge(2);
  } catch (const Error&) {
    throw Error(text("combine_heads: shape ", x.shape(), " with strides ", x.strides(),
                     " does not store the heads of a token contiguously; use combine_heads_copy"));
  }
}

}  // namespace

TensorView split_heads(const TensorView& x, std::int64_t heads) { return split(x, heads); }
ConstTensorView split_heads(const ConstTensorView& x, std::int64_t heads) { return split(x, heads); }
TensorView combine_heads(const TensorView& x) { return combine(x); }
ConstTensorView combine_heads(const ConstTensorView& x) { return combine(x); }

Tensor combine_heads_copy(const ConstTensorView& x) {
  if (x.rank() != 4) throw Error(text("combine_heads: shape ", x.shape(), " must be (B, H, L, D)"));
  Tensor tokens(Dims{x.size(0), x.size(2), x.size(1) * x.size(3)}, x.dtype());
  if (x.size(1) > 0) copy(x, split_heads(tokens.view(), x.size(1)));
  return tokens;
}

}  // namespace rapt
