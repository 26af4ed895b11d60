#include "attention/checks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace rapt {

void Checks::usable(std::string_view name, const ConstTensorView& tensor) const {
  require(tensor.defined(), name, " is missing; give a tensor");
  require(tensor.device().kind == Device::Kind::cpu, name, " is on ", tensor.device(),
          "; the engines of this build read cpu memory");
  require(tensor.data() != nullptr || tensor.count() == 0, name, " of shape ", tensor.shape(),
          " has no memory: its pointer is null");
  const std::size_t size = size_of(tensor.dtype());
  require(reinterpret_cast<std::uintptr_t>(tensor.data()) % size == 0, name,
          " begins at an address that is no multiple of ", size, ", the size of ", tensor.dtype());
}

void Checks::shaped(std::string_view name, const ConstTensorView& tensor, const Dims& shape,
                    std::string_view meaning) const {
  usable(name, tensor);
  require(tensor.shape() == shape, name, " has shape ", tensor.shape(), "; it must be ", meaning, " = ", shape);
}

void Checks::typed(std::string_view name, const ConstTensorView& tensor, std::initializer_list<DType> allowed) const {
  if (std::find(allowed.begin(), allowed.end(), tensor.dtype()) != allowed.end()) return;
  std::string choices;
  std::size_t place = 0;
  for (const DType dtype : allowed) {
    if (place > 0) choices += place + 1 == allowed.size() ? " or " : ", ";
    choices += name_of(dtype);
    ++place;
  }
  fail(name, " is ", tensor.dtype(), "; it must be ", choices);
}

void Checks::writable(std::string_view name, const ConstTensorView& tensor) const {
  if (tensor.count() == 0) return;
  // (distance, size), inner dimensions first. An array, because a call with a workspace may not allocate.
  std::array<std::pair<std::int64_t, std::int64_t>, Dims::kMaxRank> steps{};
  for (int dim = 0; dim < tensor.rank(); ++dim) {
    if (tensor.size(dim) > 1) steps[static_cast<std::size_t>(dim)] = {std::abs(tensor.stride(dim)), tensor.size(dim)};
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t extent = 0;  // from the first to the last element of the inner dimensions
  for (const auto& [distance, size] : steps) {
    if (size == 0) continue;  // no step
    require(distance > extent, name, " has strides ", tensor.strides(), " for shape ", tensor.shape(),
            ", which put several elements in one place; it is written to, so each needs its own");
    extent += distance * (size - 1);
  }
}

}  // namespace rapt
