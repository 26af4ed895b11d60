// View operations: arithmetic on shapes and strides.
#include <algorithm>
#include <utility>

#include "core/engine.h"
#include "core/text.h"
#include "rapt/tensor.h"

namespace rapt {

namespace {

void require_dim(const Layout& layout, int dim, const char* step) {
  if (dim < 0 || dim >= layout.shape.rank()) {
    throw Error(text(step, ": shape ", layout.shape, " has no dimension ", dim, "; it has dimensions 0 to ",
                     layout.shape.rank() - 1));
  }
}

Dims without(const Dims& dims, int dim) {
  std::array<std::int64_t, Dims::kMaxRank> values{};
  std::size_t count = 0;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i != dim) values[count++] = dims[i];
  }
  return Dims(std::span(values.data(), count));
}

Dims with(const Dims& dims, int dim, std::int64_t value) {
  std::array<std::int64_t, Dims::kMaxRank + 1> values{};
  std::size_t count = 0;
  for (int i = 0; i <= dims.rank(); ++i) {
    if (i == dim) values[count++] = value;
    if (i < dims.rank()) values[count++] = dims[i];
  }
  return Dims(std::span(values.data(), count));
}

}  // namespace

Dims::Dims(std::span<const std::int64_t> values) : rank_(static_cast<int>(values.size())) {
  if (values.size() > static_cast<std::size_t>(kMaxRank)) {
    throw Error(text("tensor: rank ", values.size(), " exceeds the maximum of ", int{kMaxRank}));
  }
  std::copy(values.begin(), values.end(), values_.begin());
}

std::string to_string(const Dims& dims) {
  std::ostringstream stream = plain_stream();
  stream << '(';
  for (int i = 0; i < dims.rank(); ++i) stream << (i == 0 ? "" : ", ") << dims[i];
  stream << (dims.rank() == 1 ? ",)" : ")");
  return stream.str();
}

std::string to_string(Device device) {
  if (device.kind == Device::Kind::cpu) return "cpu";
  const EngineRow* row = find_device(device);
  const std::string kind = row != nullptr ? row->device_name : device.kind == Device::Kind::cuda ? "cuda" : "extension";
  return kind + ":" + std::to_string(device.index);
}

Layout Layout::contiguous(const Dims& shape) {
  Layout layout{shape, shape, 0};
  std::int64_t stride = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    if (shape[dim] < 0) throw Error(text("tensor: shape ", shape, " has a negative size"));
    layout.strides[dim] = stride;
    if (shape[dim] > 0 && __builtin_mul_overflow(stride, shape[dim], &stride)) {
      throw Error(text("tensor: shape ", shape, " has more elements than a 64-bit integer can count"));
    }
  }
  return layout;
}

std::int64_t Layout::count() const { return shape.product(); }

bool Layout::is_contiguous() const {
  if (count() == 0) return true;
  std::int64_t expected = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    if (shape[dim] != 1 && strides[dim] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

Layout Layout::transpose(int a, int b) const {
  require_dim(*this, a, "transpose");
  require_dim(*this, b, "transpose");
  Layout result = *this;
  std::swap(result.shape[a], result.shape[b]);
  std::swap(result.strides[a], result.strides[b]);
  return result;
}

Layout Layout::permute(std::span<const int> order) const {
  Layout result = *this;
  std::array<bool, Dims::kMaxRank> seen{};
  if (static_cast<int>(order.size()) != shape.rank()) {
    throw Error(text("permute: ", order.size(), " dimensions given for shape ", shape, "; list each of its ",
                     shape.rank(), " dimensions exactly once"));
  }
  for (int i = 0; i < shape.rank(); ++i) {
    const int from = order[static_cast<std::size_t>(i)];
    require_dim(*this, from, "permute");
    if (std::exchange(seen[static_cast<std::size_t>(from)], true)) {
      throw Error(text("permute: dimension ", from, " is given twice; list each of the ", shape.rank(),
                       " dimensions exactly once"));
    }
    result.shape[i] = shape[from];
    result.strides[i] = strides[from];
  }
  return result;
}

Layout Layout::slice(int dim, std::int64_t begin, std::int64_t end) const {
  require_dim(*this, dim, "slice");
  if (begin < 0 || begin > end || end > shape[dim]) {
    throw Error(text("slice: range ", begin, " to ", end, " is not valid for dimension ", dim, ", which has size ",
                     shape[dim]));
  }
  Layout result = *this;
  result.shape[dim] = end - begin;
  // An empty slice keeps its offset, because past the end there may be no memory to point to.
  if (end > begin) result.offset += begin * strides[dim];
  return result;
}

Layout Layout::select(int dim, std::int64_t index) const {
  require_dim(*this, dim, "select");
  if (index < 0 || index >= shape[dim]) {
    throw Error(text("select: index ", index, " is out of range for dimension ", dim, ", which has size ", shape[dim]));
  }
  return {without(shape, dim), without(strides, dim), offset + index * strides[dim]};
}

Layout Layout::unsqueeze(int dim) const {
  if (dim < 0 || dim > shape.rank()) {
    throw Error(
        text("unsqueeze: position ", dim, " is not valid for shape ", shape, "; it must be from 0 to ", shape.rank()));
  }
  return {with(shape, dim, 1), with(strides, dim, 0), offset};
}

Layout Layout::split(int dim, std::int64_t outer) const {
  require_dim(*this, dim, "split");
  if (outer < 1 || shape[dim] % outer != 0) {
    throw Error(
        text("split: size ", shape[dim], " of dimension ", dim, " cannot be divided into ", outer, " equal parts"));
  }
  const std::int64_t inner = shape[dim] / outer;
  Layout result{with(shape, dim, outer), with(strides, dim, strides[dim] * inner), offset};
  result.shape[dim + 1] = inner;
  return result;
}

Layout Layout::merge(int dim) const {
  require_dim(*this, dim, "merge");
  require_dim(*this, dim + 1, "merge");
  const bool side_by_side = shape[dim] <= 1 || shape[dim + 1] == 0 || strides[dim] == strides[dim + 1] * shape[dim + 1];
  if (!side_by_side && shape[dim + 1] != 1) {
    throw Error(text("merge: dimensions ", dim, " and ", dim + 1, " of shape ", shape, " with strides ", strides,
                     " are not adjacent in memory; a copy is needed"));
  }
  Layout result{without(shape, dim), without(strides, dim), offset};
  result.shape[dim] = shape[dim] * shape[dim + 1];
  if (shape[dim + 1] == 1) result.strides[dim] = strides[dim];
  return result;
}

Layout Layout::expand(const Dims& target) const {
  (void)contiguous(target);  // rejects negative sizes and overflow
  const int added = target.rank() - shape.rank();
  Layout result{target, target, offset};
  bool fits = added >= 0;
  for (int dim = 0; fits && dim < target.rank(); ++dim) {
    const bool own = dim >= added;  // else a new leading dimension
    const std::int64_t size = own ? shape[dim - added] : 1;
    fits = size == target[dim] || size == 1;
    result.strides[dim] = own && size == target[dim] ? strides[dim - added] : 0;
  }
  if (!fits) throw Error(text("expand: shape ", shape, " does not broadcast to ", target));
  return result;
}

}  // namespace rapt
