// Tensors: a view is a pointer with a type, a shape and strides; a Tensor owns its memory.
//
// The canonical order is (B, H, L, D). Because a view has strides, all common layouts map to it without a copy:
//
//   (B, L, H, D)            x.transpose(1, 2)
//   (B, L, E)               split_heads(x, H)
//   packed (B, L, 3, H, D)  x.permute({2, 0, 3, 1, 4}), then select(0, 0), select(0, 1), select(0, 2)
//   (L, B, E)               split_heads(x.transpose(0, 1), H)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "rapt/dtype.h"
#include "rapt/error.h"

#pragma GCC visibility push(default)
namespace rapt {

// The device that holds the memory. All tensors of a call are on one device, and nothing is copied between devices
// unless copy, copy_of or to is called. `extension` is a device whose engine is added at run time.
struct Device {
  enum class Kind : std::uint8_t { cpu, cuda, extension };
  Kind kind = Kind::cpu;
  int index = 0;

  // The CPU has one memory, whatever the index.
  friend bool operator==(const Device& a, const Device& b) {
    return a.kind == b.kind && (a.kind == Kind::cpu || a.index == b.index);
  }
};

std::string to_string(Device device);

// A stream of a device: work on one stream runs in call order. For CUDA, `handle` is a cudaStream_t, and the default is
// the legacy default stream, as in DLPack. rapt/cuda.h has a class that owns a stream.
struct StreamHandle {
  void* handle = nullptr;

  friend bool operator==(const StreamHandle&, const StreamHandle&) = default;
};

// A short list of sizes or strides, stored inline.
class Dims {
 public:
  static constexpr int kMaxRank = 8;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values);

  int rank() const { return rank_; }
  std::int64_t operator[](int dim) const { return values_[static_cast<std::size_t>(dim)]; }
  std::int64_t& operator[](int dim) { return values_[static_cast<std::size_t>(dim)]; }
  std::int64_t product() const {
    std::int64_t product = 1;
    for (const std::int64_t value : *this) product *= value;
    return product;
  }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + rank_; }

  friend bool operator==(const Dims&, const Dims&) = default;

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

std::string to_string(const Dims& dims);  // "(2, 8, 10, 64)"

// Shape and strides, in elements. `offset` is the distance from the start of the view that the operation was applied
// to. All operations are arithmetic on these numbers: none touches memory.
struct Layout {
  Dims shape;
  Dims strides;
  std::int64_t offset = 0;

  static Layout contiguous(const Dims& shape);
  Layout transpose(int a, int b) const;
  Layout permute(std::span<const int> order) const;
  Layout slice(int dim, std::int64_t begin, std::int64_t end) const;
  Layout select(int dim, std::int64_t index) const;
  Layout unsqueeze(int dim) const;
  Layout split(int dim, std::int64_t outer) const;  // size n -> (outer, n / outer)
  Layout merge(int dim) const;                      // dims (dim, dim + 1) -> one, if strides allow it
  Layout expand(const Dims& shape) const;           // broadcast: new leading dims, and size 1 -> n with stride 0
  bool is_contiguous() const;
  std::int64_t count() const;
};

// A non-owning view of a tensor, cheap to copy. ConstTensorView is read-only; TensorView is writable and converts to
// ConstTensorView. A default-constructed view is undefined and means "none".
template <bool kMutable>
class BasicTensorView {
 public:
  using Pointer = std::conditional_t<kMutable, void*, const void*>;

  BasicTensorView() = default;
  BasicTensorView(Pointer data, DType dtype, const Dims& shape, Device device = {})
      : BasicTensorView(data, dtype, Layout::contiguous(shape), device) {}
  // Strides are in elements, as in PyTorch (NumPy uses bytes). They may be 0 or negative.
  BasicTensorView(Pointer data, DType dtype, const Dims& shape, const Dims& strides, Device device = {})
      : BasicTensorView(data, dtype, checked(shape, strides), device) {}
  template <class T>
  requires(!kMutable || !std::is_const_v<T>) BasicTensorView(T* data, const Dims& shape)
      : BasicTensorView(data, dtype_of<std::remove_const_t<T>>, shape) {}
  template <class T>
  requires(!kMutable || !std::is_const_v<T>) BasicTensorView(T* data, const Dims& shape, const Dims& strides)
      : BasicTensorView(data, dtype_of<std::remove_const_t<T>>, shape, strides) {}

