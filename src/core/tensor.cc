#include "rapt/tensor.h"

#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/copy.h"
#include "core/engine.h"
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
  if (device_.kind != Device::Kind::cpu) throw Error(text("tensor is on ", device_, "; copy it to the CPU first"));
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
    throw Error(text("at: ", index.size(), " indices were given for shape ", shape_, "; give one for each dimension"));
  }
  std::int64_t offset = 0;
  int dim = 0;
  for (const std::int64_t i : index) {
    if (i < 0 || i >= shape_[dim]) {
      throw Error(text("at: index ", i, " is out of range for dimension ", dim, ", which has size ", shape_[dim]));
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

void Tensor::Free::operator()(std::byte* memory) const { core::FreeBytes{device}(memory); }

Tensor::Tensor(const Dims& shape, DType dtype, Device device)
    : memory_(nullptr, Free{device}), shape_(shape), dtype_(dtype) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(Layout::contiguous(shape).count(), size_of(dtype), &bytes)) {
    throw Error(text("tensor: shape ", shape, " of ", dtype, " has more bytes than a 64-bit integer can count"));
  }
  if (find_device(device) == nullptr) {
    throw Error(text("tensor: memory was requested on ", device, "; no engine of this build supports that device"));
  }
  if (bytes == 0) return;
  memory_.reset(core::allocate(bytes, device).release());
  core::zero(memory_.get(), bytes, device);
}

Tensor Tensor::copy_of(const ConstTensorView& view) { return copy_of(view, view.dtype()); }

Tensor Tensor::copy_of(const ConstTensorView& view, DType dtype) { return copy_of(view, dtype, view.device()); }

Tensor Tensor::copy_of(const ConstTensorView& view, DType dtype, Device device) {
  Tensor tensor(view.shape(), dtype, device);
  copy(view, tensor);
  return tensor;
}

Tensor Tensor::copy_of(const ConstTensorView& flat, const Dims& shape) {
  return copy_of(flat.reshape(shape), flat.dtype());
}

namespace {

std::size_t bytes_of(const ConstTensorView& view) {
  return static_cast<std::size_t>(view.count()) * size_of(view.dtype());
}

const EngineRow& reachable(const char* name, const ConstTensorView& view) {
  const EngineRow* row = find_device(view.device());
  if (row == nullptr) {
    throw Error(text("copy: ", name, " is on ", view.device(), "; no engine of this build can access that memory"));
  }
  return *row;
}

bool is_on_cpu(const ConstTensorView& view) { return view.device().kind == Device::Kind::cpu; }

void copy_within(const EngineRow& device, const ConstTensorView& from, const TensorView& to) {
  device.layer->copy(from, to, core::pool_workers());
  device.memory->wait(to.device().index);
}

// Only contiguous memory of one type is transferred; conversions run before or after the transfer, on the device that
// holds the elements.
void copy_in(const EngineRow& device, const ConstTensorView& from, const TensorView& to) {
  if (from.dtype() != to.dtype() || !from.is_contiguous()) {
    return copy_in(device, Tensor::copy_of(from, to.dtype()).view(), to);
  }
  if (!to.is_contiguous()) {
    Tensor landed(to.shape(), to.dtype(), to.device());
    copy_in(device, from, landed.view());
    return copy_within(device, landed.view(), to);
  }
  device.memory->copy(to.device().index, to.data(), from.data(), bytes_of(from), CopyDirection::from_host);
  device.memory->wait(to.device().index);
}

void copy_out(const EngineRow& device, const ConstTensorView& from, const TensorView& to) {
  if (!from.is_contiguous()) return copy_out(device, Tensor::copy_of(from).view(), to);
  if (!to.is_contiguous() || from.dtype() != to.dtype()) {
    Tensor landed(from.shape(), from.dtype());
    copy_out(device, from, landed.view());
    return core::copy_elements(landed.view(), to);
  }
  device.memory->copy(from.device().index, to.data(), from.data(), bytes_of(from), CopyDirection::to_host);
}

}  // namespace

void copy(const ConstTensorView& from, const TensorView& to) {
  if (!from.defined() || !to.defined()) throw Error("copy: a view is undefined; give a tensor");
  if (from.shape() != to.shape()) {
    throw Error(text("copy: from has shape ", from.shape(), ", to has shape ", to.shape(), "; they must be equal"));
  }
  if (is_on_cpu(from) && is_on_cpu(to)) return core::copy_elements(from, to);
  const EngineRow &source = reachable("from", from), &target = reachable("to", to);
  if (from.count() == 0) return;
  if (from.device() == to.device()) return copy_within(target, from, to);
  if (is_on_cpu(from)) return copy_in(target, from, to);
  if (is_on_cpu(to)) return copy_out(source, from, to);
  copy_in(target, Tensor::copy_of(from, from.dtype(), Device{}).view(), to);
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
  Tensor tokens(Dims{x.size(0), x.size(2), x.size(1) * x.size(3)}, x.dtype(), x.device());
  if (x.size(1) > 0) copy(x, split_heads(tokens.view(), x.size(1)));
  return tokens;
}

}  // namespace rapt
