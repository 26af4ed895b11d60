#include "attention/checks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/engine.h"

namespace rapt {

Name::Name(std::string_view list, std::size_t place, std::string_view rest) {
  const auto add = [&](std::string_view part) { size_ += part.copy(text_.data() + size_, text_.size() - size_); };
  add(list);
  add("[");
  size_ = static_cast<std::size_t>(std::to_chars(text_.data() + size_, text_.data() + text_.size(), place).ptr -
                                   text_.data());
  add("]");
  add(rest);
}

void Checks::usable(std::string_view name, const ConstTensorView& tensor) const {
  require(tensor.defined(), name, " is missing; give a tensor");
  if (tensor.device().kind != Device::Kind::cpu || device_.kind != Device::Kind::cpu) check_device(name, tensor);
  require(tensor.data() != nullptr || tensor.count() == 0, name, " of shape ", tensor.shape(),
          " has no memory: its pointer is null");
  const std::size_t size = size_of(tensor.dtype());
  require(reinterpret_cast<std::uintptr_t>(tensor.data()) % size == 0, name,
          " starts at an address that is not a multiple of ", size, ", the size of ", tensor.dtype());
}

void Checks::check_device(std::string_view name, const ConstTensorView& tensor) const {
  require(find_device(tensor.device()) != nullptr, name, " is on ", tensor.device(),
          "; the engines of this build read cpu memory");
  require(tensor.device() == device_, name, " is on ", tensor.device(), ", this call works on ", device_,
          "; all its tensors must be on one device");
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
  struct Step {
    std::int64_t distance, size;
  };
  std::array<Step, Dims::kMaxRank> steps;  // inner dimensions first
  std::size_t count = 0;
  for (int dim = 0; dim < tensor.rank(); ++dim) {
    if (tensor.size(dim) <= 1) continue;
    const Step step = {std::abs(tensor.stride(dim)), tensor.size(dim)};
    std::size_t place = count++;
    for (; place > 0 && steps[place - 1].distance > step.distance; --place) steps[place] = steps[place - 1];
    steps[place] = step;
  }
  std::int64_t extent = 0;  // from the first to the last element of the inner dimensions
  for (const auto& [distance, size] : std::span(steps).first(count)) {
    require(distance > extent, name, " has strides ", tensor.strides(), " for shape ", tensor.shape(),
            ", so that several elements share an address; an output must not overlap itself");
    extent += distance * (size - 1);
  }
}

}  // namespace rapt