  // NOLINTNEXTLINE(google-explicit-constructor): a writable view can always be read
  operator BasicTensorView<false>() const {
    BasicTensorView<false> view;
    view.data_ = data_, view.dtype_ = dtype_, view.device_ = device_, view.defined_ = defined_;
    view.shape_ = shape_, view.strides_ = strides_;
    return view;
  }

  bool defined() const { return defined_; }
  Pointer data() const { return data_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  int rank() const { return shape_.rank(); }
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  std::int64_t size(int dim) const { return shape_[dim]; }
  std::int64_t stride(int dim) const { return strides_[dim]; }
  std::int64_t count() const { return shape_.product(); }  // number of elements
  bool is_contiguous() const { return layout().is_contiguous(); }
  Layout layout() const { return {shape_, strides_, 0}; }

  // A typed pointer to the first element. Throws if T is not the view's type, or if the memory is not on the CPU.
  template <class T>
  auto data_as() const {
    require_dtype(dtype_of<T>);
    return static_cast<std::conditional_t<kMutable, T*, const T*>>(data_);
  }
  // One element, by index: x.at<float>(b, h, i, d). Convenient rather than fast.
  template <class T, class... Index>
  auto& at(Index... index) const {
    return data_as<T>()[offset_of({static_cast<std::int64_t>(index)...})];
  }

  BasicTensorView transpose(int a, int b) const { return with(layout().transpose(a, b)); }
  BasicTensorView permute(std::initializer_list<int> order) const {
    return with(layout().permute(std::span(order.begin(), order.size())));
  }
  BasicTensorView slice(int dim, std::int64_t begin, std::int64_t end) const {
    return with(layout().slice(dim, begin, end));
  }
  BasicTensorView select(int dim, std::int64_t index) const { return with(layout().select(dim, index)); }
  BasicTensorView unsqueeze(int dim) const { return with(layout().unsqueeze(dim)); }
  BasicTensorView split(int dim, std::int64_t outer) const { return with(layout().split(dim, outer)); }
  BasicTensorView merge(int dim) const { return with(layout().merge(dim)); }
  BasicTensorView expand(const Dims& shape) const { return with(layout().expand(shape)); }
  // The same memory with another shape; contiguous views only.
  BasicTensorView reshape(const Dims& shape) const {
    require_reshape(shape);
    return with(Layout::contiguous(shape));
  }

 private:
  friend class BasicTensorView<true>;

  BasicTensorView(Pointer data, DType dtype, const Layout& layout, Device device)
      : data_(data), shape_(layout.shape), strides_(layout.strides), device_(device), dtype_(dtype), defined_(true) {}

  static Layout checked(const Dims& shape, const Dims& strides);
  void require_dtype(DType wanted) const;
  void require_reshape(const Dims& shape) const;
  std::int64_t offset_of(std::initializer_list<std::int64_t> index) const;
  BasicTensorView with(const Layout& layout) const;

  Pointer data_ = nullptr;
  Dims shape_;
  Dims strides_;
  Device device_;
  DType dtype_ = DType::f32;
  bool defined_ = false;
};

extern template class BasicTensorView<true>;
extern template class BasicTensorView<false>;

using TensorView = BasicTensorView<true>;
using ConstTensorView = BasicTensorView<false>;

// A tensor that owns its memory, on the CPU or on another device: contiguous, aligned to 64 bytes, initialized to zero.
// Move-only; copy with clone().
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const Dims& shape, DType dtype = DType::f32, Device device = {});

  // A tensor with these values, in row-major order.
  template <class T>
  static Tensor from(const Dims& shape, std::span<const T> values) {
    return copy_of(ConstTensorView(values.data(), dtype_of<T>, Dims{static_cast<std::int64_t>(values.size())}), shape);
  }
  template <class T>
  static Tensor from(const Dims& shape, std::initializer_list<T> values) {
    return from(shape, std::span<const T>(values.begin(), values.size()));
  }
  // A contiguous copy of any view, converted to `dtype` if given, on the view's device or on `device`. Conversions
  // round once, to nearest, ties to even. From bool, true is 1; to bool, nonzero is true. To i8, values saturate at
  // −128 and 127, and NaN becomes 0.
  static Tensor copy_of(const ConstTensorView& view);
  static Tensor copy_of(const ConstTensorView& view, DType dtype);
  static Tensor copy_of(const ConstTensorView& view, DType dtype, Device device);

  Tensor clone() const { return copy_of(view()); }
  Tensor to(DType dtype) const { return copy_of(view(), dtype); }
  Tensor to(Device device) const { return copy_of(view(), dtype_, device); }

  TensorView view() { return {memory_.get(), dtype_, shape_, device()}; }
  ConstTensorView view() const { return {memory_.get(), dtype_, shape_, device()}; }
  operator TensorView() { return view(); }             // NOLINT(google-explicit-constructor)
  operator ConstTensorView() const { return view(); }  // NOLINT(google-explicit-constructor)

  DType dtype() const { return dtype_; }
  Device device() const { return memory_.get_deleter().device; }
  const Dims& shape() const { return shape_; }
  std::int64_t size(int dim) const { return shape_[dim]; }
  std::int64_t count() const { return shape_.product(); }

  // All elements, in row-major order. Throws if T is not the tensor's type, or if the memory is not on the CPU.
  template <class T>
  std::span<T> values() {
    return {view().data_as<T>(), static_cast<std::size_t>(count())};
  }
  template <class T>
  std::span<const T> values() const {
    return {view().data_as<T>(), static_cast<std::size_t>(count())};
  }

 private:
  struct Free {
    Device device;
    void operator()(std::byte* memory) const;
  };

  static Tensor copy_of(const ConstTensorView& flat, const Dims& shape);

  std::unique_ptr<std::byte, Free> memory_;
  Dims shape_{0};
  DType dtype_ = DType::f32;
};

// Copies element by element between views of the same shape, converting like Tensor::copy_of. The views may be on
// different devices; the copy is complete when the function returns.
void copy(const ConstTensorView& from, const TensorView& to);

// (B, L, E) -> (B, H, L, E/H), like x.view(B, L, H, D).transpose(1, 2) in PyTorch. No copy: only the strides change.
TensorView split_heads(const TensorView& x, std::int64_t heads);
inline TensorView split_heads(Tensor& x, std::int64_t heads);
inline ConstTensorView split_heads(const Tensor& x, std::int64_t heads);
ConstTensorView split_heads(const ConstTensorView& x, std::int64_t heads);

// (B, H, L, D) -> (B, L, H·D), like x.transpose(1, 2).contiguous().view(B, L, E) in PyTorch. A view if each token's
// heads are adjacent in memory, as split_heads leaves them; otherwise combine_heads throws, and combine_heads_copy
// makes a copy.
TensorView combine_heads(const TensorView& x);
inline TensorView combine_heads(Tensor& x);
inline ConstTensorView combine_heads(const Tensor& x);
ConstTensorView combine_heads(const ConstTensorView& x);
Tensor combine_heads_copy(const ConstTensorView& x);

inline TensorView split_heads(Tensor& x, std::int64_t heads) { return split_heads(x.view(), heads); }
inline ConstTensorView split_heads(const Tensor& x, std::int64_t heads) { return split_heads(x.view(), heads); }
inline TensorView combine_heads(Tensor& x) { return combine_heads(x.view()); }
inline ConstTensorView combine_heads(const Tensor& x) { return combine_heads(x.view()); }

}  // namespace rapt
#pragma GCC visibility pop
